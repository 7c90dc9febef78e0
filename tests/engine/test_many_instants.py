"""Queries that would be reported at very many instants: refused in time, and quick where there are fewer."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

import panewise as pw
from panewise import window
from panewise.algebra import Windowed
from panewise.cql import bind_inputs

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
FAR = 10**10
VARYING = "RANGE (CASE WHEN now % 2 = 0 THEN 20000000000 ELSE 5 END) SLIDE 1"

#: A query for every window, and for every clause that makes windows speak more often.
KINDS = {
    "sliding": "SELECT COUNT(*) AS n FROM S [RANGE 20000000000 SLIDE 1]",
    "sliding, changes": "SELECT ISTREAM COUNT(*) AS n FROM S [RANGE 20000000000 SLIDE 1]",
    "sliding, losses": "SELECT DSTREAM COUNT(*) AS n FROM S [RANGE 20000000000 SLIDE 1]",
    "sliding, empty": "SELECT COUNT(*) AS n FROM S [RANGE 1 SLIDE 1] EMIT EMPTY",
    "sliding, lagging, empty": "SELECT COUNT(*) AS n FROM S [RANGE 2 SLIDE 1 LAG 3] EMIT EMPTY",
    "sliding, revised": "SELECT COUNT(*) AS n FROM S [RANGE 20000000000 SLIDE 1] LATE REVISE 3",
    "continuous": "SELECT COUNT(*) AS n FROM S [RANGE 3]",
    "now": "SELECT ISTREAM v FROM S [NOW]",
    "landmark": "SELECT COUNT(*) AS n FROM S [UNBOUNDED SLIDE 1]",
    "landmark, empty": "SELECT COUNT(*) AS n FROM S [UNBOUNDED SLIDE 1] EMIT EMPTY",
    "landmark, groups": "SELECT k, COUNT(*) AS n FROM S [UNBOUNDED SLIDE 1] GROUP BY k",
    "landmark, rows": "SELECT v FROM S [UNBOUNDED SLIDE 1]",
    "landmark, changes": "SELECT ISTREAM v FROM S [UNBOUNDED SLIDE 1]",
    "fixed": "SELECT COUNT(*) AS n FROM S [FROM 0 UNTIL 20000000000 SLIDE 1]",
    "cumulating": "SELECT COUNT(*) AS n FROM S [CUMULATE 20000000000 STEP 1 START AT -5]",
    "cumulating, empty": "SELECT COUNT(*) AS n FROM S [CUMULATE 10 STEP 1] EMIT EMPTY",
    "varying": f"SELECT COUNT(*) AS n FROM S [{VARYING}]",
    "levels": "SELECT COUNT(*) AS n FROM S [RANGES 20000000000, 2 SLIDES 2, 1]",
    "levels, empty": "SELECT COUNT(*) AS n FROM S [RANGES 4, 2 SLIDES 2, 1] EMIT EMPTY",
    "levels, aged": "SELECT AGED_SUM(v) AS n FROM S [RANGES 20000000000, 2 SLIDES 2, 1]",
    "predicate": "SELECT COUNT(*) AS n FROM S [WHERE v > 0]",
    "rows": "SELECT COUNT(*) AS n FROM S [ROWS 2]",
    "rows, levels": "SELECT COUNT(*) AS n FROM S [ROWS 2, 1 SLIDES 2, 1]",
    "session": "SELECT COUNT(*) AS n FROM S [SESSION 20000000000]",
    "union": "SELECT v FROM S [RANGE 3 SLIDE 1] UNION ALL SELECT v FROM S [RANGE 2 SLIDE 2]",
    "join": "SELECT A.v FROM S [UNBOUNDED SLIDE 1] AS A, S [UNBOUNDED] AS B WHERE A.k = B.k",
    "frames": "SELECT COUNT(*) AS n FROM S [FRAME WHILE v > 0]",
    "frames, every": "SELECT COUNT(*) AS n FROM S [FRAME WHILE v > 0 EVERY 1]",
}


def rows(*times: int) -> pa.Table:
    return pa.table([times, ["a"] * len(times), [1] * len(times)], schema=SCHEMA)


def quickly(answers: Iterator[int]) -> None:
    """Few rows, or a refusal that says how many instants there would be; in any case soon."""
    begun = time.monotonic()
    refused = ""
    try:
        said = sum(answers)
    except pw.PanewiseError as problem:
        refused, said = str(problem), 0
    assert said < 100
    assert not refused or "would be reported at" in refused
    assert time.monotonic() - begun < 10


@pytest.mark.timed
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_waits_for_billions_of_instants(kind: str) -> None:
    def run() -> Iterator[int]:
        yield pw.run(KINDS[kind], {"S": rows(0, 1, FAR)}, time="t").num_rows

    quickly(run())


@pytest.mark.timed
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("waits", [False, True], ids=["at once", "after a while"])
def test_nobody_waits_for_billions_of_instants_of_a_standing_query(kind: str, waits: bool) -> None:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", delay=0)})
    if kind in ("landmark, empty", "frames, every"):
        pytest.skip("answered by the reference alone")
    pool.register("q", KINDS[kind] if "LATE REVISE" in KINDS[kind] else f"{KINDS[kind]} ALLOW UNBOUNDED")
    engine = pw.Engine(pool)

    def run() -> Iterator[int]:
        engine.feed("S", rows(0, 1))
        if waits:
            yield engine.advance()["q"].num_rows
        engine.feed("S", rows(FAR))
        yield engine.advance()["q"].num_rows

    quickly(run())


def test_every_window_is_among_the_kinds() -> None:
    bound = [bind_inputs(query, {"S": rows(0)}, "t")[0] for query in KINDS.values()]
    met = {type(node.window) for query in bound for node in query.root.walk() if isinstance(node, Windowed)}
    kinds = {each for each in vars(window).values() if isinstance(each, type) and issubclass(each, window.Window)}
    assert {kind for kind in kinds if not kind.__abstractmethods__} <= met


@pytest.mark.timed
@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) AS n, SUM(v) AS s FROM S [RANGE 1 SLIDE 1] EMIT EMPTY",
        "SELECT COUNT(*) AS n FROM S [CUMULATE 10 STEP 1] EMIT EMPTY",
        "SELECT COUNT(*) AS n, SUM(v) AS s FROM S [UNBOUNDED SLIDE 1]",
        "SELECT k, MAX(v) AS s FROM S [UNBOUNDED SLIDE 1] GROUP BY k",
        "SELECT COUNT(*) AS n FROM S [RANGE 1000000 SLIDE 1]",
        "SELECT COUNT(*) AS n FROM S [RANGES 1000000, 10 SLIDES 2, 1]",
        "SELECT COUNT(*) AS n FROM S [RANGE (1000000) SLIDE 1]",
        "SELECT v FROM S [UNBOUNDED SLIDE 1]",
    ],
)
def test_quiet_instants_cost_next_to_nothing(query: str) -> None:
    """A hundred times as many instants between the same items take about as long."""
    streams = {n: {"S": rows(0, 7, n)} for n in (100, 100_000)}
    for each in streams.values():
        pw.run(query, each, time="t", until=50)
    taken = {}
    for n, each in streams.items():
        begun = time.process_time()
        found = pw.run(query, each, time="t", until=n)
        taken[n] = time.process_time() - begun
        assert found.num_rows > n / 2
    assert taken[100_000] < max(1.0, 30 * taken[100])
