"""What every filter answers: which substreams have an aggregate beyond a threshold, over the last stretch of time.

Substreams are named by codes, small numbers from zero on. Elements come in the order of time. A window ends now and
has the scope `(now - length, now]`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from panewise.core.errors import AggregateProblem, PlanProblem, TimeProblem

Int64Array: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
#: Answers to many lookups: the codes of lookup i lie from offset i to offset i + 1.
LookupAnswers: TypeAlias = tuple[Int64Array, Int64Array]
#: One number, or one for each lookup.
Numbers: TypeAlias = int | Sequence[Any] | npt.NDArray[Any]

#: Stands for no time, and is earlier than any; as in the kernels.
NO_TIME = int(np.iinfo(np.int64).min)
#: The last time there is: nothing is after it.
_LAST_TIME = int(np.iinfo(np.int64).max)
_MAX_CODE = 2**31 - 1
#: Doubles are whole from here on.
_EXACT = 2.0**53


class Filter(ABC):
    """The contract of a filter. `above` and `below` return all right substreams, and others within `epsilon`.

    Only substreams with an element in the window are answered, since a group without rows has no row.
    """

    #: The paper's name.
    name: str
    #: Whether elements have values.
    valued: bool

    def __init__(self) -> None:
        #: The time of the newest element, and the time up to which everything may be forgotten.
        self.newest, self.before = NO_TIME, NO_TIME

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Every substream that `above` returns is above `threshold * (1 - epsilon)`; 0 is exact."""

    @property
    @abstractmethod
    def epsilon_below(self) -> float:
        """Every substream that `below` returns is below `threshold * (1 + epsilon_below)`."""

    def update(self, codes: Int64Array, times: Int64Array, values: Int64Array | None = None) -> None:
        """Take in elements in the order of time, also across calls. On an error none of them is taken."""
        codes, times = _int64_array("codes", codes), _int64_array("times", times)
        taken = None if values is None else _int64_array("values", values)
        self._check(codes, times, taken)
        if len(codes):
            self.take(codes, times, taken)
            self.newest = int(times[-1])

    def above(self, now: int, length: int, threshold: Any) -> Int64Array:
        """The codes, ascending, of substreams whose aggregate over the last `length` may be above the threshold."""
        return self.above_many([now], [length], [threshold])[1]

    def below(self, now: int, length: int, threshold: Any) -> Int64Array:
        """The same below the threshold."""
        return self.below_many([now], [length], [threshold])[1]

    def above_many(self, now: Numbers, length: Numbers, threshold: Numbers) -> LookupAnswers:
        """Many lookups at once; an argument that is one number holds for all of them."""
        return self._many(now, length, threshold, below=False)

    def below_many(self, now: Numbers, length: Numbers, threshold: Numbers) -> LookupAnswers:
        """The same below thresholds."""
        return self._many(now, length, threshold, below=True)

    def forget(self, before: int) -> None:
        """Declare that no window will reach back to an element at `before` or earlier, so that these may be dropped."""
        self.before = max(self.before, before)

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that the arrays take."""

    @abstractmethod
    def take(self, codes: Int64Array, times: Int64Array, values: Int64Array | None) -> None:
        """The part of `update` after all checks, for filters that contain other filters."""

    @abstractmethod
    def lookup(self, cuts: Int64Array, limits: Int64Array, below: bool) -> LookupAnswers:
        """The part of lookups after all checks: substreams with `limit` or more after the cut, or `limit` or less."""

    def check_values(self, values: Int64Array) -> None:
        """Refuse values that the filter cannot take; by default there are none."""
        return

    def _many(self, now: Numbers, length: Numbers, threshold: Numbers, below: bool) -> LookupAnswers:
        times = (_int64_array(name, np.atleast_1d(given)) for name, given in (("times", now), ("lengths", length)))
        ends, lengths, thresholds = np.broadcast_arrays(*times, np.atleast_1d(_array(threshold)))
        limits, impossible = _limits(thresholds, below)
        return self.lookup(np.where(impossible, _LAST_TIME, self._cuts(ends, lengths)), limits, below)

    def _check(self, codes: Int64Array, times: Int64Array, values: Int64Array | None) -> None:
        if self.valued != (values is not None):
            needs = "needs the values of elements" if self.valued else "has no use for values"
            raise AggregateProblem(f"{self.name} {needs}", fix="call update(codes, times, values) for SUM, MIN and MAX")
        lengths = {len(codes), len(times), len(codes) if values is None else len(values)}
        if len(lengths) > 1:
            raise AggregateProblem(f"columns of {', '.join(map(str, sorted(lengths)))} elements are not one batch")
        if not len(codes):
            return
        if codes.min() < 0 or codes.max() > _MAX_CODE:
            wrong = codes.min() if codes.min() < 0 else codes.max()
            raise AggregateProblem(f"{wrong} is no code of a substream", fix=f"use numbers from 0 to {_MAX_CODE}")
        if times[0] == NO_TIME or times[0] < self.newest or (times[1:] < times[:-1]).any():
            raise TimeProblem(f"elements of {self.name} are not in the order of time", fix="sort them before")
        if values is not None:
            self.check_values(values)

    def _cuts(self, now: Int64Array, length: Int64Array) -> Int64Array:
        """The instant after which each window begins."""
        if len(length) and length.min() < 1:
            raise TimeProblem(f"a window over the last {length.min()} is empty", fix="use a length of at least 1")
        if len(now) and now.min() < self.newest:
            raise TimeProblem(
                f"a window that ends at {now.min()} does not reach the newest element, of {self.newest}",
                fix="ask a filter for windows that end now, and a store for historical ones",
            )
        early = now < NO_TIME + length
        cuts: Int64Array = np.where(early, NO_TIME, now - np.where(early, 0, length))
        if len(cuts) and cuts.min() < self.before:
            raise PlanProblem(
                f"a window reaches back to {cuts.min()}, but all up to {self.before} is forgotten",
                fix="forget less, or ask for shorter windows",
            )
        return cuts


def _limits(thresholds: npt.NDArray[Any], below: bool) -> tuple[Int64Array, Flags]:
    """The whole numbers next to thresholds, above or below them, and where there are none; NaN is above all numbers."""
    whole = thresholds.dtype.kind in "iu" and thresholds.dtype != np.uint64
    if whole or (thresholds.dtype.kind == "f" and (np.abs(thresholds) < _EXACT).all()):
        nearest = np.asarray(thresholds if whole else np.ceil(thresholds) if below else np.floor(thresholds), np.int64)
        impossible = nearest == (NO_TIME if below else _LAST_TIME)
        return np.where(impossible, 0, nearest - 1 if below else nearest + 1), impossible
    found = [_limit(threshold, below) for threshold in thresholds.tolist()]
    limits = [min(max(limit, NO_TIME), _LAST_TIME) for limit in found]
    return np.array(limits, np.int64), np.array(
        [limit < NO_TIME if below else limit > _LAST_TIME for limit in found], bool
    )


def _limit(threshold: Any, below: bool) -> int:
    """The same for one number of any size and kind."""
    if threshold != threshold or abs(threshold) == math.inf:
        return 2 * NO_TIME if threshold < 0 else 2 * _LAST_TIME
    return int(math.ceil(threshold) - 1 if below else math.floor(threshold) + 1)


def _array(argument: Numbers) -> npt.NDArray[Any]:
    found = np.asarray(argument)
    return found if found.dtype.kind in "iuf" else np.asarray(argument, object)


def _int64_array(name: str, column: Any) -> Int64Array:
    found = np.asarray(column)
    if found.ndim != 1 or (found.dtype.kind not in "iu" and len(found)) or found.dtype == np.uint64:
        raise AggregateProblem(f"{name} of a filter must be whole numbers of 64 bits, not {found.dtype}")
    return np.ascontiguousarray(found, np.int64)
