"""Sums, means and variances of decimals in arrays: what their meaning is, whatever is added and taken out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.aggregate import Aggregate, Avg, Items, ObjectStates, StateArrays, StateWords, StddevPop, Sum, VarSamp
from panewise.core.errors import AggregateProblem
from panewise.core.values import to_arrow, to_python

from .test_aggregates import alike
from .test_kernels import twins_in_use

pytestmark = pytest.mark.slow

GROUPS = 3
KINDS = [pa.decimal128(*digits) for digits in ((5, 2), (18, 3), (19, 0), (25, 4), (38, 10), (38, 38))]


def numbers(kind: pa.DataType) -> st.SearchStrategy[Decimal]:
    """Those with few digits, with as many as there can be, and the largest ones."""
    most = 10**kind.precision - 1
    whole = st.one_of(st.integers(-9, 9), st.integers(-most, most), st.sampled_from([-most, most, 2**64, -(2**63)]))
    return whole.filter(lambda number: abs(number) <= most).map(lambda number: Decimal(f"{number}E-{kind.scale}"))


def gathered(columns: StateArrays, rows: list[tuple[int, Any]], kind: pa.DataType) -> StateWords:
    slots, values = np.array([group for group, _ in rows], np.int64), to_arrow([value for _, value in rows], kind)
    return columns.gather(slots, Items((values,), *[np.zeros(len(rows), np.int64)] * 2), GROUPS)


def outcome(answers: Callable[[], pa.Array]) -> list[Any]:
    """The answers, or what the refusal says."""
    try:
        return to_python(answers())
    except AggregateProblem as problem:
        return [str(problem)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("call", [Sum, Avg, VarSamp, StddevPop])
@settings(max_examples=40)
@given(data=st.data())
def test_states_compute_the_meaning(kind: pa.DataType, call: type[Aggregate[Any]], data: st.DataObject) -> None:
    aggregate = call(kind)
    rows = st.lists(st.tuples(st.integers(0, GROUPS - 1), st.one_of(st.none(), numbers(kind))), max_size=9)
    parts, gone = data.draw(st.lists(rows, min_size=1, max_size=3)), data.draw(rows)
    kept = [[v for part in parts for g, v in part if g == group and v is not None] for group in range(GROUPS)]
    for context in (nullcontext(), twins_in_use("decimal", "variance")):
        with context:
            columns = aggregate.state_arrays()
            assert columns.exact
            total = columns.identity(GROUPS)
            for part in parts:
                total = columns.combine(gathered(columns, part, kind), total)
            extra = gathered(columns, gone, kind)
            total = columns.invert(columns.combine(total, extra), extra)
            wanted = outcome(lambda: to_arrow([aggregate.meaning(values) for values in kept], aggregate.result))
            assert alike(outcome(lambda: columns.lower(total)), wanted, ulps=int(call in (VarSamp, StddevPop)))  # noqa: B023


@pytest.mark.parametrize("call", [Sum, Avg])
@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, GROUPS - 1),
            st.one_of(st.none(), st.integers(0, 9), st.integers(0, 2**64 - 1), st.sampled_from([2**63, 2**64 - 1])),
        ),
        max_size=9,
    ),
    st.integers(0, 9),
)
def test_numbers_of_64_bits_without_a_sign(
    call: type[Aggregate[Any]], rows: list[tuple[int, int | None]], cut: int
) -> None:
    """Sums of these are exact beyond 2**64 too, where AVG needs them, and SUM refuses what BIGINT does not hold."""
    aggregate, kind = call(pa.uint64()), pa.uint64()
    kept = [[v for g, v in rows if g == group and v is not None] for group in range(GROUPS)]
    columns = aggregate.state_arrays()
    total = columns.combine(gathered(columns, rows[:cut], kind), gathered(columns, rows[cut:], kind))
    wanted = outcome(lambda: to_arrow([aggregate.meaning(values) for values in kept], aggregate.result))
    assert outcome(lambda: columns.lower(total)) == wanted


@pytest.mark.parametrize("call", [Sum, Avg, VarSamp, StddevPop])
@pytest.mark.parametrize("kind", [*KINDS, pa.uint64()], ids=str)
def test_no_state_is_an_object(kind: pa.DataType, call: type[Aggregate[Any]]) -> None:
    assert not isinstance(call(kind).state_arrays(), ObjectStates)


def test_halves_are_rounded_away_from_zero() -> None:
    kind = pa.decimal128(38, 38)
    for numbers_of_group, mean in (("1 2", 2), ("-1 -2", -2), ("1 1 2", 1), ("-5 -5 -6", -5)):
        values = [Decimal(f"{number}E-38") for number in numbers_of_group.split()]
        columns = Avg(kind).state_arrays()
        (found, *_) = to_python(columns.lower(gathered(columns, [(0, value) for value in values], kind)))
        assert found == Decimal(f"{mean}E-38")
