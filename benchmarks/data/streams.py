"""Values of generated streams."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Longs: TypeAlias = npt.NDArray[np.int64]


def durations(rows: int, seed: int = 5) -> Longs:
    """Durations of connections in milliseconds: most are short, a few very long."""
    return np.random.default_rng(seed).lognormal(6.5, 1.8, rows).astype(np.int64)
