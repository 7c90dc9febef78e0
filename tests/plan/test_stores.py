"""Stores answer alike, and refuse what their laws forbid: by type, by constructor and by planner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panewise.aggregate import Aggregate, Avg, Count, First, Max, Min, Quantile, RegrSlope, Sum, VarPop
from panewise.core.errors import PlanProblem
from panewise.plan import choose_store
from panewise.stores import STORES, BaseIntervals, LookupKind, Recompute, RunningIntervals
from panewise.stores.base_intervals import cover

INT = pa.int64()
MEDIAN = Quantile(INT, phi=0.5)
AGGREGATES: list[Aggregate[Any]] = [Count(INT), Sum(INT), Avg(INT), Max(INT), Min(INT), First(INT), VarPop(INT), MEDIAN]


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda a: a.names[0])
@given(values=st.lists(st.integers(-50, 50), max_size=40), reach=st.integers(1, 20), data=st.data())
def test_all_stores_answer_like_recompute(
    aggregate: Aggregate[Any], values: list[int], reach: int, data: st.DataObject
) -> None:
    """R-INT = B-INT = L-INT = recompute, for every interval within reach, after every append."""
    general = [store for store in STORES if store.answers is not LookupKind.SLIDING]
    stores = [store(aggregate, reach) for store in general if store.accepts(aggregate.laws)]
    assert stores
    for length, value in enumerate(values, 1):
        for store in stores:
            store.append(aggregate.lift(value))
        first = data.draw(st.integers(max(1, length - reach + 1), length))
        last = data.draw(st.integers(first, length))
        meaning = aggregate.meaning(values[first - 1 : last])
        assert [aggregate.lower(store.lookup(first, last)) for store in stores] == [meaning] * len(stores)


@given(values=st.lists(st.integers(), max_size=200), reach=st.integers(1, 30))
def test_base_intervals_keep_space_linear_in_their_reach(values: list[int], reach: int) -> None:
    """ "Resource sharing", theorem 3.2: O(N_max) space."""
    store = BaseIntervals(Max(INT), reach)
    for value in values:
        store.append(value)
        assert len(store._intervals) <= 2 * reach


def test_a_base_interval_is_aligned_to_its_width() -> None:
    """ "Resource sharing", definition 3.1 and example: (385, 512) is the level-7 interval with i = 3."""
    assert cover(385, 512) == [(512, 128)]


@given(first=st.integers(1, 5000), width=st.integers(1, 5000))
def test_an_interval_is_a_disjoint_union_of_few_base_intervals(first: int, width: int) -> None:
    """ "Resource sharing", theorem 3.1."""
    last = first + width - 1
    parts = cover(first, last)
    assert [p for end, size in parts for p in range(end - size + 1, end + 1)] == list(range(first, last + 1))
    assert all(end % size == 0 for end, size in parts)
    assert len(parts) <= 2 * width.bit_length()


def test_the_planner_prefers_running_sums_where_they_are_legal() -> None:
    assert choose_store(Sum(INT)).store is RunningIntervals
    assert choose_store(Max(INT)).store is BaseIntervals
    assert choose_store(First(INT)).store is BaseIntervals
    assert choose_store(MEDIAN).store is Recompute
    assert choose_store(RegrSlope(INT, INT)).store is RunningIntervals


def test_the_planner_refuses_to_subtract_a_maximum() -> None:
    with pytest.raises(PlanProblem, match="R-INT needs an invertible aggregate, but MAX is only"):
        choose_store(Max(INT), wanted="R-INT")


def test_a_store_refuses_an_aggregate_it_cannot_keep() -> None:
    with pytest.raises(PlanProblem, match="B-INT needs"):
        BaseIntervals(MEDIAN, 4)


def test_an_unknown_store_is_named() -> None:
    with pytest.raises(
        PlanProblem, match="there is no store 'X-INT'; use one of R-INT, two-stacks, L-INT, B-INT, recompute"
    ):
        choose_store(Max(INT), wanted="X-INT")


def test_a_lookup_out_of_reach_is_refused() -> None:
    store = Recompute(Sum(INT), 2)
    for value in (1, 2, 3):
        store.append((1, value))
    with pytest.raises(PlanProblem, match=r"interval \(1, 3\) is not within the last 2 of 3 panes"):
        store.lookup(1, 3)


@pytest.mark.slow
def test_subtracting_a_maximum_does_not_type_check(tmp_path: Path) -> None:
    """The illegal pair is an error of the type checker, the legal one is not."""
    program = tmp_path / "pairs.py"
    program.write_text(
        "import pyarrow as pa\n"
        "from panewise.aggregate import Max, Sum\n"
        "from panewise.stores import RunningIntervals\n"
        "RunningIntervals(Sum(pa.int64()), 5)\n"
        "RunningIntervals(Max(pa.int64()), 5)\n"
    )
    config = Path(__file__).parents[2] / "pyproject.toml"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(tmp_path), str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [line for line in checked.stdout.splitlines() if "pairs.py" in line and "error" in line]
    assert len(complaints) == 1, checked.stdout + checked.stderr
    assert "pairs.py:5" in complaints[0]
    assert '"Max"; expected "Invertible' in complaints[0]
