"""QUANTILE(x, phi) as the papers define it, and MEDIAN as SQL defines it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from panewise.aggregate.base import Multiset, numeric_type, orderable_type
from panewise.aggregate.multisets import RankedStates
from panewise.aggregate.ordering import sort_values
from panewise.aggregate.states import Int64Array, RankedValues, StateArrays
from panewise.core.errors import AggregateProblem

#: One share for all windows, or one for each; or numerators and denominators, which is faster for many.
Phi: TypeAlias = Fraction | Sequence[Fraction] | tuple[Int64Array, Int64Array]

#: Ranks are computed in int64 if denominators are below this, so that no product overflows.
_SMALL = 2**31


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

    def state_arrays(self) -> StateArrays:
        return QuantileStates(RankedValues(self.types[0], self._deciding_ranks))

    def _deciding_ranks(self, sizes: Int64Array) -> list[Int64Array]:
        return [quantile_ranks(sizes, *shares_of(self.phi))]

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

    def state_arrays(self) -> StateArrays:
        return MedianStates(RankedValues(self.types[0], lambda sizes: [(sizes + 1) // 2, sizes // 2 + 1]))


class QuantileStates(RankedStates):
    """The value at the only rank is the answer."""

    def answer(self, found: Sequence[pa.Array]) -> pa.Array:
        return found[0]


class MedianStates(RankedStates):
    """The mean of the values at both ranks is the answer."""

    def answer(self, found: Sequence[pa.Array]) -> pa.Array:
        low, high = map(_to_floats, found)
        with np.errstate(invalid="ignore"):
            means = np.where(low == high, low, low / 2 + high / 2)
        return pa.array(means, mask=found[0].is_null().to_numpy(zero_copy_only=False))


def _to_floats(values: pa.Array) -> Any:
    """Numbers as the nearest doubles, anything where they are NULL. Arrow rounds decimals well only as texts."""
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string()).cast(pa.float64())
    elif not pa.types.is_floating(values.type):
        values = values.cast(pa.float64(), safe=False)
    return values.to_numpy(zero_copy_only=False).astype(np.float64)


def shares_of(phi: Phi) -> tuple[Any, Any]:
    """Numerators and denominators; Python's numbers where a long does not hold them."""
    if isinstance(phi, tuple):
        above, below = (np.atleast_1d(np.asarray(part)) for part in phi)
    else:
        given = [phi] if isinstance(phi, Fraction) else list(phi)
        above, below = (np.array([getattr(share, part) for share in given]) for part in ("numerator", "denominator"))
    if ((above <= 0) | (above > below)).any():
        bad = int(np.argmax((above <= 0) | (above > below)))
        raise AggregateProblem(
            f"phi {above[bad]}/{below[bad]} of QUANTILE is outside (0, 1]", fix="use a fraction such as 0.95"
        )
    return (above, below) if below.max(initial=1) < _SMALL else (above.astype(object), below.astype(object))


def quantile_ranks(sizes: Int64Array, above: Any, below: Any) -> Int64Array:
    """floor(phi * N), at least one, exactly: for each of some sizes, with its own phi or one for all.

    >>> quantile_ranks(np.array([100, 2]), *shares_of(Fraction("0.29"))).tolist()
    [29, 1]
    """
    whole, rest = sizes // below, sizes % below
    found: Int64Array = np.maximum(above * whole + above * rest // below, 1).astype(np.int64, copy=False)
    return found
