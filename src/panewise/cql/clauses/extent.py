"""A window's extent as an expression of the instant, evaluated by the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.algebra import default_host
from panewise.core.errors import Place, WindowProblem
from panewise.core.scalar import Scalar
from panewise.core.time import Ticks


@dataclass(frozen=True)
class SqlExtent:
    """Ticks, or an interval on timestamps, for each instant; the instant is the column `now`."""

    scalar: Scalar
    time_type: pa.DataType
    place: Place | None = field(default=None, compare=False, repr=False)

    def __call__(self, instants: Ticks) -> Ticks:
        now = pa.array(instants, pa.int64()).cast(self.time_type)
        (values,) = default_host().evaluate([self.scalar], pa.table({"#row": pa.array(instants), "now": now}))
        return np.array([self._ticks(v) for v in values.to_pylist()], np.int64)

    def _ticks(self, value: Any) -> int:
        match value:
            case int() if value >= 0:
                return value
            case timedelta() if value >= timedelta(0):
                return value // timedelta(microseconds=1)
            case None:
                found = "NULL"
            case (months, _, _) if months:
                found = f"counted in months ({months})"
            case _:
                found = f"{value}, below zero" if isinstance(value, int) else "an interval below zero"
        raise WindowProblem(
            f"the varying RANGE is {found}", fix="let it be zero or more, without months", place=self.place
        )

    def __str__(self) -> str:
        return f"({self.scalar.sql})"
