"""Every filter against the meaning of substream filters, on streams that are made to be difficult."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.filters import CICount, CISum, Exact, Filter, MaxIndex, MinIndex
from panewise.filters.base import Longs
from panewise.reference.substreams import Element, aggregates

some = settings(max_examples=60, deadline=None)
P = st.integers(1, 8)


def longs(values: Any) -> Longs:
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
