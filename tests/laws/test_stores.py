"""Stores: R-INT = B-INT = L-INT = a literal recomputation, for any states, groups, windows and batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.aggregate import (
    Aggregate,
    Count,
    Int64Array,
    Items,
    Max,
    Quantile,
    RegrSlope,
    StateArrays,
    StateWords,
    Sum,
)
from panewise.aggregate.quantile import quantile_ranks, shares_of
from panewise.core.errors import AggregateProblem, PlanProblem
from panewise.core.values import normalize_float, to_arrow
from panewise.stores.arrays import ARRAY_STORES, ArrayStore, BaseArrays, LandmarkArrays, QuantileArrays, RunningArrays

from .test_aggregates import VARIANTS, alike
from .test_kernels import twins_in_use

pytestmark = pytest.mark.slow

#: Aggregates whose states are numbers or objects, not rows of numbers.
NARROW = [aggregate for aggregate in VARIANTS if BaseArrays.accepts(aggregate.state_arrays())]

INT, DOUBLE = pa.int64(), pa.float64()
#: Floats are multiples of an eighth, and decimals, which AGED_SUM adds as floats, of a quarter, so that the order of
#: additions does not show; how much it may is a law of SUM.
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    INT: st.integers(-50, 50),
    DOUBLE: st.one_of(st.integers(-80, 80).map(lambda n: n / 8), st.sampled_from([math.nan, math.inf, -math.inf])),
    pa.decimal128(10, 2): st.integers(-99, 99).map(lambda n: Decimal(25 * n).scaleb(-2)),
    pa.string(): st.text("ab", max_size=2),
    pa.timestamp("us"): st.integers(-50, 50),
    pa.bool_(): st.booleans(),
}
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
    def column(self) -> StateArrays:
        return self.aggregate.state_arrays()

    def append(self, values: list[list[Value]]) -> StateWords:
        """More positions; their states."""
        fresh = [self._arrived(position) for position in values]
        self.positions += fresh
        return self.states(fresh)

    def revise(self, position: int, values: list[Value]) -> StateWords:
        fresh = self._arrived(values)
        self.positions[position - 1] += fresh
        return self.states([fresh])

    def states(self, bags: list[list[tuple[Value, int]]]) -> StateWords:
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


def lowered(column: StateArrays, words: StateWords) -> list[Any]:
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


def longs(numbers: Any) -> Int64Array:
    return np.array(list(numbers), np.int64)


def columns_of(windows: list[tuple[int, int]]) -> tuple[Int64Array, Int64Array]:
    return longs(first for first, _ in windows), longs(last for _, last in windows)


def agrees(store: ArrayStore, history: History, windows: list[tuple[int, int]], groups: list[int]) -> None:
    """All groups of all windows, pairs of both, and one alone."""
    column, wanted = history.column, history.answers(windows)
    firsts, lasts = columns_of(windows)
    assert same(lowered(column, store.lookup(firsts, lasts)), wanted), store.name
    pairs = [wanted[place * history.groups + group] for place, group in enumerate(groups)]
    assert same(lowered(column, store.lookup(firsts, lasts, longs(groups))), pairs), store.name
    single = store.lookup_one(*windows[0], groups[0])
    identity = column.identity(1)
    words = tuple(np.array([word], like.dtype) for word, like in zip(single, identity, strict=True))
    assert same(lowered(column, words), pairs[:1]), store.name


@settings(max_examples=80)
@given(aggregate=st.sampled_from(NARROW), reach=st.integers(1, 21), groups=st.integers(1, 3), data=st.data())
def test_any_lookup_is_a_recomputation(aggregate: Aggregate[Any], reach: int, groups: int, data: st.DataObject) -> None:
    """However positions come in batches, while late ones are revised and groups join."""
    history, column = History(aggregate, groups), aggregate.state_arrays()
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
@given(aggregate=st.sampled_from(NARROW), reach=st.integers(1, 12), data=st.data())
def test_stores_answer_like_a_fold_of_python_states(aggregate: Aggregate[Any], reach: int, data: st.DataObject) -> None:
    panes = data.draw(st.lists(values_of(aggregate), min_size=1, max_size=40))
    column, words = aggregate.state_arrays(), History(aggregate, 1).append(panes)
    states = [aggregate.gather([value for _, value in pane]) for pane in panes]
    windows = windows_in(data, max(len(panes) - reach, 0), len(panes))
    folds = [reduce(aggregate.combine, states[first - 1 : last], aggregate.identity()) for first, last in windows]
    answers = [normalize_float(aggregate.lower(state)) for state in folds]
    wanted = to_arrow(answers, aggregate.result).to_pylist()
    for kind in ARRAY_STORES:
        if kind.accepts(column):
            store = kind(column, reach)
            store.append(words)
            assert same(lowered(column, store.lookup(*columns_of(windows))), wanted), store.name


@settings(max_examples=40)
@given(
    aggregate=st.sampled_from(NARROW),
    widths=st.sets(st.integers(1, 14), min_size=1, max_size=3),
    lag=st.integers(0, 6),
    groups=st.integers(1, 2),
    data=st.data(),
)
def test_landmarks_answer_the_widths_they_were_told(
    aggregate: Aggregate[Any], widths: set[int], lag: int, groups: int, data: st.DataObject
) -> None:
    """Half-filled ones too; suffixes share the space of the widest."""
    history, column = History(aggregate, groups), aggregate.state_arrays()
    store = LandmarkArrays(column, max(widths) + lag, groups, widths, suffix=lag == 0)
    for size in data.draw(st.lists(st.integers(1, 25), min_size=1, max_size=5)):
        store.append(history.append([data.draw(values_of(aggregate)) for _ in range(size)]))
        newest = store.length - data.draw(st.integers(0, min(lag, store.length)))
        windows = [(max(newest - width + 1, 1), newest) for width in sorted(widths) if newest]
        agrees(store, history, [*windows, (newest + 1, newest)], [0] * (len(windows) + 1))
        position = data.draw(st.integers(store.forgotten_until + 1, store.length))
        store.revise(position, history.revise(position, data.draw(values_of(aggregate))))


@pytest.mark.parametrize("length", [20, 21, 22])
def test_regression_a_late_pane_at_position_one_while_windows_can_begin_there(length: int) -> None:
    """Of 21 positions within reach 21, L-INT had forgotten landmark zero for late panes, but not for lookups."""
    store = filled(LandmarkArrays, 21, length)
    first = store.forgotten_until + 1
    store.revise(first, (longs([5]),))
    assert store.lookup_one(first, first + 3) == (9,)


# ---- quantiles -------------------------------------------------------------------------------------------------------

NUMBERS = st.one_of(st.integers(-4, 4), st.sampled_from([-(2**63), 2**63 - 1]))
SHARES = st.one_of(
    st.fractions(0, 1, max_denominator=100).filter(bool),
    st.sampled_from([Fraction(1), Fraction(10**18, 3 * 10**18 + 1)]),
)


@settings(max_examples=80)
@given(reach=st.integers(1, 40), groups=st.integers(1, 3), single=st.booleans(), data=st.data())
def test_any_quantile_is_a_recomputation(reach: int, groups: int, single: bool, data: st.DataObject) -> None:
    """Of one or many values a position, while late ones come and groups join."""
    store, history = QuantileArrays(reach, groups), list[list[Value]]()
    bag = st.lists(st.tuples(st.integers(0, groups - 1), NUMBERS), min_size=int(single), max_size=1 if single else 5)
    for step in data.draw(st.lists(st.sampled_from(["append", "append", "revise", "grow"]), min_size=1, max_size=6)):
        if step == "grow":
            groups += 1
            store.grow(groups)
        elif step == "revise" and history:
            position = data.draw(st.integers(store.forgotten_until + 1, len(history)))
            late = data.draw(bag)
            history[position - 1] = history[position - 1] + late
            store.revise(position, longs(v for _, v in late), longs(g for g, _ in late))
        else:
            fresh = data.draw(st.lists(bag, max_size=60))
            history += fresh
            store.append(
                longs(map(len, fresh)), longs(v for b in fresh for _, v in b), longs(g for b in fresh for g, _ in b)
            )
        assert store.length == len(history)
        windows = windows_in(data, store.forgotten_until, store.length)
        shares = [data.draw(SHARES) for _ in windows]
        asked = [data.draw(st.integers(0, groups - 1)) for _ in windows]
        wanted = [
            [quantile(history[first - 1 : last], group, share) for group in range(groups)]
            for (first, last), share in zip(windows, shares, strict=True)
        ]
        firsts, lasts = columns_of(windows)
        assert listed(store.lookup(firsts, lasts, shares)) == [answer for row in wanted for answer in row]
        pairs = [row[group] for row, group in zip(wanted, asked, strict=True)]
        assert listed(store.lookup(firsts, lasts, shares, longs(asked))) == pairs
        assert store.lookup_one(*windows[0], shares[0], asked[0]) == pairs[0]


def quantile(positions: list[list[Value]], group: int, share: Fraction) -> int | None:
    found: int | None = Quantile(INT, phi=str(share)).meaning([v for bag in positions for g, v in bag if g == group])
    return found


def listed(words: StateWords) -> list[int | None]:
    return [int(value) if there else None for value, there in zip(*words, strict=True)]


#: Streams whose base intervals are alike, nothing like each other, or full of equal values.
STREAMS: dict[str, Callable[[int], Int64Array]] = {
    "random": lambda n: np.random.default_rng(7).integers(-(2**62), 2**62, n),
    "rising": lambda n: np.arange(n),
    "falling": lambda n: -np.arange(n),
    "steps": lambda n: np.arange(n) // 100 % 7,
    "equal": lambda n: np.zeros(n, np.int64),
    "waves": lambda n: (1000 * np.sin(np.arange(n) / 300)).astype(np.int64),
    "one apart": lambda n: np.where(np.arange(n) % 64 == 0, 2**62, np.arange(n)),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_quantiles_of_long_windows_whatever_the_stream(stream: str) -> None:
    values, rng = STREAMS[stream](3000), np.random.default_rng(1)
    store = QuantileArrays(2500)
    store.append(np.ones(3000, np.int64), values)
    firsts = rng.integers(store.forgotten_until + 1, 3001, 150)
    lasts = np.array([rng.integers(first, 3001) for first in firsts])
    chosen = np.array([rng.integers(1, width + 1) for width in lasts - firsts + 1])
    wanted = [np.sort(values[f - 1 : t])[k - 1] for f, t, k in zip(firsts, lasts, chosen, strict=True)]
    assert listed(store.select(firsts, lasts, chosen)) == wanted
    assert store.sizes(firsts, lasts).tolist() == (lasts - firsts + 1).tolist()


def test_ranks_are_exact() -> None:
    """0.29 of 100 is 29, and no product passes a long."""
    assert quantile_ranks(longs([100, 3, 0]), *shares_of(Fraction("0.29"))).tolist() == [29, 1, 1]
    third = Fraction(10**17, 3 * 10**17 + 1)
    assert quantile_ranks(longs([3, 3 * 10**17 + 1]), *shares_of([third, third])).tolist() == [1, 10**17]
    large = Fraction(2**31 - 2, 2**31 - 1)
    assert quantile_ranks(longs([2**40]), *shares_of(large)).tolist() == [2**40 * (2**31 - 2) // (2**31 - 1)]
    assert quantile_ranks(longs([7, 7]), *shares_of((longs([1, 1]), longs([2, 7])))).tolist() == [3, 1]
    tiny = Fraction(1, 10**30)
    assert quantile_ranks(longs([7]), *shares_of(tiny)).tolist() == [1]
    for share in (Fraction(0), Fraction(101, 100)):
        with pytest.raises(AggregateProblem, match="outside"):
            shares_of(share)


def test_values_must_fill_their_positions() -> None:
    store = QuantileArrays(10, 2)
    for sizes, values, codes in ([[1, 1], [5], [0]], [[1], [5], [0, 1]], [[2, -1], [5], [0]]):
        with pytest.raises(PlanProblem, match="do not fill positions"):
            store.append(longs(sizes), longs(values), longs(codes))
    with pytest.raises(PlanProblem, match="groups 2 to 2"):
        store.append(longs([1]), longs([5]), longs([2]))
    with pytest.raises(PlanProblem, match="position 1 is not within"):
        store.revise(1, longs([5]))
    with pytest.raises(PlanProblem, match=r"\(1, 1\) is not within the last 10 of 0"):
        store.sizes(longs([1]), longs([1]))


# ---- compiled = plain ------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    kind=st.sampled_from(["sum", "max", "quantile"]), values=st.lists(NUMBERS, min_size=1, max_size=40), data=st.data()
)
def test_kernels_of_lookups_agree(kind: str, values: list[int], data: st.DataObject) -> None:
    """The same store, asked with compiled kernels and with their twins."""
    windows = columns_of(windows_in(data, max(len(values) - 16, 0), len(values)))
    answers = []
    for context in (nullcontext(), twins_in_use("interval", "quantile")):
        with context:
            answers.append([answer.tolist() for answer in ask(kind, longs(values), windows)])
    assert answers[0] == answers[1]


def ask(kind: str, values: Int64Array, windows: tuple[Int64Array, Int64Array]) -> list[Any]:
    """Everything a kernel answers: of one group, of two, and of all."""
    if kind == "quantile":
        found: list[Any] = []
        for groups in (1, 2):
            store = QuantileArrays(16, groups)
            store.append(np.ones(len(values), np.int64), values, np.arange(len(values)) % groups)
            found += store.lookup(*windows, Fraction(1, 2))
        return found
    words: StateWords = (values % 1000,) if kind == "sum" else (values, values % 2 == 0)
    column = Count(INT).state_arrays() if kind == "sum" else Max(INT).state_arrays()
    found = []
    for kept in (k for k in ARRAY_STORES if k.accepts(column)):
        one, two = kept(column, 16), kept(column, 16, 2)
        one.append(words)
        two.append(tuple(np.repeat(word, 2) for word in words))
        found += [*one.lookup(*windows), *two.lookup(*windows), *two.lookup(*windows, longs([1]))]
    return found


# ---- details ---------------------------------------------------------------------------------------------------------


def test_sums_that_wrap_around_are_right_again_in_differences() -> None:
    """The totals of a long stream pass 2**63; no window does."""
    column = Sum(INT).state_arrays()
    store = RunningArrays(column, 3)
    for n in range(8):
        store.append((longs([1]), longs([0]), longs([2**62 + n])))
    assert store.lookup_one(8, 8) == (1, 0, 2**62 + 7)
    assert [word.tolist() for word in store.lookup(longs([8]), longs([8]))] == [[1], [0], [2**62 + 7]]


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("kind", ARRAY_STORES)
def test_no_windows_and_arrays_that_cannot_be_written(kind: type[ArrayStore], groups: int) -> None:
    states, places = np.arange(6 * groups), longs([2, 3])
    for array in (states, places):
        array.setflags(write=False)
    store = kind(Count(INT).state_arrays(), 5, groups)
    store.append((states,))
    assert store.lookup(longs([]), longs([]))[0].tolist() == []
    assert store.lookup(longs([]), longs([]), longs([]))[0].tolist() == []
    assert store.lookup(places, places, places - 2 if groups == 3 else None)[0].tolist() == [
        groups,
        2 * groups + groups // 3,
    ]


# ---- refusals --------------------------------------------------------------------------------------------------------


def filled(kind: type[ArrayStore], reach: int, length: int, groups: int = 1) -> ArrayStore:
    store = kind(Count(INT).state_arrays(), reach, groups)
    store.append((np.ones(length * groups, np.int64),))
    return store


@pytest.mark.parametrize("kind", ARRAY_STORES)
@pytest.mark.parametrize(("first", "last"), [(10, 12), (11, 21), (15, 13), (0, 0), (22, 21)])
def test_windows_out_of_reach_are_refused(kind: type[ArrayStore], first: int, last: int) -> None:
    store = filled(kind, 10, 20)
    with pytest.raises(PlanProblem, match=rf"\({first}, {last}\) is not within the last 10 of 20 panes"):
        store.lookup(longs([11, first]), longs([11, last]))
    with pytest.raises(PlanProblem, match=rf"\({first}, {last}\) is not within the last 10 of 20 panes"):
        store.lookup_one(first, last)


@pytest.mark.parametrize("kind", ARRAY_STORES)
def test_groups_that_are_not_kept_are_refused(kind: type[ArrayStore]) -> None:
    store = filled(kind, 10, 20, groups=2)
    with pytest.raises(PlanProblem, match="groups 2 to 2 are not all among the 2"):
        store.lookup_one(15, 16, 2)
    with pytest.raises(PlanProblem, match="groups -1 to 1 are not all among the 2"):
        store.lookup(longs([15]), longs([16]), longs([1, -1]))
    with pytest.raises(PlanProblem, match="3 states are no whole number of positions of 2 groups"):
        store.append((np.ones(3, np.int64),))
    assert store.length == 20


@pytest.mark.parametrize("kind", ARRAY_STORES)
def test_what_comes_too_late_for_a_store_is_refused(kind: type[ArrayStore]) -> None:
    store = filled(kind, 10, 20)
    for position in (10, 21):
        with pytest.raises(PlanProblem, match=rf"position {position} is not within the last 10 of 20 panes"):
            store.revise(position, (np.ones(1, np.int64),))


@pytest.mark.parametrize("widths", [(), (0, 3), (3, 11)])
def test_landmarks_need_widths_within_reach(widths: tuple[int, ...]) -> None:
    with pytest.raises(PlanProblem, match="declare widths from 1 to 10"):
        LandmarkArrays(Count(INT).state_arrays(), 10, widths=widths)


def test_landmarks_refuse_a_width_that_was_not_declared() -> None:
    store = LandmarkArrays(Count(INT).state_arrays(), 10, widths=(3, 7))
    store.append((np.ones(20, np.int64),))
    with pytest.raises(PlanProblem, match=r"\(16, 20\) has width 5, .*; declare 5 among the widths"):
        store.lookup_one(16, 20)


def test_landmarks_of_suffixes_refuse_a_window_with_a_lag() -> None:
    store = LandmarkArrays(Count(INT).state_arrays(), 10, widths=(3,), suffix=True)
    store.append((np.ones(20, np.int64),))
    assert store.lookup_one(18, 20) == (3,)
    with pytest.raises(PlanProblem, match=r"\(17, 19\) does not end at the newest of 20 panes, as L-INT expects"):
        store.lookup_one(17, 19)


def test_stores_need_states_that_fit_them() -> None:
    for column in (Max(INT).state_arrays(), Sum(DOUBLE).state_arrays()):
        with pytest.raises(PlanProblem, match="R-INT needs states that can be subtracted without loss"):
            RunningArrays(column, 10)
    for kind in (LandmarkArrays, BaseArrays):
        with pytest.raises(PlanProblem, match=f"{kind.name} needs states that combine"):
            kind(RegrSlope(INT, INT).state_arrays(), 10)
    with pytest.raises(PlanProblem, match="over 0 panes"):
        BaseArrays(Max(INT).state_arrays(), 0)
    with pytest.raises(PlanProblem, match="0 groups"):
        BaseArrays(Max(INT).state_arrays(), 5, 0)
