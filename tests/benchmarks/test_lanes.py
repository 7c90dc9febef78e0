"""What `lanes` compares computes the same: the texts for DuckDB, and what pandas and Polars are asked.

Where both give the final value of a group at an instant, the values agree. Sketches and quantiles of other systems are
defined differently, and are only held to be near.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from benchmarks.harness.figure import Points, Row
from benchmarks.harness.timing import rows_within
from benchmarks.promises.lanes import BARS, DUCKDB, OURS, RATE, TIMES_DUCKDB, TIMES_SUM, Bar, first_rows, place
from benchmarks.promises.lanes_duckdb import connect, duckdb_text
from benchmarks.promises.lanes_frames import pandas_work, polars_work
from benchmarks.promises.lanes_queries import LANES, OPERATORS, PERIODIC, Lane, Scale, Streams, answers, engine_of

STREAMS = Streams(Scale(rows=1500, keys=12, dense=1, sparse=2))


def name(lane: Lane) -> str:
    return f"{lane.window}-{lane.asked}"


def is_refused(lane: Lane) -> bool:
    try:
        engine_of(lane, STREAMS.scale)
    except pw.PanewiseError:
        return True
    return False


def rows_of(lane: Lane) -> dict[str, pa.Table]:
    return STREAMS.first(lane, STREAMS.scale.rows * len(lane.streams))


def by_panewise(lane: Lane) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answers(engine_of(lane, STREAMS.scale), rows_of(lane)).to_pylist()
    return found


def by_duckdb(lane: Lane) -> list[dict[str, Any]]:
    text = duckdb_text(lane, STREAMS.scale)
    assert text is not None
    with connect(rows_of(lane)) as connection:
        found: list[dict[str, Any]] = connection.sql(text).to_arrow_table().to_pylist()
    return found


def agree(asked: str, ours: Any, theirs: Any) -> bool:
    ours, theirs = (None if isinstance(a, float) and math.isnan(a) else a for a in (ours, theirs))
    match asked:
        case "TOP_K":
            return 0 < len(ours) <= 10 and bool(theirs)
        case "APPROX_DISTINCT":
            return bool(theirs / 2 <= ours <= theirs * 2)
        case "QUANTILE":  # DuckDB takes the place above where Panewise takes the one below
            return bool(ours <= theirs)
    if isinstance(ours, int | float) and theirs is not None:
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return bool(ours == theirs)


def states(rows: Iterable[dict[str, Any]]) -> Callable[[int, int], Any]:
    """The answer of a group at an instant: that of the last row that entered until then."""
    times: dict[int, list[int]] = defaultdict(list)
    values: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        if row.get("sign", 1) == 1:
            times[row["k"]].append(row["ts"])
            values[row["k"]].append(row["a"])
    return lambda key, at: values[key][bisect_right(times[key], at) - 1]


ANSWERED = [lane for lane in LANES if not is_refused(lane)]
AGGREGATED = [lane for lane in ANSWERED if lane.asked not in OPERATORS]
AT_INTERVALS = [lane for lane in AGGREGATED if lane.window in (*PERIODIC, "session")]
CHANGING = [lane for lane in AGGREGATED if lane not in AT_INTERVALS]

#: Other systems interpolate quantiles, or not, in ways of their own.
IN_FRAMES = [
    lane
    for lane in AGGREGATED
    if lane.asked not in ("QUANTILE", "APPROX_DISTINCT")
    and any(work(lane, rows_of(lane)["S"]) for work in (pandas_work, polars_work))
]


@pytest.mark.parametrize("lane", AT_INTERVALS, ids=name)
def test_windows_at_intervals_are_those_of_duckdb(lane: Lane) -> None:
    ours = {(row.get("w_level", 0), row["k"], row["w_end"]): row["a"] for row in by_panewise(lane)}
    theirs = {(row.get("level", 0), row["k"], row["e"]): row["a"] for row in by_duckdb(lane)}
    assert ours.keys() == theirs.keys()
    assert [at for at in ours if not agree(lane.asked, ours[at], theirs[at])] == []


@pytest.mark.slow
@pytest.mark.parametrize("lane", CHANGING, ids=name)
def test_windows_that_change_have_the_values_of_over(lane: Lane) -> None:
    """After the last row of an instant: counted windows change with every row, and are reported once an instant."""
    ours, theirs = states(by_panewise(lane)), by_duckdb(lane)
    newest = {row["e"]: row["n"] for row in sorted(theirs, key=lambda row: row["n"])} if "n" in theirs[0] else None
    final = [row for row in theirs if newest is None or newest[row["e"]] == row["n"]]
    assert len(final) >= STREAMS.scale.rows // STREAMS.scale.sparse
    assert [row for row in final if not agree(lane.asked, ours(row["k"], row["e"]), row["a"])] == []


@pytest.mark.parametrize("asked", ["SELECT", "DISTINCT", "join"])
def test_operators_report_what_duckdb_computes(asked: str) -> None:
    lane = Lane("continuous", asked)
    ours = sorted((row["ts"], row["k"], row["v"], row.get("sign", 1)) for row in by_panewise(lane))
    assert ours == sorted((row["e"], row["k"], row["v"], row.get("sign", 1)) for row in by_duckdb(lane))


def test_groups_over_a_join_have_the_sums_of_duckdb() -> None:
    lane = Lane("continuous", "groups over a join")
    ours, theirs = states(by_panewise(lane)), by_duckdb(lane)
    assert theirs
    assert [row for row in theirs if ours(row["k"], row["e"]) != row["a"]] == []


@pytest.mark.parametrize("lane", IN_FRAMES, ids=name)
def test_pandas_and_polars_answer_the_same(lane: Lane) -> None:
    """At the last row of a key at an instant; only Polars counts all rows of an instant before."""
    rows = rows_of(lane)["S"]
    theirs = by_duckdb(lane)
    if (work := polars_work(lane, rows)) is not None:
        frame = work()
        if lane.window == "partitioned":
            frame = frame.unique(["k", "t"], keep="last", maintain_order=True)
            theirs = sorted(theirs, key=lambda row: row["n"])
        expected = {(row["k"], row["e"]): row["a"] for row in theirs}
        found = {(row["k"], row["t"]): row["a"] for row in frame.to_dicts()}
        assert found
        assert [at for at, value in found.items() if not agree(lane.asked, value, expected[at])] == []
    if (work := pandas_work(lane, rows)) is not None:
        ordered = sorted(theirs, key=lambda row: (row["k"], row["n"]))
        found = {(row["k"], row["e"]): value for row, value in zip(ordered, work().tolist(), strict=True)}
        expected = {(row["k"], row["e"]): row["a"] for row in ordered}
        assert [at for at, value in found.items() if not agree(lane.asked, value, expected[at])] == []


def test_a_bar_is_decided_by_the_worst() -> None:
    rates = {(OURS, "SUM"): 6.0, (OURS, "VAR"): 3.0, (DUCKDB, "SUM"): 3.0, (DUCKDB, "VAR"): 3.0}
    rows = [Row(series, place(5, "sliding", asked), y) for (series, asked), y in rates.items()]
    points = Points([*rows, Row(*first_rows(DUCKDB, place(5, "sliding", "VAR")), 625)])
    asked = ("SUM", "VAR", "MIN")
    verdicts = [Bar("sliding", asked, bound, unit).finding(points, 5) for bound, unit in WANTED]
    assert [(found.ours, found.holds) for found in verdicts if found] == [
        ("VAR 3", True),
        ("VAR 1, over the first rows only; 1 of 2 fail", False),
        ("VAR 2; 1 of 2 fail", False),
    ]
    assert Bar("now", asked, 1, RATE).finding(points, 5) is None


WANTED = [(3.0, RATE), (2.0, TIMES_DUCKDB), (1.5, TIMES_SUM)]


def test_bars_are_about_lanes_that_are_measured() -> None:
    assert {Lane(bar.window, asked) for bar in BARS for asked in bar.asked} <= set(LANES)


def test_slow_work_is_measured_over_the_first_rows() -> None:
    tried: list[int] = []

    def run(count: int) -> float:
        tried.append(count)
        return 99.0 if tried == [625, 625, 2500] else count / 1000  # the machine was busy once

    assert rows_within(60, 10_000, run) == 10_000
    assert tried == [625, 625, 2500, 2500]
    assert rows_within(3, 10_000, run) == 2500
    assert rows_within(1, 10_000, run) == 625
