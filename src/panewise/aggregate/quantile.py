"""QUANTILE(x, phi) as the papers define it, and MEDIAN as SQL does."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any

import pyarrow as pa

from panewise.aggregate.base import numeric_type, orderable_type
from panewise.aggregate.multiset import Multiset, sort_values
from panewise.core.errors import AggregateProblem


class Quantile(Multiset):
    """The element at position floor(phi * N), counted from one and at least the first, of the sorted values.

    phi lies in (0, 1] and is taken exactly as written: 0.29 of 100 values is position 29, not 28.
    Paper: "Resource sharing" section 3.3.
    """

    names = ("QUANTILE",)
    parameters = ("phi",)

    def __init__(self, *types: pa.DataType, phi: str | float) -> None:
        try:
            self.phi = Fraction(str(phi))
        except ValueError:
            raise AggregateProblem(
                f"phi {phi!r} of QUANTILE is not a number", fix="use a literal such as 0.95"
            ) from None
        if not 0 < self.phi <= 1:
            raise AggregateProblem(f"phi {phi} of QUANTILE is outside (0, 1]", fix="use a fraction such as 0.95")
        super().__init__(*types)

    def result_type(self) -> pa.DataType:
        return orderable_type(self)

    def meaning(self, values: Sequence[Any]) -> Any:
        return sort_values(values)[max(floor(self.phi * len(values)), 1) - 1] if values else None

    def text(self, arguments: Sequence[str]) -> str:
        return f"QUANTILE({', '.join(arguments)}, {float(self.phi):g})"

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.phi)


class Median(Multiset):
    """The middle value, or the mean of the two middle ones, as in Spark and DuckDB."""

    names = ("MEDIAN",)

    def result_type(self) -> pa.DataType:
        numeric_type(self)
        return pa.float64()

    def meaning(self, values: Sequence[Any]) -> float | None:
        if not values:
            return None
        ordered = sort_values(values)
        low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        return float(low) if low == high else float(low) / 2 + float(high) / 2
