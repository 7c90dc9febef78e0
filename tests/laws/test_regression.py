"""Lines in arrays against exact rationals: however points are split, and however far from zero they lie."""

from __future__ import annotations

import math
from contextlib import nullcontext
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise import kernels
from panewise.aggregate import Items, RegrIntercept, RegrR2, RegrSlope, StateWords, put, states_at
from panewise.aggregate.lines import AnchoredLineStates, FloatLineStates, IntegerLineStates

from .test_kernels import twins_in_use

pytestmark = pytest.mark.slow

#: Microseconds since 1970, small numbers, and the ends of int64.
WHOLE = st.sampled_from([0, 1_700_000_000_000_000, -(2**63) + 2**40, 2**62]).flatmap(
    lambda base: st.lists(st.integers(-(2**20), 2**20).map(lambda n: base + n), min_size=1, max_size=12)
)
WIDE = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8)
REAL = st.sampled_from([0.0, 0.1, 1.7e9, -1e15]).flatmap(
    lambda base: st.lists(
        st.one_of(st.floats(-1e3, 1e3), st.integers(-20, 20)).map(lambda n: base + n), min_size=1, max_size=12
    )
)


def decimals(digits: int, scale: int) -> st.SearchStrategy[list[Decimal]]:
    whole = st.one_of(st.integers(-99, 99), st.integers(-(10**digits) + 1, 10**digits - 1))
    return st.lists(whole.map(lambda number: Decimal(f"{number}E-{scale}")), min_size=1, max_size=9)


COLUMNS: dict[str, tuple[Any, ...]] = {
    "whole": (pa.int64(), pa.int64(), st.one_of(WHOLE, WIDE), st.one_of(WHOLE, WIDE), IntegerLineStates),
    "timed": (pa.float64(), pa.timestamp("us"), REAL, WHOLE, FloatLineStates),
    "real": (pa.float64(), pa.float64(), REAL, REAL, AnchoredLineStates),
    "mixed": (pa.int64(), pa.float64(), WHOLE, REAL, AnchoredLineStates),
    "decimal": (pa.decimal128(18, 3), pa.decimal128(12, 5), decimals(18, 3), decimals(12, 5), IntegerLineStates),
    "timed decimal": (pa.decimal128(9, 2), pa.timestamp("us"), decimals(9, 2), WHOLE, IntegerLineStates),
    "decimal over real": (pa.decimal128(9, 2), pa.float64(), decimals(9, 2), REAL, AnchoredLineStates),
}


def state(columns: Any, types: tuple[pa.DataType, ...], points: list[tuple[Any, Any]]) -> StateWords:
    """Points gathered as the rows of one group, which is not the first."""
    arrays = tuple(pa.array([p[n] for p in points], kind) for n, kind in enumerate(types))
    size = np.zeros(len(points), np.int64)
    words: StateWords = columns.gather(size + 1, Items(arrays, size, size), 3)
    return words


def allowed(kind: type, points: list[tuple[Any, Any]], unit: int) -> tuple[Fraction, Fraction]:
    """What pairs may lose of a slope and of the line's value at zero."""
    ys, xs = [Fraction(y) for y, _ in points], [Fraction(x) / unit for _, x in points]
    if kind is AnchoredLineStates:
        far_x, far_y = max(xs) - min(xs), max(ys) - min(ys)
    else:
        far_x, far_y = max(map(abs, xs)), max(map(abs, ys))
    mean = sum(xs, Fraction(0)) / len(xs)
    variance = sum(((x - mean) ** 2 for x in xs), Fraction(0)) / len(xs)
    slope = (
        len(points) ** 2 * Fraction(1, 2**98) * far_x * far_y / variance
        if kind is not IntegerLineStates
        else Fraction(0)
    )
    return slope, (slope + Fraction(1, 2**98) * far_y / (far_x or 1)) * max(map(abs, xs)) + far_y * Fraction(1, 2**98)


def check(call: type[RegrSlope], name: str, points: list[tuple[Any, Any]], answer: float | None) -> None:
    *types, _, _, kind = COLUMNS[name]
    aggregate = call(*types)
    wanted = aggregate.meaning(points)
    if wanted is None or answer is None or math.isnan(wanted):
        assert answer is wanted or (answer is not None and math.isnan(answer))
        return
    slope, value = allowed(kind, points, aggregate.unit)
    loss = {RegrSlope: slope, RegrIntercept: value}.get(call)
    if loss is None:  # r2: what may be lost of the slope, relative to it
        loss = Fraction(2) ** -48 if kind is AnchoredLineStates else Fraction(0)
    error = abs(Fraction(answer) - Fraction(wanted))
    assert error <= 4 * Fraction(math.ulp(wanted)) + loss, (answer, wanted, float(error))


@pytest.mark.parametrize("name", COLUMNS)
@settings(max_examples=40)
@given(data=st.data())
def test_lines_are_as_exact_as_promised(name: str, data: st.DataObject) -> None:
    y, x, ys, xs, kind = COLUMNS[name]
    points = list(zip(data.draw(ys), data.draw(xs), strict=False))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(points)), max_size=3)))
    parts = [points[a:b] for a, b in zip([0, *cuts], [*cuts, len(points)], strict=True)]
    for call in (RegrSlope, RegrIntercept, RegrR2):
        columns = call(y, x).state_arrays()
        assert isinstance(columns, kind if call is not RegrR2 else AnchoredLineStates)
        whole = columns.identity(3)
        for part in data.draw(st.permutations(parts)):
            whole = columns.combine(whole, state(columns, (y, x), part))
        answers = columns.lower(whole).to_pylist()
        assert answers[::2] == [None, None]
        check(call, name, points, answers[1])


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 2.0**400])
@pytest.mark.parametrize("x", [pa.int64(), pa.float64()])
def test_what_is_not_finite_makes_no_line(odd: float, x: pa.DataType) -> None:
    for call in (RegrSlope, RegrIntercept, RegrR2):
        aggregate = call(pa.float64(), x)
        columns = aggregate.state_arrays()
        points = [(1.0, 1), (odd, 2), (2.0, 3)]
        assert math.isnan(aggregate.meaning(points) or 0.0)
        assert math.isnan(columns.lower(state(columns, (pa.float64(), x), points)).to_pylist()[1])


def test_values_that_do_not_vary_are_explained() -> None:
    for y, x in ((pa.float64(), pa.float64()), (pa.float64(), pa.int64()), (pa.int64(), pa.int64())):
        columns = RegrR2(y, x).state_arrays()
        flat = [(0.1 if pa.types.is_floating(y) else 7, n) for n in range(5)]
        both = columns.combine(state(columns, (y, x), flat[:2]), state(columns, (y, x), flat[2:]))
        assert columns.lower(both).to_pylist()[1] == 1.0
        assert columns.lower(state(columns, (y, x), flat[:1] * 3)).to_pylist()[1] is None


def test_a_long_life_costs_no_digits() -> None:
    """A window of 20 points slides 20,000 times over microseconds: what has left leaves nothing behind."""
    random = Random(3)
    slope = RegrSlope(pa.int64(), pa.timestamp("us"))
    columns, types = slope.state_arrays(), (pa.int64(), pa.timestamp("us"))
    points = [(random.randrange(10**9), 1_700_000_000_000_000 + 1000 * n + random.randrange(900)) for n in range(2000)]
    states = [state(columns, types, [point]) for point in points]
    total = columns.identity(3)
    for turn in range(20_000):
        total = columns.combine(total, states[turn % 2000])
        if turn >= 20:
            total = columns.invert(total, states[(turn - 20) % 2000])
    assert columns.lower(total).to_pylist()[1] == pytest.approx(slope.meaning(points[-20:]), rel=1e-15)


@pytest.mark.parametrize("far", [0, 2**35])
@settings(max_examples=15)
@given(data=st.data())
def test_both_twins_of_the_kernels_say_the_same(far: int, data: st.DataObject) -> None:
    """One text serves both, but compiled products are fused and Python's integers do not wrap."""
    size = data.draw(st.integers(1, 8))
    slots = np.array(data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)), np.int64)
    xs = np.array(data.draw(st.lists(st.integers(-far - 9, far + 9), min_size=size, max_size=size)), np.int64)
    ys = np.array(data.draw(st.lists(st.integers(-far - 9, far + 9), min_size=size, max_size=size)), np.int64)
    found = []
    for context in (nullcontext(), twins_in_use("line", "power")):
        words, near = np.zeros((2, 3, 13), np.int64)
        with context:
            kernels.power_whole(slots, xs, ys, words)
            if not far:
                kernels.power_whole_near(slots, xs, ys, -4, near)
            heads, sums = kernels.power_moments(words, np.zeros(3, np.uint8), np.zeros((0, 0)))
            lines = kernels.line_slopes(heads, sums, 1.0), kernels.line_fits(heads, sums)
        found.append((*heads, sums, words, near, *lines))
    for compiled, plain in zip(*found, strict=True):
        assert np.array_equal(compiled, plain)


def test_points_near_an_origin_count_as_any_others() -> None:
    rng = np.random.default_rng(5)
    slots, ys = rng.integers(0, 4, 500), rng.normal(3, 1, 500)
    xs = 1_700_000_000_000_000 + rng.integers(-(2**30), 2**30, 500)
    columns = RegrSlope(pa.float64(), pa.int64()).state_arrays()
    near, far = columns.identity(4), columns.identity(4)
    kernels.power_real_near(slots, xs, ys, int(xs[0]), *near)
    kernels.power_real(slots, xs, ys, *far)
    assert columns.lower(near).to_pylist() == pytest.approx(columns.lower(far).to_pylist(), rel=1e-12)


def test_places_of_states_are_rows() -> None:
    """A word may have several numbers for each group."""
    columns = RegrSlope(pa.int64(), pa.int64()).state_arrays()
    words = columns.identity(4)
    put(words, np.array([2]), states_at(state(columns, (pa.int64(), pa.int64()), [(1, 1), (3, 2)]), np.array([1])))
    assert columns.lower(words).to_pylist() == [None, None, 2.0, None]


@pytest.mark.parametrize("far", [576460752303418384, 576460752303428496])
def test_the_line_through_zero_and_a_far_point_goes_through_zero(far: int) -> None:
    """The squares of x are beyond 2**117 here."""
    columns = RegrIntercept(pa.int64(), pa.int64()).state_arrays()
    words = state(columns, (pa.int64(), pa.int64()), [(0, 0), (1, far)])
    assert abs(columns.lower(words)[1].as_py()) < 2.0**-96
