"""Totals of panes: subtracting = two stacks = a literal recomputation, for any aggregate and any queue of panes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panewise.aggregate import Aggregate, Positional, StateArrays, StateWords, Sum, states_at
from panewise.plan.rules.choose_store import RULE, pane_totals
from panewise.stores.totals import PaneTotal, SubtractingTotal, TwoStackTotal

from .test_aggregates import VARIANTS
from .test_stores import NARROW, History, lowered, same, values_of

DOUBLE = pa.float64()
#: Aggregates whose answers do not depend on the order of additions, nor on where in a window items lie.
STEADY = [
    a
    for a in VARIANTS
    if not isinstance(a, Positional) and not a.state_arrays().apart and (a in NARROW or a.state_arrays().exact)
]
STEPS = st.lists(st.sampled_from(["push", "push", "pop", "grow"]), min_size=1, max_size=40)


def totals_of(column: StateArrays) -> list[PaneTotal]:
    """One of each kind that the planner would choose, with its rule and without."""
    kinds = {kind for off in ([], [RULE]) for kind in pane_totals([column], frozenset(off)) if kind}
    return [kind(column) for kind in kinds]


@given(aggregate=st.sampled_from(STEADY), steps=STEPS, data=st.data())
def test_totals_are_those_of_a_queue(aggregate: Aggregate[Any], steps: list[str], data: st.DataObject) -> None:
    """Panes hold some of the groups; groups join while panes come and go."""
    history, totals = History(aggregate, 1), totals_of(aggregate.state_arrays())
    held: list[tuple[Any, StateWords]] = []
    for step in ["grow", *steps]:
        if step == "grow":
            history.groups += 1
            for total in totals:
                total.grow(history.groups)
        elif step == "push":
            states = history.append([data.draw(values_of(aggregate))])
            codes = np.unique([group for (group, _), _ in history.positions[-1]]).astype(np.int64)
            held.append((codes, states_at(states, codes)))
            for total in totals:
                total.push(*held[-1])
        elif held:
            for total in totals:
                total.pop(*held[0])
            del held[0]
        length = len(history.positions)
        wanted = history.answers([(length - len(held) + 1, length)])
        for total in totals:
            assert same(lowered(history.column, total.total()), wanted), total.name


def test_nothing_leaves_a_running_total() -> None:
    total = PaneTotal(Sum(DOUBLE).state_arrays())
    with pytest.raises(TypeError, match="nothing leaves"):
        total.pop(slice(0, 0), total.total())


def test_subtracted_sums_of_floats_would_lose_what_a_large_value_hid() -> None:
    """Why SUM and AVG of floats are not subtracted: the third value is gone from a total that held the first."""
    aggregate, values = Sum(DOUBLE), (1e300, 1e16, 1.0)
    first, second, third = map(aggregate.lift, values)
    whole = aggregate.combine(aggregate.combine(first, second), third)
    assert aggregate.lower(aggregate.invert(aggregate.invert(whole, first), second)) == 0.0
    (total,) = totals_of(aggregate.state_arrays())
    assert isinstance(total, TwoStackTotal)
    total.grow(1)
    panes = [(np.zeros(1, np.int64), History(aggregate, 1).append([[(0, value)]])) for value in values]
    for pane in panes:
        total.push(*pane)
    for pane in panes[:2]:
        total.pop(*pane)
    assert lowered(aggregate.state_arrays(), total.total()) == [1.0]
    with pytest.raises(TypeError, match="cannot take a part out again"):
        SubtractingTotal(total.columns).pop(slice(0, 0), total.columns.identity(0))
