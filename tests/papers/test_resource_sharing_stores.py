"""Paper "Resource sharing", sections 3.1 and 3.2: base, landmark and running intervals, and what they cost.

Costs are counted in calls of `combine` and `invert`, not in time.
"""

from __future__ import annotations

from collections import Counter
from math import log2
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panewise.aggregate import Aggregate, First, Max, Sum
from panewise.stores import BaseIntervals, LandmarkIntervals, RunningIntervals, Store, TwoStacks
from panewise.stores.base_intervals import cover
from panewise.stores.landmark_intervals import SPREAD, landmark_from, partition_widths

INT = pa.int64()
Interval = tuple[int, int]


def counting(aggregate: Aggregate[Any]) -> Counter[str]:
    """Makes one aggregate count how often it combines and inverts."""
    calls = Counter[str]()

    def watch(name: str) -> None:
        method = getattr(aggregate, name)

        def counted(left: Any, right: Any) -> Any:
            calls[name] += 1
            return method(left, right)

        setattr(aggregate, name, counted)

    for name in ("combine", "invert"):
        if hasattr(aggregate, name):
            watch(name)
    return calls


def fill(store: Store[Any], length: int) -> None:
    for value in range(length):
        store.append(store.aggregate.lift(value))


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


def test_definition_3_1_a_level_7_base_interval() -> None:
    assert is_base((385, 512))
    assert base_cover(385, 512) == [(385, 512)]
    assert is_base((385, 448))
    assert is_base((449, 512))
    assert not is_base((386, 513))


@given(first=st.integers(1, 10**6), width=st.integers(1, 10**6))
def test_theorem_3_1_an_interval_is_a_disjoint_union_of_few_base_intervals(first: int, width: int) -> None:
    parts = base_cover(first, first + width - 1)
    assert all(map(is_base, parts))
    assert adjoin(parts, first, first + width - 1)
    assert len(parts) <= 2 * log2(width) + 1


def test_example_3_1_the_interval_1_43() -> None:
    """The paper names eight parts; ours are the largest ones possible, so that four do."""
    paper = [(1, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 40), (41, 42), (43, 43)]
    ours = base_cover(1, 43)
    for parts in (paper, ours):
        assert all(map(is_base, parts))
        assert adjoin(parts, 1, 43)
    assert ours == [(1, 32), (33, 40), (41, 42), (43, 43)]


@pytest.mark.parametrize("reach", [16, 100, 1000])
def test_theorem_3_2_costs_of_base_intervals(reach: int) -> None:
    """O(N_max) space, O(1) amortised updates, and lookups in O(log W) whatever N_max is."""
    aggregate = Max(INT)
    calls, store = counting(aggregate), BaseIntervals(aggregate, reach)
    fill(store, 4096)
    assert calls["combine"] < 4096
    assert len(store._intervals) <= 2 * reach
    for width in (1, 3, 10, 16, 97, 1000):
        for first in range(max(4096 - reach + 1, 3000), 4096 - width + 2):
            calls.clear()
            assert store.lookup(first, first + width - 1) == first + width - 2
            assert calls["combine"] <= 2 * log2(width) + 1


def test_only_active_base_intervals_are_kept() -> None:
    """An interval is active while it lies within the last N_max positions."""
    store = BaseIntervals(Max(INT), 37)
    for length in range(1, 300):
        store.append(length)
        assert all(length - 37 < end - width + 1 and end <= length for end, width in store._intervals)


# ---- 3.1.2: landmark intervals ---------------------------------------------------------------------------------------


def is_landmark_interval(interval: Interval, narrowest: int, widest: int) -> bool:
    """Definition 3.2: (a * W_min, a * W_min + d) or (a * W_min - d, a * W_min - 1), with d <= W_max."""
    first, last = interval
    return (first % narrowest == 0 and last - first <= widest) or (
        (last + 1) % narrowest == 0 and last + 1 - first <= widest
    )


def landmark_cover(first: int, last: int, narrowest: int) -> list[Interval]:
    """The parts that a lookup combines."""
    landmark = landmark_from(first, narrowest)
    return [part for part in ((first, landmark - 1), (landmark, last)) if part[0] <= part[1]]


def landmarks_held(store: LandmarkIntervals[Any]) -> int:
    return sum(landmarks.state_count for landmarks in store.partitions)


@pytest.mark.parametrize(
    ("interval", "expected"), [((75, 999), True), ((1762, 2999), True), ((5000, 6542), True), ((5000, 7162), False)]
)
def test_definition_3_2_landmark_intervals_for_1000_and_2000(interval: Interval, expected: bool) -> None:
    assert is_landmark_interval(interval, 1000, 2000) is expected


@given(narrowest=st.integers(1, 50), spread=st.integers(0, 100), first=st.integers(1, 500), data=st.data())
def test_theorem_3_3_an_interval_is_a_disjoint_union_of_at_most_two_landmark_intervals(
    narrowest: int, spread: int, first: int, data: st.DataObject
) -> None:
    widest = narrowest + spread
    last = first + data.draw(st.integers(narrowest, widest)) - 1
    parts = landmark_cover(first, last, narrowest)
    assert adjoin(parts, first, last)
    assert len(parts) <= 2
    assert all(is_landmark_interval(part, narrowest, widest) for part in parts)


def test_example_3_2_the_interval_3257_5164() -> None:
    assert landmark_cover(3257, 5164, 1000) == [(3257, 3999), (4000, 5164)]
    store = LandmarkIntervals(Max(INT), 3000, (1000, 1908, 2000))
    fill(store, 5500)
    assert store.lookup(3257, 5164) == 5163


@pytest.mark.parametrize(("narrowest", "reach"), [(1, 4), (5, 10), (50, 100), (50, 1000), (500, 1000)])
def test_theorem_3_4_costs_of_landmark_intervals(narrowest: int, reach: int) -> None:
    """O(N_max) space, O(1) amortised updates and O(1) lookups, of suffix and historical windows."""
    widths, aggregate, length = range(narrowest, SPREAD * narrowest + 1), Max(INT), 5000
    calls, store = counting(aggregate), LandmarkIntervals(aggregate, reach, widths)
    fill(store, length)
    assert len(store.partitions) == 1
    assert calls["combine"] <= (SPREAD + 2) * length
    assert landmarks_held(store) <= (2 * SPREAD + 4) * reach
    random = Random(reach)
    for _ in range(200):
        width = random.choice(widths)
        last = random.randint(length - reach + width, length)
        calls.clear()
        assert store.lookup(last - width + 1, last) == last - 1
        assert calls["combine"] <= 1


def test_only_active_landmark_intervals_are_kept() -> None:
    """Nothing is held that no lookup can ask for, except that a landmark stays for one position more."""
    store = LandmarkIntervals(Max(INT), 37, (5, 9))
    (landmarks,) = store.partitions
    for length in range(1, 300):
        store.append(length)
        assert all(length - 37 <= landmark <= length for landmark in landmarks._since)
        assert len(landmarks._until) <= 37
        assert len(landmarks._block) <= 5


def test_landmark_intervals_in_the_general_case() -> None:
    """gamma partitions: O(gamma) updates, O(1) lookups, O(gamma * N_max) space."""
    widths, aggregate, reach, length = (10, 15, 20, 300, 500), Max(INT), 1000, 4000
    calls, store = counting(aggregate), LandmarkIntervals(aggregate, reach, widths)
    assert partition_widths(widths) == [(10, 15, 20), (300, 500)]
    fill(store, length)
    assert calls["combine"] <= 2 * (SPREAD + 2) * length
    assert landmarks_held(store) <= 2 * (2 * SPREAD + 4) * reach
    for width in widths:
        for last in range(length - reach + width, length + 1, 7):
            calls.clear()
            assert store.lookup(last - width + 1, last) == last - 1
            assert calls["combine"] <= 1


@given(reach=st.integers(1, 10**5))
def test_any_widths_need_no_more_than_a_logarithm_of_partitions(reach: int) -> None:
    """gamma = O(log N_max), even if every width up to N_max is asked for."""
    assert len(partition_widths(range(1, reach + 1))) <= log2(reach) + 1


def test_suffix_windows_share_one_space() -> None:
    """Where all windows are suffixes, O(N_max) space serves all partitions together."""
    widths, reach = [2**level for level in range(11)], 1024
    suffixes = LandmarkIntervals(Max(INT), reach, widths, suffix=True)
    anywhere = LandmarkIntervals(Max(INT), reach, widths)
    for store in (suffixes, anywhere):
        fill(store, 3000)
        assert [store.lookup(3000 - width + 1, 3000) for width in widths] == [2999] * len(widths)
    assert landmarks_held(suffixes) <= 2 * (2 * SPREAD + 4) * reach
    assert landmarks_held(anywhere) > 2 * landmarks_held(suffixes)


def test_half_filled_windows_begin_at_position_one() -> None:
    """Section 2: while the stream is shorter than N_L, a window holds what there is."""
    store = LandmarkIntervals(First(INT), 100, (40, 70))
    for length in range(1, 101):
        store.append(length)
        for left, right in ((40, 0), (70, 0), (60, 20), (100, 30)):
            first, last = max(length - left + 1, 1), length - right
            if first <= last:
                assert store.lookup(first, last) == first


# ---- 3.2: running intervals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reach", [10, 1000])
def test_costs_of_running_intervals(reach: int) -> None:
    """Section 3.2: any interval is the difference of two running ones; O(1) update and lookup, O(N_max) space."""
    aggregate = Sum(INT)
    calls, store = counting(aggregate), RunningIntervals(aggregate, reach)
    fill(store, 3000)
    assert calls["combine"] == 3000
    assert len(store._totals) == reach + 1
    for width in (1, 7, reach):
        calls.clear()
        first = 3000 - reach + 1
        assert store.lookup(first, first + width - 1) == (width, sum(range(first - 1, first + width - 1)))
        assert calls == {"invert": 1}


# ---- not in the paper: two-stacks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 10, 1000])
def test_costs_of_two_stacks(width: int) -> None:
    """One suffix window, sliding by one: two combinations an append and one a lookup, however wide the window is."""
    aggregate = Max(INT)
    calls, store = counting(aggregate), TwoStacks(aggregate, width)
    for length in range(1, 5001):
        store.append(length)
        assert store.lookup(max(length - width + 1, 1), length) == length
        assert len(store) <= width
    assert calls["combine"] <= 3 * 5000
