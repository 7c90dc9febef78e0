"""Paper "Resource sharing", sections 3 and 5: base, landmark and running intervals in arrays, and what they cost.

Costs are counted in states combined, not in time.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import log2
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.aggregate import Int64Array, Items, StateArrays, StateWords, Sum
from panewise.stores.arrays import ArrayStore, BaseArrays, LandmarkArrays, QuantileArrays, RunningArrays
from panewise.stores.arrays.base_intervals import cover
from panewise.stores.arrays.landmarks import SPREAD, landmark_from, partition_widths
from panewise.stores.totals import TwoStackTotal

pytestmark = pytest.mark.slow

Interval = tuple[int, int]


class Spans(StateArrays):
    """The first and last position of a part; subtracting takes away its beginning. Remembers what it is given."""

    exact = True

    def __init__(self) -> None:
        self.calls: list[tuple[Interval, Interval]] = []

    def identity(self, size: int) -> StateWords:
        return np.full(size, 10**9, np.int64), np.zeros(size, np.int64)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        self._remember(left, right)
        return np.minimum(left[0], right[0]), np.maximum(left[1], right[1])

    def invert(self, whole: StateWords, part: StateWords) -> StateWords:
        self._remember(whole, part)
        return part[1] + 1, whole[1]

    def lower(self, words: StateWords) -> pa.Array:
        raise NotImplementedError

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        raise NotImplementedError

    def _remember(self, left: StateWords, right: StateWords) -> None:
        self.calls += zip(_intervals(left), _intervals(right), strict=True)


def _intervals(words: StateWords) -> list[Interval]:
    return list(zip(words[0].tolist(), words[1].tolist(), strict=True))


def fill(store: ArrayStore, length: int, batches: Random | None = None) -> int:
    """Position after position, in batches of any size; how many states were combined."""
    column: Any = store.column
    column.calls.clear()
    while store.length < length:
        count = min(batches.choice([1, 2, 7, 100, 1000]) if batches else 1000, store.reach, length - store.length)
        positions = np.arange(store.length + 1, store.length + count + 1)
        store.append((positions, positions))
    done = len(column.calls)
    column.calls.clear()
    return done


def parts_of(store: ArrayStore, first: int, last: int) -> list[Interval]:
    """The kept intervals that one lookup puts together, oldest first."""
    column: Any = store.column
    column.calls.clear()
    assert _intervals(store.lookup(np.array([first]), np.array([last]))) == [(first, last)]
    given = [part for pair in column.calls for part in pair]
    # What a lookup has put together so far overlaps what it puts in next; its parts are those that hold no other.
    if isinstance(store, LandmarkArrays):
        return [(first, last)] if (first, last) in given else sorted(given)
    return sorted(part for _, part in column.calls)


def windows(store: ArrayStore, count: int, width: int | None = None) -> Iterator[Interval]:
    random = Random(store.reach)
    for _ in range(count):
        wide = width or random.randint(1, store.reach)
        last = random.randint(store.forgotten_until + wide, store.length)
        yield last - wide + 1, last


def adjoin(intervals: list[Interval], first: int, last: int) -> bool:
    """Whether the intervals are a disjoint union of (first, last), in order."""
    ends = [first - 1, *(end for _, end in intervals)]
    pairs = zip(ends, intervals, strict=False)
    return ends[-1] == last and all(left == before + 1 and left <= right for before, (left, right) in pairs)


# ---- 3.1.1: base intervals -------------------------------------------------------------------------------------------


def is_base(interval: Interval) -> bool:
    """Definition 3.1: (2^l * i + 1, 2^l * (i + 1)) for some i >= 0."""
    first, last = interval
    width = last - first + 1
    return width & (width - 1) == 0 and (first - 1) % width == 0


def base_cover(first: int, last: int) -> list[Interval]:
    return [(end - width + 1, end) for end, width in cover(first, last)]


def test_definition_3_1_the_level_7_base_interval_is_kept_whole() -> None:
    assert all(map(is_base, [(385, 512), (385, 448), (449, 512)]))
    assert not is_base((386, 513))
    store = BaseArrays(Spans(), 512)
    fill(store, 600)
    assert parts_of(store, 385, 512) == [(385, 512)]
    assert parts_of(store, 386, 513)[-1] == (513, 513)


def test_example_3_1_the_interval_1_43() -> None:
    """The paper names eight parts; ours are the largest ones possible, so that four do."""
    store = BaseArrays(Spans(), 50)
    fill(store, 43)
    paper = [(1, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 40), (41, 42), (43, 43)]
    ours = parts_of(store, 1, 43)
    for parts in (paper, ours):
        assert all(map(is_base, parts))
        assert adjoin(parts, 1, 43)
    assert ours == [(1, 32), (33, 40), (41, 42), (43, 43)]


@given(first=st.integers(1, 10**6), width=st.integers(1, 10**6))
def test_theorem_3_1_an_interval_is_a_disjoint_union_of_few_base_intervals(first: int, width: int) -> None:
    parts = base_cover(first, first + width - 1)
    assert all(map(is_base, parts))
    assert adjoin(parts, first, first + width - 1)
    assert len(parts) <= 2 * log2(width) + 1


@settings(max_examples=40)
@given(reach=st.integers(1, 300), length=st.integers(1, 700), data=st.data())
def test_theorem_3_1_a_lookup_puts_few_disjoint_base_intervals_together(
    reach: int, length: int, data: st.DataObject
) -> None:
    store = BaseArrays(Spans(), reach)
    fill(store, length, Random(length))
    first = data.draw(st.integers(store.forgotten_until + 1, length))
    last = data.draw(st.integers(first, length))
    assert parts_of(store, first, last) == base_cover(first, last)


@pytest.mark.parametrize("reach", [1, 16, 100, 1000])
def test_theorem_3_2_costs_of_base_intervals(reach: int) -> None:
    """O(N_max) space, O(1) amortised updates in any batches, and lookups in O(log W) whatever N_max is."""
    store, length = BaseArrays(Spans(), reach), 5000
    assert fill(store, length, Random(reach)) < length
    assert store.capacity <= 4 * reach
    for first, last in windows(store, 50):
        assert len(parts_of(store, first, last)) <= 2 * log2(last - first + 1) + 1


# ---- 3.1.2: landmark intervals ---------------------------------------------------------------------------------------


def is_landmark_interval(interval: Interval, narrowest: int, widest: int) -> bool:
    """Definition 3.2: (a * W_min, a * W_min + d) or (a * W_min - d, a * W_min - 1), with d <= W_max."""
    first, last = interval
    return (first % narrowest == 0 and last - first <= widest) or (
        (last + 1) % narrowest == 0 and last + 1 - first <= widest
    )


@pytest.mark.parametrize(
    ("interval", "expected"), [((75, 999), True), ((1762, 2999), True), ((5000, 6542), True), ((5000, 7162), False)]
)
def test_definition_3_2_landmark_intervals_for_1000_and_2000(interval: Interval, expected: bool) -> None:
    assert is_landmark_interval(interval, 1000, 2000) is expected


@given(narrowest=st.integers(1, 50), spread=st.integers(0, 100), first=st.integers(1, 500), data=st.data())
def test_theorem_3_3_an_interval_is_a_disjoint_union_of_at_most_two_landmark_intervals(
    narrowest: int, spread: int, first: int, data: st.DataObject
) -> None:
    """However far the widths spread."""
    last = first + data.draw(st.integers(narrowest, narrowest + spread)) - 1
    landmark = landmark_from(first, narrowest)
    parts = [part for part in ((first, landmark - 1), (landmark, last)) if part[0] <= part[1]]
    assert adjoin(parts, first, last)
    assert all(is_landmark_interval(part, narrowest, narrowest + spread) for part in parts)


def test_example_3_2_the_interval_3257_5164() -> None:
    store = LandmarkArrays(Spans(), 3000, widths=(1000, 1908, 2000))
    fill(store, 5500)
    assert parts_of(store, 3257, 5164) == [(3257, 3999), (4000, 5164)]


def test_definition_3_2_a_window_that_is_a_landmark_interval_is_kept_whole() -> None:
    store = LandmarkArrays(Spans(), 3000, widths=(1000, 1543, 2000))
    fill(store, 7000)
    assert parts_of(store, 5000, 6542) == [(5000, 6542)]


@settings(max_examples=40)
@given(narrowest=st.integers(1, 40), spread=st.floats(1, SPREAD), more=st.integers(0, 100), data=st.data())
def test_theorem_3_3_a_lookup_puts_at_most_two_landmark_intervals_together(
    narrowest: int, spread: float, more: int, data: st.DataObject
) -> None:
    widest = int(narrowest * spread)
    store = LandmarkArrays(Spans(), widest + more, widths=range(narrowest, widest + 1))
    fill(store, 2 * store.reach + 3, Random(more))
    width = data.draw(st.integers(narrowest, widest))
    last = data.draw(st.integers(store.forgotten_until + width, store.length))
    parts = parts_of(store, last - width + 1, last)
    assert len(parts) <= 2
    assert adjoin(parts, last - width + 1, last)
    assert all(is_landmark_interval(part, narrowest, widest) for part in parts)


@pytest.mark.parametrize(("narrowest", "reach"), [(1, 4), (5, 10), (50, 100), (50, 1000), (500, 1000)])
def test_theorem_3_4_costs_of_landmark_intervals(narrowest: int, reach: int) -> None:
    """O(N_max) space, O(1) amortised updates and O(1) lookups, of suffix and historical windows."""
    widths, length = range(narrowest, SPREAD * narrowest + 1), 5000
    store = LandmarkArrays(Spans(), reach, widths=widths)
    assert len(store.partitions) == 1
    assert fill(store, length, Random(reach)) <= 2 * (SPREAD + 2) * length
    assert store.capacity <= 14 * (reach + 1)
    for width in (widths[0], widths[len(widths) // 2], widths[-1]):
        for first, last in windows(store, 20, width):
            assert len(parts_of(store, first, last)) <= 2


def test_landmark_intervals_in_the_general_case() -> None:
    """gamma partitions: O(gamma) updates, O(1) lookups, O(gamma * N_max) space; suffixes share O(N_max) of it."""
    widths, reach, length = [2**level for level in range(11)], 1024, 4000
    gamma = len(partition_widths(widths))
    anywhere = LandmarkArrays(Spans(), reach, widths=widths)
    suffixes = LandmarkArrays(Spans(), reach, widths=widths, suffix=True)
    for store, most in ((anywhere, 14 * gamma * (reach + 1)), (suffixes, 28 * (reach + 1))):
        assert len(store.partitions) == gamma == 6
        assert fill(store, length, Random(gamma)) <= 2 * gamma * (SPREAD + 2) * length
        assert store.capacity <= most
        for width in widths:
            assert len(parts_of(store, length - width + 1, length)) <= 2
    assert anywhere.capacity > 2 * suffixes.capacity


def test_widths_that_spread_by_more_than_a_factor_are_partitioned() -> None:
    store = LandmarkArrays(Spans(), 1000, widths=(10, 15, 20, 300, 500))
    assert [(part.narrowest, part.widest) for part in store.partitions] == [(10, 20), (300, 500)]


@given(reach=st.integers(1, 10**5))
def test_any_widths_need_no_more_than_a_logarithm_of_partitions(reach: int) -> None:
    """gamma = O(log N_max), even if every width up to N_max is asked for."""
    assert len(partition_widths(range(1, reach + 1))) <= log2(reach) + 1


def test_half_filled_windows_begin_at_position_one() -> None:
    """Section 2: while the stream is shorter than N_L, a window holds what there is."""
    store = LandmarkArrays(Spans(), 100, widths=(40, 70))
    for length in range(1, 101):
        fill(store, length)
        for left, right in ((40, 0), (70, 0), (60, 20), (100, 30)):
            first, last = max(length - left + 1, 1), length - right
            if first <= last:
                assert store.lookup_one(first, last) == (first, last)


# ---- 3.2: running intervals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reach", [1, 10, 1000])
def test_costs_of_running_intervals(reach: int) -> None:
    """Any interval is the difference of two running ones; O(1) update and lookup, O(N_max) space."""
    column, length = Spans(), 5000
    store = RunningArrays(column, reach)
    assert fill(store, length, Random(reach)) <= 3 * length
    assert store.capacity <= 2 * (reach + 1)
    for first, last in windows(store, 30):
        column.calls.clear()
        assert store.lookup_one(first, last)[1] == last
        ((whole, before),) = column.calls
        assert (whole[1], before[1]) == (last, first - 1)


# ---- not in the paper: two stacks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 10, 1000])
def test_costs_of_two_stacks(width: int) -> None:
    """One suffix window, sliding by one: two combinations a pane and one a total, however wide the window is."""
    column, group = Spans(), np.zeros(1, np.int64)
    total, length = TwoStackTotal(column), 5000
    total.grow(1)
    panes = [(np.array([position]), np.array([position])) for position in range(1, length + 1)]
    for now, pane in enumerate(panes, 1):
        total.push(group, pane)
        if now > width:
            total.pop(group, panes[now - width - 1])
        assert _intervals(total.total()) == [(max(now - width + 1, 1), now)]
    assert len(column.calls) <= 3 * length


# ---- 3.3: quantiles --------------------------------------------------------------------------------------------------


def test_quantiles_with_different_parameters_in_one_lookup() -> None:
    """Section 3.3: operators may differ in phi; the answer is the element at position floor(phi * N)."""
    store = QuantileArrays(100)
    store.append(np.ones(100, np.int64), np.arange(100, 0, -1))
    shares = [Fraction("0.29"), Fraction(1, 2), Fraction(1), Fraction(1, 1000)]
    values, found = store.lookup(np.full(4, 1), np.full(4, 100), shares)
    assert values.tolist() == [29, 50, 100, 1]
    assert found.all()


@pytest.mark.parametrize("reach", [1, 16, 100, 1000])
def test_space_of_quantiles(reach: int) -> None:
    """Figure 1: O(N_max log N_max)."""
    store = QuantileArrays(reach)
    store.append(np.ones(3000, np.int64), np.arange(3000))
    assert store.capacity <= 2 * reach * (log2(reach) + 1)


# ---- 5: arrays -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RunningArrays, BaseArrays])
def test_space_depends_on_the_reach_and_not_on_the_stream(kind: type[ArrayStore]) -> None:
    """Section 5: circular arrays; what is allocated for N_max positions is never allocated again."""
    store = kind(Sum(pa.int64()).state_arrays(), 100)
    store.append(tuple(np.ones(100, np.int64) for _ in range(3)))
    before = store.nbytes
    for _ in range(50):
        store.append(tuple(np.ones(37, np.int64) for _ in range(3)))
    assert store.nbytes == before
