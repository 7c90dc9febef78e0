"""A snapshot anywhere changes nothing; a damaged or foreign one is refused in one sentence."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import StateProblem
from panewise.engine.state import snapshot

QUERIES = {
    "sliding": "SELECT k, SUM(v) AS s, MAX(v) AS m, FIRST(v) AS f, LAST(w) AS l, AVG(x) AS a "
    "FROM S [RANGE 10 SLIDE 3] GROUP BY k",
    "levels": "SELECT k, COUNT(v) AS n FROM S [RANGES 40, 10 SLIDES 5, 2] GROUP BY k",
    "lagged": "SELECT k, COUNT(*) AS n FROM S [RANGE 10 SLIDE 5 LAG 7] GROUP BY k HAVING COUNT(*) > 5",
    "landmark": "SELECT k, MIN(v) AS m FROM S [UNBOUNDED SLIDE 10] GROUP BY k",
    "growing": "SELECT k, MIN(v) AS m FROM S [UNBOUNDED] GROUP BY k",
    "cumulating": "SELECT k, MIN(v) AS m FROM S [CUMULATE 20 STEP 5] GROUP BY k",
    "changes": "SELECT k, MIN(v) AS m FROM S [RANGE 20] GROUP BY k",
    "insertions": "SELECT ISTREAM k, MIN(v) AS m FROM S [RANGE 20 SLIDE 7] GROUP BY k",
    "holistic": "SELECT k, MEDIAN(v) AS m, COUNT(DISTINCT w) AS d, QUANTILE(x, 0.5) AS q "
    "FROM S [RANGE 12 SLIDE 5] GROUP BY k",
    "silence": "SELECT COUNT(*) AS n FROM S [RANGE 1 SLIDE 1] WHERE v > 48 EMIT EMPTY",
    "started": "SELECT k, VAR_SAMP(v) AS s, REGR_SLOPE(x) AS r FROM S [RANGE 20 SLIDE 7 START AT 13] GROUP BY k",
    "revised": "SELECT k, SUM(v) AS s FROM S [RANGE 10 SLIDE 3] GROUP BY k LATE REVISE 5",
    "rows": "SELECT k, MAX(v) AS m, SUM(x) AS s FROM S [ROWS 20] GROUP BY k",
    "blocks": "SELECT k, MAX(v) AS m, SUM(x) AS s FROM S [ROWS 20, 10 SLIDES 14, 7] GROUP BY k",
    "partitions": "SELECT k, MAX(v) AS m, AVG(x) AS s FROM S [PARTITION BY k ROWS 5] GROUP BY k ALLOW UNBOUNDED",
    "partition_blocks": "SELECT k, MAX(v) AS m FROM S [PARTITION BY k ROWS 5 SLIDE 3] GROUP BY k ALLOW UNBOUNDED",
    "across": "SELECT MAX(v) AS m, LAST(v) AS l FROM S [PARTITION BY k ROWS 5 LAG 2] WHERE v > 0 ALLOW UNBOUNDED",
    "whole_rows": "SELECT RSTREAM k, MAX(v) AS m FROM S [ROWS 10] GROUP BY k",
    "sessions": "SELECT k, MAX(v) AS m, COUNT(*) AS n FROM S [PARTITION BY k SESSION 1] GROUP BY k",
    "bridged": "SELECT k, MAX(v) AS m FROM S [SESSION 1] WHERE v > 0 GROUP BY k",
    "session_changes": "SELECT ISTREAM k, MAX(v) AS m FROM S [PARTITION BY k SESSION 1] GROUP BY k",
}


def stream(rows: int = 500, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    keys = [None if n == 0 else f"k{n}" for n in rng.integers(0, 5, rows)]
    return pa.table(
        {
            "t": np.sort(rng.integers(0, rows // 5, rows)) + rng.integers(-6, 7, rows),
            "k": pa.array(keys, pa.string()),
            "v": rng.integers(-50, 50, rows),
            "w": pa.array([f"w{n}" for n in rng.integers(0, 9, rows)]),
            "x": rng.normal(size=rows),
        }
    )


def engine(table: pa.Table, delay: int, queries: dict[str, str]) -> pw.Engine:
    pool = pw.Pool({"S": pw.StreamSchema(table.schema, time="t", delay=delay)})
    for name, text in queries.items():
        pool.register(name, text)
    return pw.Engine(pool)


def plain(table: pa.Table) -> list[str]:
    """Rows without order, floats to nine digits."""
    rounded = ([round(v, 9) if isinstance(v, float) else v for v in row.values()] for row in table.to_pylist())
    return sorted(map(repr, rounded))


def drive(e: pw.Engine, table: pa.Table, restarts: float, seed: int) -> tuple[pw.Engine, dict[str, list[str]]]:
    """Feed in random parts with random advances and restarts; the results of each query."""
    choice = random.Random(seed)
    said: dict[str, list[pa.Table]] = {}
    done = 0
    while done < table.num_rows:
        size = choice.randint(0, 80)
        e.feed("S", table.slice(done, size))
        done += size
        if choice.random() < 0.7:
            for name, found in e.advance().items():
                said.setdefault(name, []).append(found)
        if choice.random() < restarts:
            e = pw.Engine.restore(e.snapshot())
    for name, found in e.finish().items():
        said.setdefault(name, []).append(found)
    return e, {name: plain(pa.concat_tables(tables)) for name, tables in said.items()}


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 3, 12])
@pytest.mark.parametrize("name", QUERIES)
def test_split_and_restarted_runs_say_what_the_reference_says(name: str, delay: int) -> None:
    table = stream()
    meant = pw.reference.execute(QUERIES[name], {"S": pw.Stream(table, time="t", delay=delay)})
    for restarts in (0.0, 0.5):
        e, said = drive(engine(table, delay, {name: QUERIES[name]}), table, restarts, seed=delay)
        assert said[name] == plain(meant.table)
        if "ROWS" not in QUERIES[name]:  # how many newer rows a late one will meet is not known when it arrives
            assert e.accounting == meant.accounting
            assert plain(e.late("S")) == plain(meant.late["S"])


@pytest.mark.slow
def test_all_of_them_together_say_what_each_says_alone() -> None:
    table = stream()
    _, together = drive(engine(table, 3, QUERIES), table, 0.3, seed=5)
    for name, text in QUERIES.items():
        _, alone = drive(engine(table, 3, {name: text}), table, 0.0, seed=6)
        assert together[name] == alone[name], name


def test_queries_join_and_leave_after_a_restart() -> None:
    table = stream()
    e = engine(table, 3, {"sliding": QUERIES["sliding"]})
    e.feed("S", table.slice(0, 200))
    e.advance()
    e = pw.Engine.restore(e.snapshot())
    e.pool.register("levels", QUERIES["levels"])
    e.pool.revoke("sliding")
    e.feed("S", table.slice(200, 100))
    assert list(e.advance()) == ["levels"]


def test_times_of_day_stay_on_their_day() -> None:
    text = "SELECT COUNT(*) AS n FROM S [RANGE 1 HOUR SLIDE 1 HOUR START AT '07:00:00']"
    times = pa.array(["2026-01-31 06:30", "2026-01-31 07:30", "2026-02-01 03:30"]).cast(pa.timestamp("us"))
    table = pa.table({"t": times})
    pool = pw.Pool({"S": pw.StreamSchema(table.schema, time="t", delay="0 seconds")})
    pool.register("q", text)
    e = pw.Engine(pool)
    e = pw.Engine.restore(e.snapshot())  # the day is not known yet
    e.feed("S", table.slice(0, 2))
    e = pw.Engine.restore(e.snapshot())
    e.feed("S", table.slice(2))
    assert plain(e.finish()["q"]) == plain(pw.reference.run(text, {"S": table}, time="t"))


def test_a_damaged_snapshot_is_refused() -> None:
    table = stream(100)
    e = engine(table, 0, {"sliding": QUERIES["sliding"]})
    e.feed("S", table)
    data = e.snapshot()
    for bad in (b"", b"nonsense", data[: len(data) // 2], b"x" + data):
        with pytest.raises(StateProblem, match=r"the snapshot .*damaged"):
            pw.Engine.restore(bad)
    place = data.rindex(b"k1")
    with pytest.raises(StateProblem, match="damaged"):
        pw.Engine.restore(data[:place] + b"k7" + data[place + 2 :])


def test_a_snapshot_of_another_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    e = engine(stream(10), 0, {"sliding": QUERIES["sliding"]})
    data = e.snapshot()
    known = snapshot.FORMAT
    monkeypatch.setattr(snapshot, "FORMAT", known + 1)
    with pytest.raises(StateProblem, match=f"has format {known}, this version reads format {known + 1}"):
        pw.Engine.restore(data)
