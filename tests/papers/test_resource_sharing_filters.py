"""Paper "Resource sharing", section 4: collective indexes for substream filters, and what they cost.

Costs are counted in steps, not in time.
"""

from __future__ import annotations

from math import floor, log2
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.core.errors import AggregateProblem, PlanProblem, TimeProblem
from panewise.filters import CICount, CISum, Exact, Filter, MaxIndex
from panewise.filters.base import Int64Array
from panewise.filters.levels import epsilon_below_of, epsilon_of
from panewise.reference.substreams import above, aggregates

pytestmark = pytest.mark.slow

some = settings(max_examples=40, deadline=None)


def longs(values: object) -> Int64Array:
    return np.array(values, np.int64)


# ---- 4.1.1: figure 7, as it is printed -------------------------------------------------------------------------------


class Figure7:
    """CI-COUNT to the letter; what the search trees find is looked for in all of TSTAMP."""

    def __init__(self) -> None:
        self.length: dict[str, int] = {}
        self.tstamp: dict[tuple[str, int], int] = {}

    def update(self, key: str, time: int) -> None:
        m = self.length[key] = self.length.get(key, 0) + 1
        p = 1
        z = ((m + p) & -(m + p)).bit_length() - 1
        for level in range(z, 0, -1):
            if (key, level - 1) in self.tstamp:
                self.tstamp[key, level] = self.tstamp[key, level - 1]
        self.tstamp[key, 0] = time

    def lookup(self, now: int, length: int, threshold: int, since: int | None = None) -> set[str]:
        level = floor(log2(threshold)) - 1
        first = now - length if since is None else since
        return {key for (key, at), time in self.tstamp.items() if at == level and time >= first}


#: Figure 8 is lost but for what example 4.1 says of it: the timestamps of the 11th element from the end, 90, 85 and 68,
#: TSTAMP[k3, 2] = 85, and that it is 87 or later for k1 and k2. All others are ours.
FIGURE_8 = {
    "k1": [86, 88, 89, 90, 91, 92, 93, 94, 96, 97, 99, 101, 103, 105],
    "k2": [60, 74, 80, 85, 86, 86, 86, 87, 89, 92, 94, 97, 100, 104],
    "k3": [40, 55, 61, 68, 72, 75, 79, 85, 86, 88, 90, 95, 99, 102],
}
CODES = {"k1": 0, "k2": 1, "k3": 2}


def figure_8() -> list[tuple[int, int, int]]:
    found = [(CODES[key], time, 1) for key, times in FIGURE_8.items() for time in times]
    return sorted(found, key=lambda element: element[1])


def literal() -> Figure7:
    index = Figure7()
    for key, times in FIGURE_8.items():
        for time in times:
            index.update(key, time)
    return index


def test_figure_8_has_the_timestamps_that_the_text_names() -> None:
    assert {key: times[-11] for key, times in FIGURE_8.items()} == {"k1": 90, "k2": 85, "k3": 68}
    tstamp = literal().tstamp
    assert tstamp["k3", 2] == 85
    assert tstamp["k1", 2] >= 87
    assert tstamp["k2", 2] >= 87


def test_example_4_1_the_exact_output_is_k1_and_ci_count_finds_k1_and_k2() -> None:
    """LOOKUP(106, 20, 11). The scope of the paper's section 2, and ours, begins at 106 - 20 + 1 = 87."""
    assert above(figure_8(), "COUNT", 106, 20, 11) == {CODES["k1"]}
    assert {key for key, times in FIGURE_8.items() if times[-11] >= 87} == {"k1"}
    assert literal().lookup(106, 20, 11, since=87) == {"k1", "k2"}


def test_example_4_1_by_our_index() -> None:
    index, exact = CICount(p=1), Exact(CICount(p=1))
    codes, times, _ = (longs(column) for column in zip(*figure_8(), strict=True))
    for filter_ in (index, exact):
        filter_.update(codes, times)
    assert index.above(106, 20, 11).tolist() == [CODES["k1"], CODES["k2"]]
    assert exact.above(106, 20, 11).tolist() == [CODES["k1"]]


@some
@given(times=st.lists(st.integers(0, 60), max_size=80), now=st.integers(60, 70), length=st.integers(1, 70))
def test_our_levels_are_those_of_figure_7(times: list[int], now: int, length: int) -> None:
    """Where both use the same level they find the same; a threshold of 2^n - 2 is the first that ours uses level n - 1
    for, and the paper's 2^n."""
    index, paper = CICount(p=1), Figure7()
    index.update(longs([0] * len(times)), longs(sorted(times)))
    for time in sorted(times):
        paper.update("k", time)
    for level in range(6):
        found = bool(paper.lookup(now, length, 2 ** (level + 1), since=now - length + 1))
        assert index.above(now, length, 2 ** (level + 1) - 2).tolist() == ([0] if found else [])


def test_definition_4_1_the_level_of_a_distance() -> None:
    """The last position is at level 0, the two before it at level 1, the four before these at level 2."""
    index = CICount(p=1)
    levels = np.searchsorted(index._starts, np.arange(1, 100), side="right") - 1
    assert levels.tolist() == [floor(log2(distance)) for distance in range(1, 100)]


# ---- lemma 4.1 and 4.1.2 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "epsilon"), [(1, 0.75), (2, 0.5), (4, 1 / 3), (8, 0.2)])
def test_lemma_4_1_the_epsilon_of_p(p: int, epsilon: float) -> None:
    """3/4 for one level of each size, 1/2 for two, roughly 2/p beyond; below thresholds a little more."""
    assert CICount(p).epsilon == pytest.approx(epsilon)
    assert CICount(p).epsilon <= 2 / p
    assert CICount(p).epsilon_below == pytest.approx(1 / (1 - epsilon) - 1)


@pytest.mark.parametrize("p", range(1, 9))
def test_lemma_4_1_epsilon_is_kept_and_no_smaller_one_would_be(p: int) -> None:
    """By arithmetic over the levels: no answer is further off, for all thresholds, and some come near."""
    index = CICount(p)
    starts, ends = index._starts, index._ends
    thresholds = np.arange(1, 20_000)
    loose = np.searchsorted(ends, thresholds + 1, side="right") - 1
    share = starts[loose] / thresholds  # a candidate has at least as many as its level begins with
    assert share.min() > 1 - epsilon_of(p)
    assert share.min() < 1 - epsilon_of(p) + 0.01
    strict = np.searchsorted(starts, thresholds)
    excess = (ends[strict] - 1) / thresholds  # and below at most as many as are before the level ends
    assert excess.max() < 1 + epsilon_below_of(p)
    assert excess.max() > 1 + epsilon_below_of(p) - 0.02


@pytest.mark.parametrize("epsilon", [0.9, 0.75, 0.5, 0.3, 0.1, 0.03])
def test_an_epsilon_that_is_asked_for_holds_on_both_sides(epsilon: float) -> None:
    index = CICount(epsilon=epsilon)
    assert index.epsilon <= epsilon
    assert index.epsilon_below <= epsilon
    assert index.p <= 2 / epsilon + 2


# ---- theorem 4.1 -----------------------------------------------------------------------------------------------------


def fill(index: Filter, keys: int, count: int, seed: int = 4) -> list[tuple[int, int, int]]:
    random = Random(seed)
    elements = [(int(keys * random.random() ** 3), time, random.randint(0, 9)) for time in range(count)]
    codes, times, values = (longs(column) for column in zip(*elements, strict=True))
    for start in range(0, count, 100):
        part = slice(start, start + 100)
        index.update(codes[part], times[part], values[part] if index.valued else None)
        index.above(index.newest, 500, 8)
    return elements


@pytest.mark.parametrize("p", [1, 2, 8])
def test_theorem_4_1_space_is_keys_times_log_n(p: int) -> None:
    keys, count = 100, 8_000
    index = CICount(p)
    elements = fill(index, keys, count)
    longest = max(aggregates(elements, "COUNT", count, count).values())
    assert index.rows <= p * (log2(longest / p + 1) + 2)


def test_theorem_4_1_space_shrinks_to_what_windows_can_see() -> None:
    index = CICount(p=4)
    fill(index, 5, 8_000)
    before = index.rows
    index.forget(index.newest - 50)
    assert index.rows < 2 * before / 3
    assert index.rows <= 4 * (log2(50 / 4 + 1) + 3)
    index.update(longs([3] * 200), longs([8_000] * 200))
    assert index.above(8_000, 10, 150).tolist() == [3]


@pytest.mark.parametrize("p", [1, 4])
def test_theorem_4_1_updates_take_log_keys_steps(p: int) -> None:
    """Amortised: 2p timestamps are set, and each rises by less than the height of a heap."""
    index, keys, count = CICount(p), 64, 8_000
    fill(index, keys, count)
    assert index.work.stamps_set <= 2 * p * count
    assert index.work.heap_steps <= 2 * p * count * log2(keys)


def test_theorem_4_1_lookups_visit_what_they_answer() -> None:
    index = CICount(p=4)
    fill(index, 1_000, 8_000)
    for length, threshold in [(50, 3), (500, 8), (4_000, 20), (8_000, 100), (100, 1_000)]:
        before = index.work.keys_visited
        found = index.above(index.newest, length, threshold)
        assert index.work.keys_visited - before == len(found)


# ---- 4.2: CI-SUM -----------------------------------------------------------------------------------------------------


@some
@given(
    p=st.integers(1, 5),
    elements=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 20)), max_size=30),
    threshold=st.integers(0, 150),
    length=st.integers(1, 40),
)
def test_ci_sum_is_ci_count_of_copies(
    p: int, elements: list[tuple[int, int, int]], threshold: int, length: int
) -> None:
    """Each element as often as its value says, with the same timestamp."""
    sums, counts = CISum(p), CICount(p)
    times = np.cumsum([0, *(gap for _, gap, _ in elements)])[1:]
    for (code, _, value), time in zip(elements, times.tolist(), strict=True):
        sums.update(longs([code]), longs([time]), longs([value]))
        counts.update(longs([code] * value), longs([time] * value))
    now = int(times[-1]) if len(times) else 0
    assert sums.above(now, length, threshold).tolist() == counts.above(now, length, threshold).tolist()


@pytest.mark.parametrize("exponent", [0, 10, 20, 40])
def test_a_bulk_update_takes_log_value_steps(exponent: int) -> None:
    """2**exponent copies at once set p * (exponent + 3) timestamps at most, amortised, not p * 2**exponent."""
    index, p, count = CISum(p=3), 3, 200
    value = 2**exponent
    index.update(longs([0] * count), longs(range(count)), longs([value + n % 2 for n in range(count)]))
    assert index.work.stamps_set <= count * p * (exponent + 3)


def test_sums_of_zero_are_sums() -> None:
    index = Exact(CISum(p=2))
    index.update(longs([4, 5]), longs([1, 2]), longs([0, 7]))
    assert index.below(2, 5, 1).tolist() == [4]
    assert index.above(2, 5, -1).tolist() == [4, 5]
    assert index.below(2, 1, 1).tolist() == []


# ---- MAX and MIN: our own design, decision 20 ------------------------------------------------------------------------


def test_the_index_of_extremes_keeps_its_bounds() -> None:
    """Values that fall are the worst: no element is ever dominated, so that N is all of them."""
    index, count = MaxIndex(), 4_096
    index.update(longs([n % 64 for n in range(count)]), longs(range(count)), longs(range(count, 0, -1)))
    log = log2(count)
    assert index.entries <= 2 * count * log
    assert index.work[0] <= 4 * count * log**2
    before = index.work[1]
    found = index.above(count, 100, count - 4_000)
    assert index.work[1] - before <= 4 * log**2 + 2 * len(found)


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_bad_arguments_are_refused_and_nothing_is_lost() -> None:
    index = CISum(p=2)
    index.update(longs([0, 1]), longs([10, 20]), longs([5, 5]))
    for codes, times, values in [([0], [5], [1]), ([0, 0], [30, 25], [1, 1]), ([0], [-(2**63)], [1])]:
        with pytest.raises(TimeProblem, match="not in the order of time"):
            index.update(longs(codes), longs(times), longs(values))
    with pytest.raises(AggregateProblem, match="cannot take the value -1"):
        index.update(longs([0]), longs([30]), longs([-1]))
    with pytest.raises(AggregateProblem, match="needs the values"):
        index.update(longs([0]), longs([30]))
    with pytest.raises(AggregateProblem, match="-3 is no code"):
        index.update(longs([-3]), longs([30]), longs([1]))
    with pytest.raises(AggregateProblem, match="columns of 1, 2 elements"):
        index.update(longs([1]), longs([30, 30]), longs([1]))
    with pytest.raises(AggregateProblem, match="together exceed"):
        index.update(longs([0]), longs([30]), longs([2**62]))
    with pytest.raises(TimeProblem, match="does not reach the newest element, of 20"):
        index.above(19, 5, 1)
    with pytest.raises(TimeProblem, match="the last 0 is empty"):
        index.above(20, 0, 1)
    index.forget(12)
    with pytest.raises(PlanProblem, match="all up to 12 is forgotten"):
        index.above(20, 9, 1)
    assert index.above(20, 8, 4).tolist() == [1]


def test_levels_are_given_once_and_in_bounds() -> None:
    with pytest.raises(PlanProblem, match="say the same twice"):
        CICount(p=2, epsilon=0.5)
    for epsilon in (0.0, 1.0, -1, float("nan")):
        with pytest.raises(PlanProblem, match="is not between"):
            CICount(epsilon=epsilon)
    wrong: list[Any] = [0, -1, 2.0, True, 5_000]
    for p in wrong:
        with pytest.raises(PlanProblem, match="is no number of levels"):
            CICount(p=p)
