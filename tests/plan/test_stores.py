"""What the planner keeps states in: what leaves a chain is subtracted only where that loses nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.aggregate import AGGREGATES, Aggregate, Avg, Count, First, Max, Quantile, RegrSlope, Sum, VarPop
from panewise.plan.rules.choose_store import RULE, pane_totals
from panewise.stores.totals import PaneTotal, SubtractingTotal, TwoStackTotal

INT, DOUBLE = pa.int64(), pa.float64()


@pytest.mark.parametrize(
    ("aggregate", "kind"),
    [
        (Sum(INT), SubtractingTotal),
        (Count(DOUBLE), SubtractingTotal),
        (VarPop(INT), SubtractingTotal),
        (RegrSlope(INT, INT), SubtractingTotal),
        (Quantile(INT, phi="0.5"), SubtractingTotal),
        (Avg(DOUBLE), TwoStackTotal),
        (VarPop(DOUBLE), TwoStackTotal),
        (Max(INT), TwoStackTotal),
        (First(INT), TwoStackTotal),
    ],
    ids=repr,
)
def test_chains_subtract_where_that_loses_nothing(aggregate: Aggregate[Any], kind: type[PaneTotal]) -> None:
    columns = [aggregate.state_arrays()]
    assert pane_totals(columns, frozenset()) == [kind]
    assert pane_totals(columns, frozenset([RULE])) == [TwoStackTotal]


def test_only_exact_states_of_invertible_aggregates_are_subtracted() -> None:
    """Of floats, those that are only counted or kept as they are."""
    kinds = {name: kind for name, kind in AGGREGATES.items() if kind.arity == 1 and not kind.parameters}
    exact = {
        number: {name for name, kind in kinds.items() if kind(number).state_arrays().exact} for number in (INT, DOUBLE)
    }
    assert all(kinds[name].laws.invertible for names in exact.values() for name in names)
    assert exact[DOUBLE] == {"COUNT", "COUNT(DISTINCT)", "MEDIAN", "RECURRING", "RECURRING_COUNTS"}
    assert exact[INT] - exact[DOUBLE] >= {"SUM", "AVG", "VAR_POP", "STDDEV_SAMP"}


@pytest.mark.parametrize(
    ("call", "how"),
    [
        ("SUM(v)", "differences of running sums"),
        ("COUNT(*)", "differences of running sums"),
        ("MAX(v)", "where rows leave in the order in which they came, two scans; elsewhere a heap"),
        ("FIRST(v)", "where rows leave in the order in which they came, two scans; elsewhere a tree over the changes"),
    ],
)
@pytest.mark.parametrize("window", ["RANGE 9", "ROWS 9"])
def test_windows_that_change_with_every_row_keep_rows(window: str, call: str, how: str) -> None:
    """Whether the rule is on or off: it decides about panes."""
    for off in ([], [RULE.name]):
        pool = pw.Pool({"S": pw.StreamSchema(pa.schema([("t", INT), ("v", INT)]), "t")}, rules_off=off)
        pool.register("q", f"SELECT {call} AS a FROM S [{window}]")
        assert f" in rows: {how}" in pool.explain()


@pytest.mark.slow
def test_subtracting_a_maximum_does_not_type_check(tmp_path: Path) -> None:
    """The illegal call is an error of the type checker, the legal one is not."""
    program = tmp_path / "calls.py"
    program.write_text(
        "import pyarrow as pa\n"
        "from panewise.aggregate import Count, Max\n"
        "Count(pa.int64()).invert(5, 3)\n"
        "Max(pa.int64()).invert(5, 3)\n"
    )
    config = Path(__file__).parents[2] / "pyproject.toml"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(tmp_path), str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [line for line in checked.stdout.splitlines() if "calls.py" in line and "error" in line]
    assert len(complaints) == 1, checked.stdout + checked.stderr
    assert "calls.py:4" in complaints[0]
    assert '"Max" has no attribute "invert"' in complaints[0]
