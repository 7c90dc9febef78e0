"""Variances in arrays against exact rationals: however values are split, and however far from zero they lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from panewise.aggregate import Items, StateArrays, StateWords
from panewise.aggregate.variance import (
    FloatVarianceStates,
    IntegerVarianceStates,
    StddevPop,
    StddevSamp,
    VarPop,
    VarSamp,
)

from .test_kernels import twins_in_use

pytestmark = pytest.mark.slow

CALLS: list[type[VarSamp]] = [VarSamp, VarPop, StddevSamp, StddevPop]
INTEGERS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
]
#: Numbers of one magnitude, values that differ little beside what they have in common, and mixed magnitudes.
REAL = st.one_of(
    st.lists(st.floats(), max_size=12),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=12),
    st.sampled_from([0.0, 0.1, 1e9, -1e15, 1e300, 1e-300, 5e-324]).flatmap(
        lambda base: st.lists(st.integers(-20, 20).map(lambda n: base + n * math.ulp(base)), max_size=12)
    ),
    st.sampled_from([0.1, 1e9, -1e15]).flatmap(
        lambda base: st.lists(st.floats(-1e3, 1e3).map(lambda x: base + x), max_size=12)
    ),
    st.lists(
        st.sampled_from([0.0, 1e300, -1e308, 1.7e308, 1e-300, 5e-324, 2.0**400, 2.0**-400, 1.0, 3.0]), max_size=12
    ),
)


def whole(kind: pa.DataType) -> st.SearchStrategy[list[int]]:
    """Integers of a type, near to each other or not."""
    bits = kind.bit_width
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, 2**bits - 1)
    near = st.sampled_from([low, high, (low + high) // 2, high // 3]).flatmap(
        lambda base: st.lists(st.integers(max(low, base - 20), min(high, base + 20)), max_size=12)
    )
    return st.one_of(near, st.lists(st.integers(low, high), max_size=12))


def state(columns: StateArrays, kind: pa.DataType, values: Sequence[Any]) -> StateWords:
    """Values gathered as the rows of one group, which is not the first."""
    zeros = np.zeros(len(values), np.int64)
    return columns.gather(zeros + 1, Items((pa.array(values, kind),), zeros, zeros), 3)


def answer(columns: StateArrays, words: StateWords) -> float | None:
    before, found, after = columns.lower(words).to_pylist()
    assert before is None
    assert after is None
    return None if found is None else float(found)


def is_near(found: float | None, wanted: float | None, ulps: int) -> bool:
    if found is None or wanted is None or not (math.isfinite(found) and math.isfinite(wanted)):
        return found == wanted or (None not in (found, wanted) and math.isnan(found or 0) and math.isnan(wanted or 0))
    return abs(Fraction(found) - Fraction(wanted)) <= ulps * Fraction(math.ulp(wanted))


def check(kind: pa.DataType, values: list[Any], data: st.DataObject, ulps: int) -> None:
    """All answers from the values, which are split and combined in any order."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=3)))
    parts = [values[a:b] for a, b in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    order = data.draw(st.permutations(parts))
    for call in CALLS:
        aggregate = call(kind)
        columns = aggregate.state_arrays()
        total = columns.identity(3)
        for part in order:
            total = columns.combine(total, state(columns, kind, part))
        found, wanted = answer(columns, total), aggregate.meaning(values)
        assert is_near(found, wanted, ulps), (call.names[0], found, wanted)


@settings(max_examples=300)
@given(values=REAL, data=st.data())
def test_variances_of_doubles_are_within_one_ulp(values: list[float], data: st.DataObject) -> None:
    assert isinstance(VarSamp(pa.float64()).state_arrays(), FloatVarianceStates)
    check(pa.float64(), values, data, ulps=1)


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_variances_of_integers_are_rounded_once(kind: pa.DataType, data: st.DataObject) -> None:
    assert isinstance(VarSamp(kind).state_arrays(), IntegerVarianceStates)
    check(kind, data.draw(whole(kind)), data, ulps=0)


@settings(max_examples=40)
@given(values=st.lists(st.floats(width=32), max_size=9), data=st.data())
def test_variances_of_short_floats_are_those_of_doubles(values: list[float], data: st.DataObject) -> None:
    check(pa.float32(), values, data, ulps=1)


@pytest.mark.parametrize("call", CALLS)
def test_nulls_count_for_nothing(call: type[VarSamp]) -> None:
    for kind, values in ((pa.float64(), [1.0, None, 2.5]), (pa.int64(), [1, None, 3])):
        columns = call(kind).state_arrays()
        found = answer(columns, state(columns, kind, values))
        assert found == call(kind).meaning([v for v in values if v is not None])


@settings(max_examples=100)
@given(data=st.data(), kind=st.sampled_from([pa.int32(), pa.int64(), pa.uint64()]))
def test_what_leaves_leaves_nothing_behind(data: st.DataObject, kind: pa.DataType) -> None:
    gone, kept = data.draw(whole(kind)), data.draw(whole(kind))
    columns = VarPop(kind).state_arrays()
    part, rest = state(columns, kind, gone), state(columns, kind, kept)
    left = columns.invert(columns.combine(part, rest), part)
    assert all(np.array_equal(a, b) for a, b in zip(left, rest, strict=True))


def test_sums_that_wrapped_around_are_subtracted() -> None:
    """Running totals live longer than windows, and their digits may overflow; the difference of two does not."""
    columns, kind = VarSamp(pa.int64()).state_arrays(), pa.int64()
    values = [-(2**63), 2**63 - 1, 5]
    before = tuple(word + (2**63 - 3) for word in columns.identity(3))
    found = columns.invert(columns.combine(before, state(columns, kind, values)), before)
    assert answer(columns, found) == VarSamp(kind).meaning(values)


@pytest.mark.parametrize("often", [2**12, 2**28])
@pytest.mark.parametrize("values", [[-(2**63), 2**63 - 1, 2**63 - 7], [2**63 - 1, 2**63 - 2], [2**40, 2**40 + 1, 7]])
def test_many_integers_are_rounded_once_too(often: int, values: list[int]) -> None:
    """As if every value had come so many times."""
    columns, kind = VarPop(pa.int64()).state_arrays(), pa.int64()
    words = tuple(word * often for word in state(columns, kind, values))
    assert answer(columns, words) == VarPop(kind).meaning(values)


@pytest.mark.parametrize(
    "draw",
    [
        lambda random: random.gauss(0, 1),
        lambda random: 1e9 + random.random() * 1e-6,
        lambda random: random.lognormvariate(0, 30),
        lambda random: random.choice((1e300, 1e-300, -1e299)),
        lambda random: random.random() * 1e-310,
    ],
    ids=["normal", "offset", "wide", "mixed", "tiny"],
)
@pytest.mark.parametrize("size", [1, 50])
def test_many_doubles_are_within_one_ulp(draw: Any, size: int) -> None:
    """In parts of one value and of many; the first value of all is the anchor, and an outlier."""
    random = Random(7)
    values = [draw(random) * 1e3, *(draw(random) for _ in range(4000))]
    for call in CALLS:
        columns = call(pa.float64()).state_arrays()
        total = columns.identity(3)
        for start in range(0, len(values), size):
            total = columns.combine(total, state(columns, pa.float64(), values[start : start + size]))
        assert is_near(answer(columns, total), call(pa.float64()).meaning(values), ulps=1)


@settings(max_examples=60)
@given(REAL, REAL)
@example([1e300, math.nan], [])
@example([1e308, -1e308], [5e-324])
def test_both_twins_of_the_kernels_say_the_same_of_doubles(left: list[float], right: list[float]) -> None:
    """One text serves both, but compiled products are fused."""
    columns, kind = StddevPop(pa.float64()).state_arrays(), pa.float64()
    found = []
    for context in (nullcontext(), twins_in_use("variance")):
        with context:
            words = columns.combine(state(columns, kind, left), state(columns, kind, right))
            found.append((words, answer(columns, words)))
    (words, one), (others, other) = found
    assert is_near(one, other, ulps=0)
    assert np.array_equal(words[1], others[1])
    # The sums of values that are not finite are never used.
    if words[1][1] < 4:
        assert all(np.array_equal(a, b) for a, b in zip(words, others, strict=True))


@settings(max_examples=60)
@given(data=st.data(), kind=st.sampled_from([pa.int32(), pa.int64(), pa.uint64()]))
def test_both_twins_of_the_kernels_say_the_same_of_integers(data: st.DataObject, kind: pa.DataType) -> None:
    """One text serves both, but Python's integers do not wrap."""
    values = data.draw(whole(kind))
    columns = VarPop(kind).state_arrays()
    found = []
    for context in (nullcontext(), twins_in_use("variance")):
        with context:
            words = state(columns, kind, values)
            found.append((words, answer(columns, words)))
    (words, one), (others, other) = found
    assert one == other
    assert all(np.array_equal(a, b) for a, b in zip(words, others, strict=True))
