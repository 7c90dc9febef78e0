"""Every filter against the meaning of substream filters, on streams that are made to be difficult."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.filters import CICount, CISum, Exact, Filter, MaxIndex, MinIndex
from panewise.filters.base import Int64Array
from panewise.reference.substreams import Element, aggregates

from .test_kernels import twins_in_use

pytestmark = pytest.mark.slow

some = settings(max_examples=30, deadline=None)
P = st.integers(1, 8)


def longs(values: Any) -> Int64Array:
    return np.array(list(values), np.int64)


def fed(index: Filter, elements: list[Element], batch: int = 7) -> Filter:
    """The elements in batches, so that levels, substreams and batches grow at different moments."""
    for start in range(0, len(elements), batch):
        codes, times, values = (longs(column) for column in zip(*elements[start : start + batch], strict=True))
        index.update(codes, times, values if index.valued else None)
    return index


@st.composite
def streams(draw: st.DrawFn, values: st.SearchStrategy[int], size: int = 150) -> list[Element]:
    """Bursts of one substream, equal timestamps, gaps, a giant key among small ones."""
    elements: list[Element] = []
    time = draw(st.integers(-5, 5))
    for _ in range(draw(st.integers(0, 12))):
        code = draw(st.sampled_from([0, 0, 0, 1, 2, 5, 70]))
        step = draw(st.sampled_from([0, 0, 1, 3]))
        for _ in range(draw(st.integers(1, 40))):
            if len(elements) == size:
                return elements
            elements.append((code, time, draw(values)))
            time += step
        time += draw(st.sampled_from([0, 1, 10]))
    return elements


def near_powers(highest: int) -> st.SearchStrategy[int | float]:
    powers = st.integers(0, highest).flatmap(lambda n: st.sampled_from([2**n - 1, 2**n, 2**n + 1, 2**n + 0.5]))
    return st.one_of(powers, st.integers(-2, 200))


def lookups(highest: int) -> st.SearchStrategy[list[tuple[int, int, float]]]:
    """How long after the newest element, how far back, and a threshold."""
    return st.lists(st.tuples(st.integers(0, 3), st.integers(1, 80), near_powers(highest)), min_size=1, max_size=8)


def keeps_its_word(index: Filter, elements: list[Element], aggregate: str, asked: list[tuple[int, int, float]]) -> None:
    newest = elements[-1][1] if elements else 0
    for later, length, threshold in asked:
        now = newest + later
        truth = aggregates(elements, aggregate, now, length)
        above, below = index.above(now, length, threshold).tolist(), index.below(now, length, threshold).tolist()
        assert above == sorted(set(above))
        assert below == sorted(set(below))
        assert {k for k, v in truth.items() if v > threshold} <= set(above) <= truth.keys()
        assert {k for k, v in truth.items() if v < threshold} <= set(below) <= truth.keys()
        low = threshold * (1 - Fraction(index.epsilon).limit_denominator(10**4))
        high = threshold * (1 + Fraction(index.epsilon_below).limit_denominator(10**4))
        assert all(truth[k] > low or (index.epsilon and threshold < 0) for k in above)
        assert all(truth[k] < high or (index.epsilon and threshold < 0) for k in below)


@some
@given(p=P, elements=streams(st.just(1)), asked=lookups(8), batch=st.integers(1, 50))
def test_ci_count_keeps_its_word(p: int, elements: list[Element], asked: Any, batch: int) -> None:
    keeps_its_word(fed(Exact(CICount(p)), elements, batch), elements, "COUNT", asked)
    keeps_its_word(fed(CICount(p), elements, batch), elements, "COUNT", asked)


@some
@given(
    p=P,
    elements=streams(st.one_of(st.integers(0, 3), st.sampled_from([0, 2**40, 2**39 - 1, 1000])), 60),
    asked=lookups(44),
    batch=st.integers(1, 50),
)
def test_ci_sum_keeps_its_word(p: int, elements: list[Element], asked: Any, batch: int) -> None:
    keeps_its_word(fed(Exact(CISum(p)), elements, batch), elements, "SUM", asked)
    keeps_its_word(fed(CISum(p), elements, batch), elements, "SUM", asked)


EXTREMES = {"MAX": MaxIndex, "MIN": MinIndex}


@some
@given(
    aggregate=st.sampled_from(["MAX", "MIN"]),
    elements=streams(st.one_of(st.integers(-9, 9), st.sampled_from([-(2**63), 2**63 - 1]))),
    asked=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 80), st.integers(-10, 10)), min_size=1, max_size=8),
    batch=st.integers(1, 50),
)
def test_extremes_are_exact(aggregate: str, elements: list[Element], asked: Any, batch: int) -> None:
    keeps_its_word(fed(EXTREMES[aggregate](), elements, batch), elements, aggregate, asked)


# ---- while elements come and go --------------------------------------------------------------------------------------

FILTERS: dict[str, Callable[[int], Filter]] = {
    "COUNT": lambda p: Exact(CICount(p)),
    "SUM": lambda p: Exact(CISum(p)),
    "MAX": lambda p: MaxIndex(),
    "MIN": lambda p: MinIndex(),
}
each = pytest.mark.parametrize("aggregate", FILTERS)


@each
@some
@given(data=st.data(), p=P, elements=streams(st.integers(0, 9)), reach=st.integers(1, 60))
def test_lookups_between_updates_see_what_came_and_forget_nothing_within_reach(
    aggregate: str, data: st.DataObject, p: int, elements: list[Element], reach: int
) -> None:
    """Heaps follow late, rings wrap, levels come and go."""
    index = FILTERS[aggregate](p)
    start = 0
    while start < len(elements):
        batch = data.draw(st.integers(1, 40))
        fed(index, elements[start : start + batch], batch)
        start += batch
        asked = data.draw(st.lists(st.tuples(st.just(0), st.integers(1, reach), near_powers(6)), max_size=3))
        keeps_its_word(index, elements[:start], aggregate, asked)
        if isinstance(index, Exact):
            keeps_its_word(index.index, elements[:start], aggregate, asked)
        if data.draw(st.booleans()):
            index.forget(index.newest - reach)


@each
@some
@given(p=P, elements=streams(st.integers(0, 9)), asked=lookups(8))
def test_many_lookups_at_once_are_as_many_lookups(
    aggregate: str, p: int, elements: list[Element], asked: list[tuple[int, int, float]]
) -> None:
    index = fed(FILTERS[aggregate](p), elements)
    later, lengths, thresholds = zip(*asked, strict=True)
    now = [max(index.newest, 0) + more for more in later]
    for many, one in ((index.above_many, index.above), (index.below_many, index.below)):
        offsets, codes = many(now, lengths, thresholds)
        answers = [codes[a:b].tolist() for a, b in pairwise(offsets.tolist())]
        assert answers == [one(*question).tolist() for question in zip(now, lengths, thresholds, strict=True)]


@each
@settings(max_examples=15, deadline=None)
@given(p=P, elements=streams(st.integers(0, 9), 80), asked=lookups(6))
def test_numba_on_is_numba_off(aggregate: str, p: int, elements: list[Element], asked: Any) -> None:
    def answers() -> list[Any]:
        index = fed(FILTERS[aggregate](p), elements)
        now = max(index.newest, 0) + 3
        found = [index.above_many(now, length, threshold) for _, length, threshold in asked]
        found += [index.below_many(now, length, threshold) for _, length, threshold in asked]
        return [[part.tolist() for part in answer] for answer in found]

    compiled = answers()
    with twins_in_use("level", "running", "peak"):
        assert answers() == compiled


# ---- what the laws have not drawn ------------------------------------------------------------------------------------


@each
def test_thresholds_of_any_kind_and_size(aggregate: str) -> None:
    index = fed(FILTERS[aggregate](3), [(3, 1, 5), (8, 2, 5)])
    least: list[Any] = [-math.inf, -(2**70), -0.5, Fraction(1, 3), Decimal("0.25"), np.float64(0.5)]
    for threshold in least:
        assert index.above(2, 9, threshold).tolist() == [3, 8], threshold
        assert index.below(2, 9, threshold).tolist() == []
    most: list[Any] = [math.inf, math.nan, 2**70, 1e300, 5.5, Fraction(16, 3), Decimal("5.01")]
    for threshold in most:
        assert index.above(2, 9, threshold).tolist() == []
        assert index.below(2, 9, threshold).tolist() == [3, 8], threshold


@each
def test_an_empty_filter_and_an_empty_batch(aggregate: str) -> None:
    index = FILTERS[aggregate](2)
    nothing = longs([])
    index.update(nothing, nothing, nothing if index.valued else None)
    assert index.above(0, 10, 0).tolist() == index.below(0, 10, 5).tolist() == []
    assert [part.tolist() for part in index.above_many([], [], [])] == [[0], []]
    index.forget(5)
    assert index.above(2**63 - 1, 2**62, 0).tolist() == []
    assert index.nbytes > 0


def test_windows_of_all_time() -> None:
    index = fed(Exact(CICount(2)), [(0, -(2**63) + 1, 1), (0, 2**63 - 1, 1)])
    assert index.above(2**63 - 1, 2**63 - 1, 0).tolist() == [0]
    assert fed(Exact(CICount(2)), [(0, -(2**63) + 1, 1)]).above(-5, 2**63 - 1, 0).tolist() == [0]


def test_one_giant_substream_among_many_small_ones() -> None:
    elements = [(0 if n % 10 else n // 10 + 1, n // 7, 1) for n in range(5_000)]
    index = fed(Exact(CICount(4)), elements, batch=900)
    now = elements[-1][1]
    for length in (1, 10, 100, 1000):
        truth = aggregates(elements, "COUNT", now, length)
        for threshold in (0, 1, 5, 63, 64, 65, 1023, 1024, 4000):
            wanted = sorted(k for k, v in truth.items() if v > threshold)
            assert index.above(now, length, threshold).tolist() == wanted
