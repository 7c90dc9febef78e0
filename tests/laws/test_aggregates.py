"""The contract of every aggregate: its monoid computes its meaning, and it keeps the laws it declares and no others.

Aggregates are discovered in AGGREGATES, types by asking each aggregate which it takes: a new one is tested by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.aggregate import AGGREGATES, Aggregate, Invertible, Quantile, Sum
from panewise.core.errors import AggregateProblem
from panewise.core.values import to_arrow

from .strategies import ARGUMENTS

#: Values for the literal parameters an aggregate may have; one that needs another is asked for it here.
LITERALS: dict[str, tuple[str, ...]] = {"phi": ("0.29", "0.5"), "k": ("1",), "ahead": ("2",)}


def variants() -> list[Aggregate[Any]]:
    """Every aggregate, bound to every type it accepts (all arguments alike) and every sample of its literals."""
    found: list[Aggregate[Any]] = []
    for kind in dict.fromkeys(AGGREGATES.values()):
        for types in ([t] * kind.arity for t in (ARGUMENTS if kind.arity else [pa.int64()])):
            for literals in product(*(LITERALS[p] for p in kind.parameters)):
                try:
                    found.append(kind(*types, **dict(zip(kind.parameters, literals, strict=True))))
                except AggregateProblem:
                    continue
    return found


VARIANTS = variants()
each = pytest.mark.parametrize("aggregate", VARIANTS, ids=repr)


def test_every_aggregate_meets_the_contract() -> None:
    """One that takes none of the types in ARGUMENTS would be tested by nothing here."""
    assert set(AGGREGATES.values()) == {type(aggregate) for aggregate in VARIANTS}


def values(aggregate: Aggregate[Any]) -> st.SearchStrategy[Any]:
    """One value, or a tuple of them, as an aggregate meets them."""
    columns = [ARGUMENTS[t] for t in aggregate.types]
    return columns[0] if len(columns) == 1 else st.tuples(*columns) if columns else st.just(())


def states(aggregate: Aggregate[Any], data: st.DataObject, count: int) -> list[Any]:
    """States of a few values each."""
    parts = data.draw(st.lists(st.lists(values(aggregate), max_size=4), min_size=count, max_size=count))
    return [folded(aggregate, part) for part in parts]


def folded(aggregate: Aggregate[Any], items: Sequence[Any]) -> Any:
    return reduce(aggregate.combine, map(aggregate.lift, items), aggregate.identity())


def lowered(aggregate: Aggregate[Any], state: Any) -> Any:
    """The answer, or the refusal of an overflow as a value of its own."""
    return answered(lambda: aggregate.lower(state))


def answered(answer: Callable[[], Any]) -> Any:
    try:
        return answer()
    except AggregateProblem as problem:
        return type(problem)


def alike(mine: Any, theirs: Any, ulps: int = 4) -> bool:
    """Equal; floats within a few units in the last place, NaN like NaN."""
    if isinstance(mine, float) and isinstance(theirs, float):
        if not (math.isfinite(mine) and math.isfinite(theirs)):
            return mine == theirs or (math.isnan(mine) and math.isnan(theirs))
        return abs(mine - theirs) <= ulps * max(math.ulp(mine), math.ulp(theirs))
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(alike(a, b, ulps) for a, b in zip(mine, theirs, strict=True))
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return alike([*mine.items()], [*theirs.items()], ulps)
    if isinstance(mine, tuple) and isinstance(theirs, tuple):
        return alike([*mine], [*theirs], ulps)
    return type(mine) is type(theirs) and bool(mine == theirs)


def test_nan_is_like_nan_among_the_most_frequent_values_too() -> None:
    """TOP_K answers with a list of items and counts; two of them were called different if NaN was in both."""
    one, other = ([{"item": float("nan"), "count": count}] for count in (2, 2))
    assert alike(one, other, ulps=0)
    assert not alike(one, [{"item": float("nan"), "count": 1}])


# ---- the monoid ------------------------------------------------------------------------------------------------------


@each
@settings(max_examples=20)
@given(data=st.data())
def test_folding_computes_the_meaning(aggregate: Aggregate[Any], data: st.DataObject) -> None:
    items = data.draw(st.lists(values(aggregate), max_size=8))
    wanted = answered(lambda: aggregate.meaning(items))
    assert alike(lowered(aggregate, folded(aggregate, items)), wanted)


@each
@settings(max_examples=20)
@given(data=st.data())
def test_combine_is_associative(aggregate: Aggregate[Any], data: st.DataObject) -> None:
    a, b, c = states(aggregate, data, 3)
    left = aggregate.combine(aggregate.combine(a, b), c)
    right = aggregate.combine(a, aggregate.combine(b, c))
    assert alike(lowered(aggregate, left), lowered(aggregate, right))


@each
@settings(max_examples=20)
@given(data=st.data())
def test_identity_changes_nothing(aggregate: Aggregate[Any], data: st.DataObject) -> None:
    (state,) = states(aggregate, data, 1)
    wanted = lowered(aggregate, state)
    assert alike(lowered(aggregate, aggregate.combine(state, aggregate.identity())), wanted)
    assert alike(lowered(aggregate, aggregate.combine(aggregate.identity(), state)), wanted)


@each
def test_nothing_means_what_the_identity_says(aggregate: Aggregate[Any]) -> None:
    assert aggregate.lower(aggregate.identity()) == aggregate.meaning([])


@each
@settings(max_examples=15)
@given(data=st.data())
def test_answers_have_the_declared_type(aggregate: Aggregate[Any], data: st.DataObject) -> None:
    answer = answered(lambda: aggregate.meaning(data.draw(st.lists(values(aggregate), max_size=5))))
    if answer is not AggregateProblem:
        numeric_time = pa.types.is_temporal(aggregate.result)
        kind = pa.int64() if numeric_time else aggregate.result
        to_arrow([answer], kind) if pa.types.is_nested(kind) else pa.array([answer], kind)


# ---- declared laws ---------------------------------------------------------------------------------------------------


def having(law: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("aggregate", [a for a in VARIANTS if getattr(a.laws, law)], ids=repr)


def lacking(law: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("aggregate", [a for a in VARIANTS if not getattr(a.laws, law)], ids=repr)


@having("commutative")
@settings(max_examples=20)
@given(data=st.data())
def test_commutative_parts_come_in_any_order(aggregate: Aggregate[Any], data: st.DataObject) -> None:
    a, b = states(aggregate, data, 2)
    one, other = aggregate.combine(a, b), aggregate.combine(b, a)
    assert alike(lowered(aggregate, one), lowered(aggregate, other))


@having("idempotent")
@settings(max_examples=20)
@given(data=st.data())
def test_idempotent_parts_may_be_counted_twice(aggregate: Aggregate[Any], data: st.DataObject) -> None:
    """Also where two parts overlap: what they share may be in both."""
    a, b, c = states(aggregate, data, 3)
    overlapping = aggregate.combine(aggregate.combine(a, b), aggregate.combine(b, c))
    apart = aggregate.combine(a, aggregate.combine(b, c))
    assert alike(lowered(aggregate, aggregate.combine(a, a)), lowered(aggregate, a))
    assert alike(lowered(aggregate, overlapping), lowered(aggregate, apart))


@having("invertible")
@settings(max_examples=20)
@given(data=st.data())
def test_invertible_parts_can_be_taken_out(aggregate: Aggregate[Any], data: st.DataObject) -> None:
    assert isinstance(aggregate, Invertible)
    a, b = states(aggregate, data, 2)
    rest = aggregate.invert(aggregate.combine(a, b), a)
    assert alike(lowered(aggregate, rest), lowered(aggregate, b)) or _cancelled(aggregate, a, b, rest)


def _cancelled(aggregate: Aggregate[Any], a: Any, b: Any, rest: Any) -> bool:
    """Compensated floats keep 106 bits: what is left may be off by that much of the larger part, never more."""
    if not (isinstance(aggregate, Sum) and aggregate.floating):
        return False
    if math.isinf(a[1].high) or math.isinf(b[1].high) or math.isinf(rest[1].high):
        return True  # a finite sum past the largest double stays infinite
    rest_exact, a_exact, b_exact = (Fraction(s[1].high) + Fraction(s[1].low) for s in (rest, a, b))
    error, largest = abs(rest_exact - b_exact), max(abs(a_exact), abs(b_exact))
    return error <= largest * Fraction(1, 2**100)


# ---- laws that are not declared really fail --------------------------------------------------------------------------

#: Small ordered samples that tell values apart; enough for a counterexample to every law an aggregate lacks.
SAMPLES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [1, 2, 5],
    pa.float64(): [1.0, 2.0, 5.0],
    pa.decimal128(10, 2): [Decimal("1.00"), Decimal("2.00"), Decimal("5.00")],
    pa.string(): ["a", "b", "e"],
    pa.timestamp("us"): [1, 2, 5],
    pa.bool_(): [False, True, True],
}


def parts(aggregate: Aggregate[Any]) -> list[tuple[list[Any], Any]]:
    """A few lists of values, with their states."""
    columns = [SAMPLES[t] for t in aggregate.types]
    if len(columns) == 2:  # no line, so that slope and intercept tell the parts apart
        items: list[Any] = list(zip(columns[0], columns[1][1:] + columns[1][:1], strict=True))
    else:
        items = columns[0] if columns else [(), (), ()]
    chosen = [[], items[:1], items[1:2], items[:2], items[::-1][:2], items]
    return [(some, folded(aggregate, some)) for some in chosen]


@lacking("commutative")
def test_ordered_aggregates_are_not_commutative(aggregate: Aggregate[Any]) -> None:
    answers = [
        (aggregate.lower(aggregate.combine(a, b)), aggregate.lower(aggregate.combine(b, a)))
        for (_, a), (_, b) in product(parts(aggregate), repeat=2)
    ]
    assert any(one != other for one, other in answers)


@lacking("idempotent")
def test_other_aggregates_are_not_idempotent(aggregate: Aggregate[Any]) -> None:
    """Counting a shared part twice changes the answer for some overlap."""
    found = parts(aggregate)
    answers = [
        (
            aggregate.lower(aggregate.combine(aggregate.combine(a, b), aggregate.combine(b, c))),
            aggregate.lower(aggregate.combine(a, aggregate.combine(b, c))),
        )
        for (_, a), (_, b), (_, c) in product(found, repeat=3)
    ]
    # Two could be: their answers have a value once. Their states do not, so that values can expire again.
    could = aggregate.names in (("COUNT(DISTINCT)",), ("RECURRING",))
    assert any(one != other for one, other in answers) or could


@lacking("invertible")
def test_other_aggregates_cannot_be_inverted(aggregate: Aggregate[Any]) -> None:
    """Two different rests give the same whole with the same part: no function can tell which one was left."""
    assert not isinstance(aggregate, Invertible)
    found = parts(aggregate)
    assert any(
        aggregate.lower(aggregate.combine(a, b)) == aggregate.lower(aggregate.combine(a, c))
        and aggregate.lower(b) != aggregate.lower(c)
        for (_, a), (_, b), (_, c) in product(found, repeat=3)
    )


def test_a_maximum_cannot_be_taken_out() -> None:
    largest = AGGREGATES["MAX"](pa.int64())
    assert not hasattr(largest, "invert")
    assert largest.combine(5, 1) == largest.combine(5, 3) == 5


# ---- floats ----------------------------------------------------------------------------------------------------------


FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e150, max_value=1e150)


@settings(max_examples=150)
@given(st.lists(FINITE, min_size=1, max_size=40), st.integers(0, 39))
def test_sliding_float_sums_stay_near_fsum(items: list[float], width: int) -> None:
    """Many additions and as many subtractions: the error is that of one rounding, relative to the largest state."""
    total = AGGREGATES["SUM"](pa.float64())
    assert isinstance(total, Sum)
    state = total.identity()
    largest = Fraction(0)
    for n, item in enumerate(items * 3):
        state = total.combine(state, total.lift(item))
        largest = max(largest, abs(Fraction(state[1].value)), abs(Fraction(item)))
        if n >= width:
            state = total.invert(state, total.lift((items * 3)[n - width]))
        window = (items * 3)[max(0, n - width + 1) : n + 1]
        if window:
            exact = math.fsum(window)
            error = abs(Fraction(total.lower(state)) - Fraction(exact))
            assert error <= 2 * Fraction(math.ulp(exact)) + largest * Fraction(n + 1, 2**100)


def test_a_hundred_thousand_additions_and_subtractions_leave_no_error() -> None:
    total = AGGREGATES["SUM"](pa.float64())
    assert isinstance(total, Sum)
    state = total.combine(total.lift(1e16), total.lift(2.0))
    for n in range(100_000):
        state = total.combine(state, total.lift(0.1 * (n % 7)))
    for n in range(100_000):
        state = total.invert(state, total.lift(0.1 * (n % 7)))
    assert total.lower(total.invert(state, total.lift(1e16))) == 2.0


@given(st.lists(st.floats(), max_size=12), st.data())
def test_specials_leave_again(items: list[float], data: st.DataObject) -> None:
    """NaN and infinities are counted aside, so a window recovers when they expire."""
    total = AGGREGATES["SUM"](pa.float64())
    assert isinstance(total, Sum)
    finite = [v for v in items if math.isfinite(v) and abs(v) < 1e150]
    special = [v for v in items if not math.isfinite(v)]
    mixed = data.draw(st.permutations(finite + special))
    rest = total.invert(folded(total, mixed), folded(total, special))
    assert alike(total.lower(rest), total.meaning(finite)) or not finite or _near(total, rest, finite)


def _near(total: Sum, rest: Any, finite: list[float]) -> bool:
    error = abs(Fraction(total.lower(rest)) - Fraction(math.fsum(finite)))
    return error <= sum(abs(Fraction(v)) for v in finite) * Fraction(1, 2**98)


# ---- quantiles -------------------------------------------------------------------------------------------------------


@given(st.integers(1, 100), st.lists(st.integers(), min_size=1, max_size=120))
def test_quantile_is_the_floor_position(percent: int, items: list[int]) -> None:
    """phi is exact: 0.29 of 100 values is position 29, though 0.29 * 100 is 28.999999999999996 in floats."""
    position = max(percent * len(items) // 100, 1)
    assert Quantile(pa.int64(), phi=percent / 100).meaning(items) == sorted(items)[position - 1]


@pytest.mark.parametrize(
    ("phi", "size", "position"), [("0.29", 100, 29), ("0.57", 100, 57), ("0.7", 10, 7), ("1", 3, 3), ("0.01", 5, 1)]
)
def test_quantile_positions(phi: str, size: int, position: int) -> None:
    assert Quantile(pa.int64(), phi=phi).meaning(list(range(1, size + 1))) == position
