"""A window's extent as an expression of the instant, evaluated by the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.algebra import default_host
from panewise.errors import WindowProblem
from panewise.scalar import Scalar
from panewise.time import UNITS, Ticks


@dataclass(frozen=True)
class SqlExtent:
    """Ticks, or an interval on timestamps, for each instant; the instant is the column `now`."""

    scalar: Scalar
    time_type: pa.DataType

    def __call__(self, instants: Ticks) -> Ticks:
        now = pa.array(instants, pa.int64()).cast(self.time_type)
        (values,) = default_host().evaluate([self.scalar], pa.table({"#row": pa.array(instants), "now": now}))
        return np.array([self._ticks(v) for v in values.to_pylist()], np.int64)

    def _ticks(self, value: Any) -> int:
        match value:
            case int():
                return value
            case (0, days, nanoseconds):
                return int(days) * UNITS["DAY"] + int(nanoseconds) // 1000
        raise WindowProblem(f"the varying RANGE gave {value!r}", fix="return whole ticks or an interval without months")

    def __str__(self) -> str:
        return f"({self.scalar.sql})"
