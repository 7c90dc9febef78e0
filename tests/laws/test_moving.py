"""Groups over rows with lifetimes: states at every change against the meaning of aggregates, and counted windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise import kernels
from panewise.aggregate import (
    Aggregate,
    ApproxDistinct,
    Avg,
    Count,
    CountDistinct,
    CountStates,
    First,
    Int64Array,
    Items,
    Last,
    Max,
    Median,
    Min,
    MovingRanges,
    RegrIntercept,
    RegrR2,
    RegrSlope,
    StateArrays,
    StddevPop,
    Sum,
    TopK,
    moving_states,
    running_states,
    states_at,
)
from panewise.core.values import to_python
from panewise.engine.group_steps import Lifetimes, group_steps

from .test_kernels import twins_in_use

pytestmark = pytest.mark.slow

DOUBLE, LONG, TEXT = pa.float64(), pa.int64(), pa.string()
#: Values of these are so small that their sums follow a range row by row.
SHORT, UNSIGNED, DIGITS = pa.int16(), pa.uint8(), pa.decimal128(3, 1)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    DOUBLE: st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1e300, -1e300, 0.1, float("inf"), float("nan")])),
    LONG: st.one_of(st.none(), st.integers(-9, 9), st.integers(-(2**61), 2**61)),
    TEXT: st.one_of(st.none(), st.sampled_from(["", "a", "b"])),
    SHORT: st.one_of(st.none(), st.integers(-9, 9), st.sampled_from([-(2**15), 2**15 - 1])),
    UNSIGNED: st.one_of(st.none(), st.integers(0, 255)),
    DIGITS: st.one_of(st.none(), st.decimals(-99, 99, places=1)),
}
AGGREGATES: list[Aggregate[Any]] = [
    *(kind(DOUBLE) for kind in (Sum, Avg, Count, Max, Min, First, Last, Median, CountDistinct)),
    *(kind(LONG) for kind in (Avg, Count, Max, Min, First, Last, Median, CountDistinct, StddevPop)),
    *(kind(SHORT) for kind in (Sum, Avg, Max, StddevPop)),
    *(kind(each) for kind in (Sum, StddevPop) for each in (UNSIGNED, DIGITS)),
    *(kind(TEXT) for kind in (Count, Max, Min, First, Last, CountDistinct)),
]
#: A row: its group, when it comes after the row before it, how long it stays, and a place in a list of values.
ROWS = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(0, 3), st.integers(1, 6), st.integers(0, 7)), min_size=1, max_size=14
)


def longs(values: Sequence[int]) -> Int64Array:
    return np.array(values, np.int64)


@settings(max_examples=150)
@given(
    ROWS,
    st.sampled_from(AGGREGATES),
    st.data(),
    st.booleans(),
    st.booleans(),
    st.tuples(st.integers(-1, 12), st.integers(0, 30)),
    st.booleans(),
)
def test_states_at_every_change_are_those_of_the_rows_that_are_there(
    rows: list[tuple[int, int, int, int]],
    aggregate: Aggregate[Any],
    data: st.DataObject,
    in_order: bool,
    opening: bool,
    span: tuple[int, int],
    twins: bool,
) -> None:
    """Rows that leave in the order in which they come, where all stay equally long, and in any other order."""
    pool = data.draw(st.lists(VALUES[aggregate.types[0]], min_size=8, max_size=8))
    enter = np.cumsum(longs([gap for _, gap, _, _ in rows]))
    leave = enter + (4 if in_order else longs([stay for _, _, stay, _ in rows]))
    codes, since, limit = longs([code for code, _, _, _ in rows]), span[0], sum(span)
    values = pa.array([pool[place] for _, _, _, place in rows], aggregate.types[0])

    def items(places: Int64Array) -> list[Items]:
        return [Items((), enter[places], places), Items((values.take(pa.array(places)),), enter[places], places)]

    found: dict[tuple[int, int], tuple[int, Any]] = {}
    with twins_in_use(*["range", "stretch"] * twins):
        columns = [CountStates(), aggregate.state_arrays()]
        for steps in group_steps(columns, Lifetimes(codes, enter, leave), items, since, limit, opening):
            counts, answers = (c.lower(words) for c, words in zip(steps.columns, steps.states, strict=True))
            for code, at, count, answer in zip(
                steps.codes.tolist(), steps.at.tolist(), counts.to_pylist(), to_python(answers), strict=True
            ):
                assert (code, at) not in found
                found[code, at] = count, answer
    wanted = {}
    for code in set(codes.tolist()) - {-1}:
        mine = np.flatnonzero(codes == code)
        changes = {int(t) for t in (*enter[mine], *leave[mine]) if since < t <= limit}
        for at in sorted(
            changes | ({since} if opening and ((enter[mine] <= since) & (leave[mine] > since)).any() else set())
        ):
            inside = [place for place in mine if enter[place] <= at < leave[place]]
            known = [v for place in inside if (v := to_python(values)[place]) is not None]
            wanted[code, at] = len(inside), aggregate.meaning(known)
    assert found.keys() == wanted.keys()
    for key, (count, answer) in wanted.items():
        assert found[key][0] == count
        assert repr(found[key][1]) == repr(answer) or found[key][1] == answer or close(found[key][1], answer)


#: Aggregates that answer for ranges that move, or that nothing leaves, in another way than by combining states.
MOVING: list[Aggregate[Any]] = [
    *(kind(y, x) for kind in (RegrSlope, RegrIntercept) for y, x in ((LONG, LONG), (DOUBLE, LONG), (DOUBLE, DOUBLE))),
    RegrR2(LONG, LONG),
    *(ApproxDistinct(kind, lg_k=4) for kind in (LONG, TEXT)),
    *(TopK(kind, k=k) for kind in (LONG, DOUBLE, TEXT) for k in (1, 3)),
    *(kind(of) for kind in (Max, Min, First, Last) for of in (LONG, TEXT)),
]
#: Wide enough that sketches of 16 registers estimate.
MANY: dict[pa.DataType, st.SearchStrategy[Any]] = {
    LONG: st.one_of(st.none(), st.integers(-30, 30), st.integers(-(2**62), 2**62)),
    DOUBLE: st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, -1.5, float("inf"), float("nan")])),
    TEXT: st.one_of(st.none(), st.integers(0, 40).map(str)),
}


@settings(max_examples=300)
@given(
    st.sampled_from(MOVING),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 39)), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 39)), max_size=30),
    st.integers(1, 12),
    st.data(),
    st.booleans(),
)
def test_ranges_have_the_answers_of_their_rows(
    aggregate: Aggregate[Any],
    rows: list[tuple[int, int, int]],
    earlier: list[tuple[int, int]],
    stay: int,
    data: st.DataObject,
    twins: bool,
) -> None:
    """Ranges that move over rows, and those that begin with states of earlier rows and that nothing leaves."""
    pools = [data.draw(st.lists(MANY[kind], min_size=40, max_size=40)) for kind in aggregate.types]

    def items_of(chosen: Sequence[int], first: int) -> Items:
        arguments = [pa.array([pool[n] for n in chosen], k) for pool, k in zip(pools, aggregate.types, strict=True)]
        numbers = np.arange(first, first + len(chosen))
        return Items(tuple(arguments), numbers, numbers)

    rows = sorted(rows, key=lambda row: row[0])
    before, items = items_of([n for _, n in earlier], 0), items_of([n for *_, n in rows], len(earlier))
    groups = longs([group for group, *_ in rows])
    codes, starts = np.unique(groups, return_index=True)
    enter = np.cumsum(longs([gap for _, gap, _ in rows]))
    column, edges = aggregate.state_arrays(), np.append(starts, len(rows))
    owners = longs([group for group, _ in earlier])
    with twins_in_use(*["range", "sketch", "line", "power"] * twins):
        moving = MovingRanges.of(edges, enter, enter + stay, -1, 2**40, False)
        lowered, words = moving_states(column, items, moving)
        for answer, low, high in zip(
            to_python(lowered.lower(words)), moving.low.tolist(), moving.high.tolist(), strict=True
        ):
            assert same(answer, column, items.at(np.arange(low, high)))
        running = MovingRanges.of(edges, enter, np.full(len(rows), 2**41), -1, 2**40, False)
        had = states_at(column.gather(owners, before, 3), codes)
        lowered, words, ends = running_states(column, items, running, had)
        answers = to_python(lowered.lower(words))
        for answer, group, high in zip(answers, running.groups.tolist(), running.high.tolist(), strict=True):
            mine = before.at(np.flatnonzero(owners == codes[group]))
            assert same(answer, column, mine.then(items.at(np.arange(starts[group], high))))
        for place, answer in enumerate(to_python(column.lower(ends))):
            mine = before.at(np.flatnonzero(owners == codes[place]))
            assert same(answer, column, mine.then(items.at(np.arange(edges[place], edges[place + 1]))))


def same(answer: Any, column: StateArrays, items: Items) -> bool:
    (wanted,) = to_python(column.lower(column.gather(np.zeros(len(items), np.int64), items, 1)))
    return repr(answer) == repr(wanted) or close(answer, wanted)


def close(one: Any, other: Any) -> bool:
    return isinstance(one, float) and isinstance(other, float) and abs(one - other) <= 1e-15 * max(abs(one), abs(other))


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4)), min_size=1, max_size=12),
    st.integers(0, 3),
    st.integers(1, 4),
    st.tuples(st.integers(-1, 8), st.integers(0, 8)),
    st.booleans(),
)
def test_when_counted_rows_enter_and_leave(
    rows: list[tuple[int, int]], lag: int, count: int, span: tuple[int, int], twins: bool
) -> None:
    """Rows are given by their time and by how late they come."""
    rows.sort(key=lambda row: row[0])
    visible = longs([time + late for time, late in rows])
    since, limit = span[0], sum(span)
    with twins_in_use(*["range"] * twins):
        enter, leave = kernels.range_counted(longs([0, len(rows)]), visible, since, limit, lag, count)
        numbers, raised, at = kernels.range_numbers(longs([0, len(rows)]), visible, since, limit)
    for instant in range(since, limit + 1):
        there = [place for place in range(len(rows)) if visible[place] <= instant]
        inside = there[max(len(there) - lag - count, 0) : max(len(there) - lag, 0)]
        assert inside == [p for p in range(len(rows)) if enter[p] <= instant < leave[p]]
        for number, place in enumerate(there):
            rises = np.count_nonzero((raised == place) & (at <= instant))
            assert numbers[place] + rises == number
