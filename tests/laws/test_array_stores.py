"""Stores over arrays: R-INT = B-INT = L-INT = a literal recomputation, for any states, groups, windows and batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.aggregate import Aggregate, Columns, Count, Items, Longs, Max, Sum, Words
from panewise.errors import PlanProblem
from panewise.stores import BaseIntervals
from panewise.stores.arrays import ARRAY_STORES, ArrayStore, BaseArrays, RunningArrays
from panewise.values import one_nan, to_arrow

from .test_aggregates import VARIANTS, alike
from .test_stores import VALUES

INT, DOUBLE = pa.int64(), pa.float64()
#: A value of one group.
Value = tuple[int, Any]


@dataclass
class History:
    """All values ever given, by position: the literal meaning of every lookup."""

    aggregate: Aggregate[Any]
    groups: int
    positions: list[list[tuple[Value, int]]] = field(default_factory=list)
    arrivals: Any = field(default_factory=count)

    @property
    def column(self) -> Columns:
        return self.aggregate.columns()

    def append(self, values: list[list[Value]]) -> Words:
        """More positions; their states."""
        fresh = [self._arrived(position) for position in values]
        self.positions += fresh
        return self.states(fresh)

    def revise(self, position: int, values: list[Value]) -> Words:
        fresh = self._arrived(values)
        self.positions[position - 1] += fresh
        return self.states([fresh])

    def states(self, bags: list[list[tuple[Value, int]]]) -> Words:
        """The states of all groups of each bag of values."""
        rows = [
            (bag * self.groups + group, value, time) for bag, held in enumerate(bags) for (group, value), time in held
        ]
        slots, times = (np.array([row[place] for row in rows], np.int64) for place in (0, 2))
        kinds = self.aggregate.types
        parts = [[row[1][n] if len(kinds) > 1 else row[1] for row in rows] for n in range(len(kinds))]
        arguments = tuple(pa.array(part, kind) for part, kind in zip(parts, kinds, strict=True))
        return self.column.gather(slots, Items(arguments, times, times), len(bags) * self.groups)

    def answers(self, windows: list[tuple[int, int]]) -> list[Any]:
        bags = [[v for position in self.positions[first - 1 : last] for v in position] for first, last in windows]
        return lowered(self.column, self.states(bags))

    def _arrived(self, values: list[Value]) -> list[tuple[Value, int]]:
        return [((group % self.groups, value), next(self.arrivals)) for group, value in values]


def lowered(column: Columns, words: Words) -> list[Any]:
    return list(column.lower(words).to_pylist())


def same(mine: list[Any], theirs: list[Any]) -> bool:
    return len(mine) == len(theirs) and all(alike(a, b, ulps=0) for a, b in zip(mine, theirs, strict=True))


def values_of(aggregate: Aggregate[Any]) -> st.SearchStrategy[list[Value]]:
    """The values of one position, of any groups."""
    columns = [VALUES[t] for t in aggregate.types]
    value = columns[0] if len(columns) == 1 else st.tuples(*columns)
    return st.lists(st.tuples(st.integers(0, 9), value), max_size=3)


def windows_in(data: st.DataObject, forgotten: int, length: int) -> list[tuple[int, int]]:
    """Windows within reach, also empty ones at either end."""
    ends = st.tuples(st.integers(forgotten + 1, length + 1), st.integers(forgotten, length))
    return [(min(a, b + 1), max(b, a - 1)) for a, b in data.draw(st.lists(ends, min_size=1, max_size=4))]


def longs(numbers: Any) -> Longs:
    return np.array(list(numbers), np.int64)


def columns_of(windows: list[tuple[int, int]]) -> tuple[Longs, Longs]:
    return longs(first for first, _ in windows), longs(last for _, last in windows)


def agrees(store: ArrayStore, history: History, windows: list[tuple[int, int]], groups: list[int]) -> None:
    """All groups of all windows, pairs of both, and one alone."""
    column, wanted = history.column, history.answers(windows)
    firsts, lasts = columns_of(windows)
    assert same(lowered(column, store.lookup(firsts, lasts)), wanted), store.name
    pairs = [wanted[place * history.groups + group] for place, group in enumerate(groups)]
    assert same(lowered(column, store.lookup(firsts, lasts, longs(groups))), pairs), store.name
    single = store.one(*windows[0], groups[0])
    identity = column.identity(1)
    words = tuple(np.array([word], like.dtype) for word, like in zip(single, identity, strict=True))
    assert same(lowered(column, words), pairs[:1]), store.name


@settings(max_examples=80)
@given(aggregate=st.sampled_from(VARIANTS), reach=st.integers(1, 21), groups=st.integers(1, 3), data=st.data())
def test_any_lookup_is_a_recomputation(aggregate: Aggregate[Any], reach: int, groups: int, data: st.DataObject) -> None:
    """However positions come in batches, while late ones are revised and groups join."""
    history, column = History(aggregate, groups), aggregate.columns()
    stores = [kind(column, reach, groups) for kind in ARRAY_STORES if kind.accepts(column)]
    batch = st.one_of(
        st.lists(values_of(aggregate), max_size=3), st.lists(values_of(aggregate), min_size=8, max_size=30)
    )
    for step in data.draw(st.lists(st.sampled_from(["append", "append", "revise", "grow"]), min_size=1, max_size=7)):
        length = len(history.positions)
        forgotten = max(length - reach, 0)
        if step == "grow":
            joined = history.groups + data.draw(st.integers(0, 2))
            history.groups = joined
            for store in stores:
                store.grow(joined)
        elif step == "revise" and length:
            position = data.draw(st.integers(forgotten + 1, length))
            late = history.revise(position, data.draw(values_of(aggregate)))
            for store in stores:
                store.revise(position, late)
        else:
            words = history.append(data.draw(batch))
            for store in stores:
                store.append(words)
        length = len(history.positions)
        windows = windows_in(data, max(length - reach, 0), length)
        asked = [data.draw(st.integers(0, history.groups - 1)) for _ in windows]
        for store in stores:
            assert (store.length, store.groups) == (length, history.groups)
            agrees(store, history, windows, asked)


@settings(max_examples=25)
@given(aggregate=st.sampled_from([a for a in VARIANTS if a.laws.bounded]), reach=st.integers(1, 12), data=st.data())
def test_arrays_answer_like_the_stores_of_python_states(
    aggregate: Aggregate[Any], reach: int, data: st.DataObject
) -> None:
    panes = data.draw(st.lists(values_of(aggregate), min_size=1, max_size=40))
    column, scalar = aggregate.columns(), BaseIntervals(aggregate, reach)
    words = History(aggregate, 1).append(panes)
    for pane in panes:
        scalar.append(aggregate.gather([value for _, value in pane]))
    windows = windows_in(data, scalar.length - min(scalar.length, reach), scalar.length)
    answers = [one_nan(aggregate.lower(scalar.lookup(*window))) for window in windows]
    wanted = to_arrow(answers, aggregate.result).to_pylist()
    for kind in ARRAY_STORES:
        if kind.accepts(column):
            store = kind(column, reach)
            store.append(words)
            assert same(lowered(column, store.lookup(*columns_of(windows))), wanted), store.name


def test_sums_that_wrap_around_are_right_again_in_differences() -> None:
    """The totals of a long stream pass 2**63; no window does."""
    column = Sum(INT).columns()
    store = RunningArrays(column, 3)
    for n in range(8):
        store.append((longs([1]), longs([0]), longs([2**62 + n])))
    assert store.one(8, 8) == (1, 0, 2**62 + 7)
    assert [word.tolist() for word in store.lookup(longs([8]), longs([8]))] == [[1], [0], [2**62 + 7]]


# ---- refusals --------------------------------------------------------------------------------------------------------


def filled(kind: type[ArrayStore], reach: int, length: int, groups: int = 1) -> ArrayStore:
    store = kind(Count(INT).columns(), reach, groups)
    store.append((np.ones(length * groups, np.int64),))
    return store


@pytest.mark.parametrize("kind", [RunningArrays, BaseArrays])
@pytest.mark.parametrize(("first", "last"), [(10, 12), (11, 21), (15, 13), (0, 0), (22, 21)])
def test_windows_out_of_reach_are_refused(kind: type[ArrayStore], first: int, last: int) -> None:
    store = filled(kind, 10, 20)
    with pytest.raises(PlanProblem, match=rf"\({first}, {last}\) is not within the last 10 of 20 panes"):
        store.lookup(longs([11, first]), longs([11, last]))
    with pytest.raises(PlanProblem, match=rf"\({first}, {last}\) is not within the last 10 of 20 panes"):
        store.one(first, last)


@pytest.mark.parametrize("kind", [RunningArrays, BaseArrays])
def test_groups_that_are_not_kept_are_refused(kind: type[ArrayStore]) -> None:
    store = filled(kind, 10, 20, groups=2)
    with pytest.raises(PlanProblem, match="groups 2 to 2 are not all among the 2"):
        store.one(15, 16, 2)
    with pytest.raises(PlanProblem, match="groups -1 to 1 are not all among the 2"):
        store.lookup(longs([15]), longs([16]), longs([1, -1]))
    with pytest.raises(PlanProblem, match="3 states are no whole number of positions of 2 groups"):
        store.append((np.ones(3, np.int64),))
    assert store.length == 20


@pytest.mark.parametrize("kind", [RunningArrays, BaseArrays])
def test_what_comes_too_late_for_a_store_is_refused(kind: type[ArrayStore]) -> None:
    store = filled(kind, 10, 20)
    for position in (10, 21):
        with pytest.raises(PlanProblem, match=rf"position {position} is not within the last 10 of 20 panes"):
            store.revise(position, (np.ones(1, np.int64),))


def test_stores_need_states_that_fit_them() -> None:
    for column in (Max(INT).columns(), Sum(DOUBLE).columns()):
        with pytest.raises(PlanProblem, match="R-INT needs states that can be subtracted without loss"):
            RunningArrays(column, 10)
    with pytest.raises(PlanProblem, match="over 0 panes"):
        BaseArrays(Max(INT).columns(), 0)
    with pytest.raises(PlanProblem, match="0 groups"):
        BaseArrays(Max(INT).columns(), 5, 0)
