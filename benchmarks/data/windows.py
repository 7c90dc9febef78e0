"""Windows and operations that the figures of the two window papers ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from panewise.plan.rules.group_windows import WindowShape

#: Range and slide of each level, finest first.
Levels: TypeAlias = Sequence[tuple[int, int]]

#: The operations of "Multi-granular windows".
OPERATIONS = {"aggregation": "SUM(v)", "regression": "REGR_SLOPE(v, t)", "recurrence": "RECURRING(v)"}
#: The classes of "Subsuming windows" by their longest slide; no range is longer than 60.
CLASSES = {"smooth": 10, "medium": 20, "abrupt": 30}
LONGEST = 60

_NESTED = ((40, 8), (4, 1), (16, 2), (32, 4), (8, 2))


def nested(count: int) -> Levels:
    """One to five levels, of which the widest spans 40 timestamps; every slide divides the next.

    >>> nested(3)
    [(4, 1), (16, 2), (40, 8)]
    """
    return sorted(_NESTED[:count])


def clause(levels: Levels) -> str:
    """
    >>> clause([(4, 1), (40, 8)])
    '[RANGES 40, 4 SLIDES 8, 1]'
    """
    ranges, slides = (", ".join(str(level[n]) for level in reversed(levels)) for n in (0, 1))
    return f"[RANGES {ranges} SLIDES {slides}]"


def random_frames(count: int, longest_slide: int, seed: int = 7) -> list[WindowShape]:
    """Windows whose slide is shorter than their range, at random; many of them are alike, since few differ."""
    rng = np.random.default_rng(seed)
    slides = rng.integers(1, longest_slide + 1, count)
    ranges = rng.integers(slides + 1, LONGEST + 1)
    return [WindowShape(*pair) for pair in zip(ranges.tolist(), slides.tolist(), strict=True)]
