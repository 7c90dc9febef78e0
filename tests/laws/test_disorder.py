"""Rows out of order: within the delay nothing changes, beyond it every row is accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.reference import execute

from .strategies import BOUNDARIES, SLIDING, Slide, arrivals, jittered, keyed_tables, late_arrivals

QUERIES = st.sampled_from(
    [
        "SELECT i, k FROM S [RANGE 4 SLIDE 3]",
        "SELECT i FROM S [RANGE 5 SLIDE 2 LAG 2]",
        "SELECT k, COUNT(*) AS n, LAST(i) AS newest FROM S [RANGE 6 SLIDE 2] GROUP BY k",
        "SELECT i FROM S [RANGE 4]",
        "SELECT i FROM S [ROWS 3]",
        "SELECT i FROM S [PARTITION BY k ROWS 2]",
        "SELECT COUNT(*) AS n FROM S [UNBOUNDED SLIDE 2]",
        "SELECT COUNT(*) AS n FROM S [PARTITION BY k SESSION 2]",
        "SELECT COUNT(*) AS n FROM S [CUMULATE 6 STEP 2]",
        "SELECT DISTINCT k FROM S [RANGE 4 SLIDE 1]",
        "SELECT A.i, B.i AS j FROM S AS A [RANGE 3 SLIDE 2], S AS B [ROWS 2] WHERE A.k = B.k",
        "SELECT k FROM S [RANGE 6 SLIDE 2] EXCEPT ALL SELECT k FROM S [RANGE 2 SLIDE 2]",
        "SELECT COUNT(*) AS n FROM (SELECT ISTREAM DISTINCT k FROM S [RANGE 3]) AS D [RANGE 4 SLIDE 2]",
    ]
)


def rows(table: pa.Table) -> list[Any]:
    """The rows of a result whatever their order inside it."""
    return sorted(map(repr, table.to_pylist()))


# ---- disorder within the delay ---------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=250)
@given(jittered(), QUERIES, BOUNDARIES)
def test_disorder_within_the_delay_changes_nothing(arrival: tuple[pa.Table, int], query: str, boundary: str) -> None:
    table, delay = arrival
    outcome = execute(query, {"S": pw.Stream(table, "t", delay=delay)}, boundary=boundary)
    assert rows(outcome.table) == rows(pw.run(query, {"S": table}, time="t", boundary=boundary))
    assert outcome.accounting["S"].late == outcome.accounting["S"].partly_late == 0


@pytest.mark.slow
@settings(max_examples=120)
@given(
    st.lists(st.tuples(st.integers(-12, 14), st.sampled_from("ab")), unique_by=lambda r: r[0], max_size=9),
    st.data(),
    QUERIES,
)
def test_permuting_a_complete_table_changes_nothing(
    items: list[tuple[int, str]], data: st.DataObject, query: str
) -> None:
    """With distinct times there is only one order of time."""
    numbered = [(i, t, k) for i, (t, k) in enumerate(items)]
    tables = [_table(numbered), _table(data.draw(st.permutations(numbered)))]
    one, other = (pw.run(query, {"S": table}, time="t") for table in tables)
    assert rows(one) == rows(other)


def _table(items: Sequence[tuple[int, int, str]]) -> pa.Table:
    columns = list(zip(*items, strict=True)) or [(), (), ()]
    types = (pa.int64(), pa.int64(), pa.string())
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], ["i", "t", "k"])


# ---- beyond the delay ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """A row as it arrived: its number, its time and the watermark it met."""

    i: int
    t: int
    mark: float

    def late_for(self, at: int, boundary: str) -> bool:
        """Under `(]` the instant is final once the watermark has passed it, under `[)` once it has reached it."""
        return self.mark > at if boundary == "(]" else self.mark >= at


def arrived(times: Sequence[int | None], delay: int) -> list[Item]:
    items: list[Item] = []
    newest = -float("inf")
    for i, t in enumerate(times):
        if t is not None:
            items.append(Item(i, t, newest - delay))
            newest = max(newest, t)
    return items


def wanting(window: Slide, t: int, boundary: str) -> list[int]:
    """The instants whose scope holds a tick."""
    origin, found = window.start or 0, []
    for at in range(-40, 60):
        low, high = at - window.lag - window.range, at - window.lag
        inside = low < t <= high if boundary == "(]" else low <= t < high
        started = window.start is None or (t >= window.start and at >= window.start)
        if (at - origin) % (window.slide or 1) == 0 and inside and started:
            found.append(at)
    return found


@settings(max_examples=300)
@given(arrivals(), st.integers(0, 5), SLIDING, BOUNDARIES)
def test_late_rows_count_where_they_still_can(table: pa.Table, delay: int, window: Slide, boundary: str) -> None:
    """A row is missing at the instants that were final when it came, and no other; wholly late rows are set aside."""
    outcome = execute(f"SELECT i FROM S {window.cql}", {"S": pw.Stream(table, "t", delay=delay)}, boundary=boundary)
    wanted: list[tuple[int, int]] = []
    late: list[int] = []
    partly = 0
    for item in arrived(table["t"].to_pylist(), delay):
        instants = wanting(window, item.t, boundary)
        open_ones = [at for at in instants if not item.late_for(at, boundary)]
        wanted += [(item.i, at - window.lag) for at in open_ones]
        late += [item.i] if instants and not open_ones else []
        partly += 0 < len(open_ones) < len(instants)
    assert sorted(zip(outcome.table["i"].to_pylist(), outcome.table["w_end"].to_pylist(), strict=True)) == sorted(
        wanted
    )
    assert outcome.late["S"]["i"].to_pylist() == late
    account = outcome.accounting["S"]
    assert (account.late, account.partly_late) == (len(late), partly)


@settings(max_examples=250)
@given(arrivals(), st.integers(0, 5), QUERIES, BOUNDARIES)
def test_every_row_is_accounted_for(table: pa.Table, delay: int, query: str, boundary: str) -> None:
    outcome = execute(query, {"S": pw.Stream(table, "t", delay=delay)}, boundary=boundary)
    account = outcome.accounting["S"]
    assert account.rows_in == table.num_rows == account.used + account.late + account.rejected
    assert account.rejected == table["t"].null_count
    assert account.late == outcome.late["S"].num_rows
    assert account.partly_late <= account.used
    arrivals_of_late = outcome.late["S"]["i"].to_pylist()
    assert arrivals_of_late == sorted(set(arrivals_of_late))
    assert outcome.late["S"]["t"].null_count == 0


@settings(max_examples=100)
@given(keyed_tables(), QUERIES, BOUNDARIES)
def test_complete_tables_have_no_late_rows(table: pa.Table, query: str, boundary: str) -> None:
    account = execute(query, {"S": table}, time="t", boundary=boundary).accounting["S"]
    assert (account.used, account.late, account.rejected, account.partly_late) == (table.num_rows, 0, 0, 0)


@pytest.mark.slow
@settings(max_examples=100)
@given(arrivals(), st.integers(0, 3), st.integers(0, 8), QUERIES)
def test_more_delay_never_loses_more(table: pa.Table, delay: int, more: int, query: str) -> None:
    accounts = [execute(query, {"S": pw.Stream(table, "t", delay=d)}).accounting["S"] for d in (delay, delay + more)]
    if "ROWS" not in query and "SESSION" not in query:  # counted windows want other rows when others are in
        assert accounts[1].late <= accounts[0].late


# ---- LATE REVISE -----------------------------------------------------------------------------------------------------

REVISED = st.sampled_from(
    [
        "SELECT i, k FROM S [RANGE 4 SLIDE 3]",
        "SELECT k, COUNT(*) AS n, LAST(i) AS newest FROM S [RANGE 6 SLIDE 2] GROUP BY k",
        "SELECT COUNT(*) AS n FROM S [UNBOUNDED SLIDE 2]",
        "SELECT DISTINCT k FROM S [RANGE 4 SLIDE 1]",
        "SELECT A.i, B.i AS j FROM S AS A [RANGE 3 SLIDE 2], S AS B [RANGE 5 SLIDE 2] WHERE A.k = B.k",
        "SELECT A.i, B.i AS j FROM S AS A [RANGE 3 SLIDE 2], T AS B [RANGE 5 SLIDE 2] WHERE A.k = B.k",
        "SELECT i FROM (SELECT i, t FROM S WHERE k = 'a') AS P [RANGE 6 SLIDE 2]",
    ]
)


@pytest.mark.slow
@settings(max_examples=300)
@given(late_arrivals(), late_arrivals(), st.integers(0, 3), st.integers(1, 6), REVISED, BOUNDARIES)
def test_the_last_revision_is_the_patient_answer(
    s: pa.Table, t: pa.Table, delay: int, patience: int, query: str, boundary: str
) -> None:
    """The last revision of each instant is what a delay longer by the patience says there; the first is unrevised.

    This holds where late rows only add results (windows of time under monotone operators): a revision that leaves
    nothing to tell has no row to say so.
    """
    text = f"{query} LATE REVISE {patience}"
    streams = {name: pw.Stream(table, "t", delay=delay) for name, table in (("S", s), ("T", t))}
    patient = {name: pw.Stream(table, "t", delay=delay + patience) for name, table in (("S", s), ("T", t))}
    told = pw.execute(text, streams, boundary=boundary).table.to_pylist()
    last: dict[int, int] = {}
    for row in told:
        last[row["w_end"]] = max(last.get(row["w_end"], 0), row["revision"])
    final = [_without(row) for row in told if row["revision"] == last[row["w_end"]]]
    first = [_without(row) for row in told if row["revision"] == 0]
    assert sorted(map(repr, final)) == rows(pw.execute(query, patient, boundary=boundary).table)
    assert sorted(map(repr, first)) == rows(pw.execute(query, streams, boundary=boundary).table)


def _without(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "revision"}
