"""Every compiled kernel against its twin, which says what the kernel must do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise import kernels
from panewise.aggregate import Int64Array
from panewise.aggregate.dictionary import IntegerCodes
from panewise.kernels import KERNELS

pytestmark = pytest.mark.slow

#: Kernels that are compared by what uses them, with `twins_in_use`: by the first word of their names.
FAMILIES = {
    "frame": "test_frames.py",
    "interval": "test_stores.py",
    "quantile": "test_stores.py",
    "level": "test_filters.py",
    "running": "test_filters.py",
    "peak": "test_filters.py",
    "line": "test_regression.py",
    "power": "test_regression.py",
    "variance": "test_variance.py",
    "range": "test_moving.py",
    "stretch": "test_moving.py",
    "runs": "test_ragged_states.py",
    "sketch": "test_ragged_states.py",
    "series": "test_series.py",
    "decimal": "test_decimals.py",
}


@contextmanager
def twins_in_use(*families: str) -> Iterator[None]:
    """Until the end, all kernels of some families are their twins."""
    names = [name for name in all_kernels() if name.partition("_")[0] in families]
    assert set(families) <= set(FAMILIES)
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(kernels, name, KERNELS[name].twin, raising=False)
        yield


LONG = st.one_of(st.integers(-9, 9), st.integers(-(2**62), 2**62), st.sampled_from([-(2**63), 2**63 - 1]))
DOUBLE = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1e308, 0.1]))
SLOTS = 5
#: What a kernel is told of a row: its slot, a number, a time and a double.
Row: TypeAlias = tuple[int, int, int, float]
ROWS = st.lists(st.tuples(st.integers(0, SLOTS - 1), LONG, st.integers(-5, 5), DOUBLE), max_size=12)


def longs(values: Iterable[int]) -> Int64Array:
    return np.array(list(values), np.int64)


@dataclass(frozen=True)
class Rows:
    """The same in columns."""

    slots: Int64Array
    values: Int64Array
    times: Int64Array
    doubles: Any

    @classmethod
    def of(cls, rows: list[Row]) -> Rows:
        doubles = np.array([row[3] for row in rows], np.float64)
        return cls(longs(r[0] for r in rows), longs(r[1] for r in rows), longs(r[2] for r in rows), doubles)


def agree(name: str, *arguments: Any) -> None:
    """Both twins return the same and leave the same in what they write to, bit by bit."""
    left, right = ([_copied(a) for a in arguments] for _ in range(2))
    one, other = getattr(kernels, name)(*left), KERNELS[name].twin(*right)
    assert _bits(one) == _bits(other)
    assert _bits(left) == _bits(right)


def _copied(value: Any) -> Any:
    return tuple(map(_copied, value)) if isinstance(value, tuple) else value.copy() if hasattr(value, "copy") else value


def _bits(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_bits(v) for v in value]
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        value = np.where(np.isnan(value), np.nan, value).view(np.int64)
    return value.tolist() if hasattr(value, "tolist") else value


def sums_of(rows: Rows) -> tuple[Any, Any, Any]:
    """The sums of the doubles of some rows, as `add_floats` makes them."""
    sums = np.zeros(SLOTS), np.zeros(SLOTS), np.zeros(SLOTS, np.uint8)
    KERNELS["add_floats"].twin(rows.slots, rows.doubles, *sums)
    return sums


def joined(rows: Rows, start: int, in_order: bool) -> Any:
    """One side of a join, whose rows up to `start` are chained already."""
    enters = np.sort(rows.times)
    leaves = enters + (3 if in_order else rows.values % 7)
    heads, links = np.full(SLOTS, -1, np.int64), np.full(len(enters), -1, np.int64)
    for row, code in enumerate(rows.slots[:start]):
        links[row], heads[code] = heads[code], row
    return rows.slots[start:], min(start, len(enters)), enters, leaves, heads, links, in_order


@dataclass(frozen=True)
class Drawn:
    """What one example gives to the kernels: rows, other rows, and numbers."""

    rows: Rows
    others: Rows
    base: int
    width: int
    flip: int
    table: Int64Array

    @property
    def least(self) -> Int64Array:
        return np.full(SLOTS, np.iinfo(np.int64).min, np.int64)

    @property
    def zeros(self) -> Int64Array:
        return np.zeros(SLOTS, np.int64)

    @property
    def seen(self) -> Any:
        return np.zeros(SLOTS, bool)

    @property
    def totals(self) -> Int64Array:
        """Sixteen rows of running totals of one group."""
        return np.cumsum(np.resize(np.append(self.rows.times, 1), 16)).reshape(16, 1)


DRAWN = st.builds(
    Drawn,
    ROWS.map(Rows.of),
    ROWS.map(Rows.of),
    st.integers(-30, 30),
    st.integers(1, 9),
    st.sampled_from([0, -1]),
    st.lists(st.integers(-1, 9), max_size=8).map(longs),
)


def latest(d: Drawn, sign: int) -> tuple[Any, ...]:
    numbers = np.arange(len(d.rows.slots), dtype=np.int64)
    return d.rows.slots, sign * d.rows.times, sign * numbers, numbers, (d.least, d.least, d.zeros)


def rows_or_none(rows: Rows) -> Int64Array:
    """The places of rows, -1 for a third of them."""
    return np.where(rows.values % 3 == 0, -1, np.arange(len(rows.values)))


#: The arguments of every kernel that does not belong to one of the families, or that no law of its family reaches.
ARGUMENTS: dict[str, Callable[[Drawn], list[tuple[Any, ...]]]] = {
    "pane_numbers": lambda d: [
        (d.rows.times * 7, d.base, d.width),
        (d.rows.values // 4, d.base, d.width * 1_000_000_007),
    ],
    "dense_slots": lambda d: [(d.rows.times, d.rows.slots, -5, SLOTS)],
    "table_codes": lambda d: [(d.rows.values, d.base, d.table), (d.rows.times, -2, d.table)],
    "hash_codes": lambda d: [
        (d.rows.values, (np.zeros(size, np.int64), np.full(size, -1, np.int64)), d.zeros, 0, np.zeros(12, np.int64), 0)
        for size in (4, 8)
    ],
    "count": lambda d: [(d.rows.slots, d.zeros)],
    "add_integers": lambda d: [(d.rows.slots, d.rows.values, d.zeros, d.zeros)],
    "add_floats": lambda d: [
        (d.rows.slots, d.rows.doubles, np.zeros(SLOTS), np.zeros(SLOTS), np.zeros(SLOTS, np.uint8)),
        (d.rows.slots, d.rows.doubles, *sums_of(d.others)),
    ],
    "add_pairs": lambda d: [(*sums_of(d.others)[:2], *sums_of(d.rows)[:2])],
    "take_greatest": lambda d: [(d.rows.slots, d.rows.values ^ d.flip, d.least, d.seen)],
    "take_greatest_floats": lambda d: [
        (d.rows.slots, d.rows.doubles.view(np.int64), np.int64(d.flip), d.least, d.seen),
    ],
    "take_latest": lambda d: [latest(d, 1), latest(d, -1)],
    "bucket_order": lambda d: [(d.rows.slots, SLOTS)],
    "range_blocks": lambda d: [
        (np.searchsorted(np.sort(d.rows.slots), np.arange(SLOTS + 1)), times, d.width, np.arange(SLOTS) * 2)
        for times in (d.rows.times, np.sort(d.rows.times))
    ],
    "session_numbers": lambda d: [
        (d.rows.slots, d.rows.times, d.rows.times + np.maximum(d.rows.values % 5 - 2, 0), d.width, SLOTS, known)
        for known in (
            (d.zeros[:0], d.zeros[:0], d.zeros[:0]),
            (d.others.slots, d.others.times - 3, d.others.times - 3 + d.others.values % 4),
        )
    ],
    "overlap_join": lambda d: [
        (joined(d.rows, start, in_order), joined(d.others, 0, in_order))
        for start in (0, 3)
        for in_order in (False, True)
    ],
    "range_subscribed": lambda d: [(np.sort(d.rows.slots), np.unique(d.others.slots))],
    "range_present": lambda d: [(np.unique(d.others.slots), np.sort(d.rows.slots), rows_or_none(d.rows))],
    "range_equal": lambda d: [
        (values, np.arange(len(values))[::-1].copy(), np.arange(len(values)), d.rows.values % 3 != 0)
        for values in (d.rows.times, d.rows.doubles)
    ],
    "range_report": lambda d: [
        (d.rows.slots, SLOTS, rows_or_none(d.rows), rows_or_none(d.rows)[::-1].copy(), d.rows.times > 3)
    ],
    "lifetime_groups": lambda d: [
        (
            np.where(d.rows.times == 1, -1, d.rows.slots),
            d.rows.times,
            d.rows.times + d.rows.values % 7,
            d.base // 6,
            d.base // 6 + d.width,
            opening,
            SLOTS,
        )
        for opening in (False, True)
    ],
    "range_newer": lambda d: [
        (longs([0, len(d.rows.times)]), d.rows.times, np.arange(len(d.rows.times)), enough) for enough in (1, 9)
    ],
    "interval_run": lambda d: [(d.totals, d.rows.values.reshape(-1, 1) // 64, length) for length in (0, 13)],
    "interval_ends": lambda d: [
        (np.sort(d.rows.values), np.minimum(d.others.slots, size), np.full(len(d.others.slots), size), d.others.values)
        for size in [len(d.rows.values)]
    ],
    "interval_differences": lambda d: [
        (d.totals, d.rows.slots + 14, d.rows.slots + 15 + d.width, np.zeros(len(d.rows.slots), np.int64))
    ],
}


def all_kernels() -> list[str]:
    kernels.count  # noqa: B018  finds all kernels
    return sorted(KERNELS)


@pytest.mark.parametrize("name", all_kernels())
def test_every_kernel_is_compared_with_its_twin(name: str) -> None:
    """Here, if it has two texts; else here or by a law of what uses it."""
    family = FAMILIES.get(name.partition("_")[0])
    assert name in ARGUMENTS or (family is not None and is_one_text(name))
    if family is not None:
        assert "twins_in_use" in (Path(__file__).parent / family).read_text()


def is_one_text(name: str) -> bool:
    return KERNELS[name].loops.__name__ == name


@pytest.mark.parametrize("name", ARGUMENTS)
@settings(max_examples=100)
@given(DRAWN)
def test_compiled_kernels_do_as_their_twins(name: str, drawn: Drawn) -> None:
    for arguments in ARGUMENTS[name](drawn):
        agree(name, *arguments)


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.lists(LONG, max_size=40),
            st.builds(
                lambda low, many, step: range(low, low + many * step, step),
                LONG.map(lambda n: n // 4),
                st.integers(0, 3000),
                st.integers(1, 5000),
            ),
        ),
        max_size=5,
    ),
    st.integers(0, 1),
)
@pytest.mark.parametrize("compiled", [True, False])
def test_numbers_are_given_in_the_order_of_appearance(compiled: bool, batches: list[Sequence[int]], first: int) -> None:
    """Through tables and hashes, and while both grow."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("table_codes", "hash_codes"):
            patch.setattr(kernels, name, getattr(kernels, name) if compiled else KERNELS[name].twin)
        numbers, known = IntegerCodes(first), dict[int, int]()
        for batch in batches:
            wanted = [known.setdefault(value, first + len(known)) for value in batch]
            assert numbers.encode(longs(batch)).tolist() == wanted
        assert len(numbers) == first + len(known)
        assert numbers.take(longs(known.values())).tolist() == list(known)
