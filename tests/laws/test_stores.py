"""R-INT = B-INT = L-INT = two-stacks = recompute, for any states, windows and aggregates that a store takes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panewise.aggregate import AGGREGATES, Aggregate, Avg, Count, First, Max, Quantile, RegrSlope, Sum, VarPop
from panewise.core.errors import PlanProblem
from panewise.plan.rules.choose_store import choose_store, is_subtractable
from panewise.stores import (
    STORES,
    BaseIntervals,
    LandmarkIntervals,
    LookupKind,
    Recompute,
    RunningIntervals,
    Store,
    TwoStacks,
)

from .test_aggregates import VARIANTS, alike, folded, lowered

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
#: [N_L, N_R] of the paper: the positions from N_L back to N_R back.
Window = tuple[int, int]
WINDOWS = st.lists(st.tuples(st.integers(1, 14), st.integers(0, 5)).map(lambda w: (w[0] + w[1], w[1])), min_size=1)


def states_of(aggregate: Aggregate[Any]) -> st.SearchStrategy[list[Any]]:
    """The states of consecutive panes, some of them empty."""
    columns = [VALUES[t] for t in aggregate.types]
    value = columns[0] if len(columns) == 1 else st.tuples(*columns)
    pane = st.lists(value, max_size=3).map(lambda values: folded(aggregate, values))
    return st.one_of(st.lists(pane, max_size=10), st.lists(pane, min_size=40, max_size=60))


def stores_for(aggregate: Aggregate[Any], windows: Iterable[Window]) -> list[Store[Any]]:
    """One store of each kind that can answer all these windows."""
    reach, widths = max(left for left, _ in windows), {left - right for left, right in windows}
    suffix, laws = all(right == 0 for _, right in windows), aggregate.laws
    found = [s(aggregate, reach) for s in STORES if s.answers is LookupKind.ANY and s.accepts(laws)]
    if LandmarkIntervals.accepts(laws):
        found += [LandmarkIntervals(aggregate, reach), LandmarkIntervals(aggregate, reach, widths)]
        if suffix:
            found.append(LandmarkIntervals(aggregate, reach, widths, suffix=True))
    if TwoStacks.accepts(laws) and suffix and len(widths) == 1:
        found.append(TwoStacks(aggregate, reach))
    return found


def check(aggregate: Aggregate[Any], windows: list[Window], panes: list[Any]) -> None:
    stores = stores_for(aggregate, windows)
    for length, pane in enumerate(panes, 1):
        for store in stores:
            store.append(pane)
        for left, right in windows:
            first, last = max(length - left + 1, 1), length - right
            if last < first:
                continue
            expected = lowered(aggregate, reduce(aggregate.combine, panes[first - 1 : last]))
            for store in stores:
                assert alike(lowered(aggregate, store.lookup(first, last)), expected, ulps=0), store.name


@pytest.mark.slow
@given(aggregate=st.sampled_from(VARIANTS), windows=WINDOWS, data=st.data())
def test_all_stores_answer_historical_windows_alike(
    aggregate: Aggregate[Any], windows: list[Window], data: st.DataObject
) -> None:
    check(aggregate, windows, data.draw(states_of(aggregate)))


@given(aggregate=st.sampled_from(VARIANTS), widths=st.sets(st.integers(1, 14), min_size=1, max_size=3), data=st.data())
def test_all_stores_answer_suffix_windows_alike(
    aggregate: Aggregate[Any], widths: set[int], data: st.DataObject
) -> None:
    check(aggregate, [(width, 0) for width in sorted(widths)], data.draw(states_of(aggregate)))


@given(
    aggregate=st.sampled_from([a for a in VARIANTS if a.laws.bounded]),
    steps=st.lists(st.one_of(st.just("append"), st.just("append"), st.just("evict"), st.just("total")), max_size=60),
    data=st.data(),
)
def test_two_stacks_are_a_queue_with_a_total(aggregate: Aggregate[Any], steps: list[str], data: st.DataObject) -> None:
    queue, held = TwoStacks(aggregate, 60), list[Any]()
    arriving = data.draw(states_of(aggregate))
    for step in steps:
        if step == "append" and arriving:
            queue.append(arriving[-1])
            held.append(arriving.pop())
        elif step == "evict" and held:
            queue.evict()
            del held[0]
        expected = reduce(aggregate.combine, held, aggregate.identity())
        assert alike(lowered(aggregate, queue.total()), lowered(aggregate, expected), ulps=0)
        assert len(queue) == len(held)


@given(starts=st.lists(st.integers(0, 3), min_size=1, max_size=40), values=st.data())
def test_two_stacks_follow_a_window_that_also_shrinks_and_grows(starts: list[int], values: st.DataObject) -> None:
    """`first` may move by any number of positions, also past the newest one, as long as it does not move back."""
    store, first, letters = TwoStacks(First(pa.string()), 50), 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for length, moved in enumerate(starts, 1):
        store.append(letters[length])
        first = min(first + moved, length + 1)
        assert store.lookup(first, length) == (letters[first] if first <= length else None)


# ---- refusals --------------------------------------------------------------------------------------------------------


def filled(store: Store[Any], length: int) -> Store[Any]:
    for value in range(length):
        store.append(value)
    return store


@pytest.mark.parametrize("widths", [(), (0, 3), (3, 11)])
def test_landmarks_need_widths_within_reach(widths: tuple[int, ...]) -> None:
    with pytest.raises(PlanProblem, match="declare widths from 1 to 10"):
        LandmarkIntervals(Max(INT), 10, widths)


def test_a_width_that_was_not_declared_is_refused() -> None:
    store = filled(LandmarkIntervals(Max(INT), 10, (3, 7)), 20)
    with pytest.raises(PlanProblem, match=r"\(16, 20\) has width 5, .*; declare 5 among the widths"):
        store.lookup(16, 20)


def test_suffix_landmarks_refuse_a_window_with_a_lag() -> None:
    store = filled(LandmarkIntervals(Max(INT), 10, (3,), suffix=True), 20)
    assert store.lookup(18, 20) == 19
    with pytest.raises(PlanProblem, match=r"\(17, 19\) does not end at the newest of 20 panes, as L-INT expects"):
        store.lookup(17, 19)


def test_two_stacks_refuse_to_go_back() -> None:
    store = filled(TwoStacks(Max(INT), 10), 20)
    assert store.lookup(15, 20) == 19
    with pytest.raises(PlanProblem, match=r"\(14, 20\) begins before 15"):
        store.lookup(14, 20)
    with pytest.raises(PlanProblem, match="does not end at the newest of 20 panes, as two-stacks expects"):
        store.lookup(15, 19)


def test_two_stacks_refuse_to_evict_nothing() -> None:
    with pytest.raises(PlanProblem, match="holds no pane"):
        TwoStacks(Max(INT), 10).evict()


# ---- the planner's choice --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregate", "widths", "suffix", "store", "reason"),
    [
        (Sum(INT), (5,), True, RunningIntervals, "invertible, constant state: lookups cost O(1)"),
        (Count(DOUBLE), None, True, RunningIntervals, "invertible, constant state: lookups cost O(1)"),
        (VarPop(DOUBLE), (5, 500), True, RunningIntervals, "lookups cost O(1)"),
        (RegrSlope(DOUBLE, DOUBLE), None, True, RunningIntervals, "lookups cost O(1)"),
        (Sum(DOUBLE), None, True, BaseIntervals, "SUM of DOUBLE is rounded"),
        (Avg(DOUBLE), (60,), True, TwoStacks, "its only window of 60 panes slides with the stream"),
        (Max(INT), (60, 60), True, TwoStacks, "its only window of 60 panes slides with the stream"),
        (Max(INT), (60,), False, LandmarkIntervals, "all windows are 60 panes wide"),
        (
            First(INT),
            (30, 45, 60),
            True,
            LandmarkIntervals,
            "windows of 30 to 60 panes differ by at most a factor of 2",
        ),
        (Max(INT), (30, 61), True, BaseIntervals, "windows of 30 to 61 panes differ by more than a factor of 2"),
        (Max(INT), None, True, BaseIntervals, "idempotent, constant state: lookups cost O(log W)"),
        (Quantile(INT, phi=0.5), (60,), True, Recompute, "growing state: lookups cost O(W)"),
    ],
)
def test_the_planner_weighs_laws_and_widths(
    aggregate: Aggregate[Any], widths: tuple[int, ...] | None, suffix: bool, store: type[Store[Any]], reason: str
) -> None:
    choice = choose_store(aggregate, widths, suffix)
    assert choice.store is store
    assert reason in choice.reason


def test_running_sums_of_floats_would_lose_what_a_large_value_hid() -> None:
    """Why SUM and AVG of floats are not subtracted: the third value is gone from a total that held the first."""
    panes = [Sum(DOUBLE).lift(value) for value in (1e300, 1e16, 1.0)]
    subtracting, chosen = RunningIntervals(Sum(DOUBLE), 3), choose_store(Sum(DOUBLE)).store(Sum(DOUBLE), 3)
    for pane in panes:
        subtracting.append(pane)
        chosen.append(pane)
    assert Sum(DOUBLE).lower(subtracting.lookup(3, 3)) == 0.0
    assert Sum(DOUBLE).lower(chosen.lookup(3, 3)) == 1.0


def test_only_rounded_sums_are_not_subtractable() -> None:
    kinds = {name: kind for name, kind in AGGREGATES.items() if RunningIntervals.accepts(kind.laws) and kind.arity == 1}
    assert {name for name, kind in kinds.items() if not is_subtractable(kind(DOUBLE))} == {"SUM", "AVG", "MEAN"}
    assert all(is_subtractable(kind(INT)) for kind in kinds.values())


def test_the_planner_refuses_what_windows_or_rounding_forbid() -> None:
    with pytest.raises(PlanProblem, match="R-INT subtracts, but AVG of DOUBLE is rounded"):
        choose_store(Avg(DOUBLE), wanted="R-INT")
    with pytest.raises(PlanProblem, match="two-stacks answers one window"):
        choose_store(Max(INT), (5, 10), wanted="two-stacks")
    with pytest.raises(PlanProblem, match="two-stacks answers one window"):
        choose_store(Max(INT), (5,), suffix=False, wanted="two-stacks")
    assert choose_store(Max(INT), (5,), wanted="two-stacks").store is TwoStacks
    assert choose_store(Max(INT), (5, 10), wanted="L-INT").store is LandmarkIntervals
