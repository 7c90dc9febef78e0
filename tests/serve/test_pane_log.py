"""Panes as rows of a log and back, what can be logged, and who may write where."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.core.errors import BindProblem, PanewiseError, SourceProblem, StateProblem
from panewise.cql import bind_script
from panewise.engine.keys import Keys
from panewise.engine.lookups.pane_lookups import PaneLookups
from panewise.engine.pool import RegisteredQuery
from panewise.engine.state.pane_log import PaneCollector, PaneLogFormat
from panewise.runtime.local import HOST
from panewise.runtime.local.script import answer
from panewise.runtime.pane_log import HEADER, Header, PaneLog, log_of, rows_of
from tests.mutations import mutations

from .logs import QUERY, Writer, ordered, rows

SCHEMA = pa.schema(
    [("t", pa.int64()), ("k", pa.string()), ("v", pa.float64()), ("n", pa.int32()), ("d", pa.decimal128(9, 2))]
)
EVERYTHING = """
SELECT k AS pane_start, n % 2 AS odd, COUNT(*) AS c, COUNT(v) AS cv, SUM(v) AS s, SUM(n) AS sn, SUM(d) AS sd,
  AVG(n) AS a, MIN(k) AS mk, MAX(v) AS mv, FIRST(v) AS f, LAST(n) AS l, QUANTILE(v, 0.5) AS q, COUNT(DISTINCT n) AS dn,
  STDDEV(v) AS sv, REGR_SLOPE(v, n) AS r, REGR_R2(v, n) AS r2, APPROX_DISTINCT(v) AS ad, TOP_K(n, 2) AS tk
FROM S [RANGE 12 SLIDE 4] GROUP BY k, n % 2 HAVING COUNT(*) > 0
"""
ROWS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.none() | st.sampled_from(["a", "b", "é"]),
        st.none() | st.sampled_from([0.0, 1.5, -2.25, float("inf"), float("nan")]),
        st.integers(-3, 3),
        st.none() | st.integers(-99, 99).map(lambda n: Decimal(n) / 4),
    ),
    max_size=25,
)


@cache
def understood() -> RegisteredQuery:
    return pw.Pool({"S": pw.StreamSchema(SCHEMA, time="t", delay=3)}).prepare_query("q", EVERYTHING)


@settings(max_examples=20)
@given(batches=st.lists(ROWS, min_size=1, max_size=3), boundary=st.sampled_from(["(]", "[)"]))
def test_what_is_read_from_a_log_answers_like_the_engine(
    batches: list[list[tuple[object, ...]]], boundary: str
) -> None:
    """Every kind of state, in any order of arrival: late rows are parts of panes that are there already."""
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, time="t", delay=3)}, boundary)
    pool.add_query(understood())
    engine, log = pw.Engine(pool, keep=1000), PaneLogFormat(pool.queries["q"].aggregation, pa.int64())
    tap, read = PaneCollector(engine, ["q", "nobody"]), PaneLookups(pool)
    assert log.keys == ["pane_start", "odd"]
    assert {"pane_start_", "pane_end", "count"} < set(log.schema.names)
    for number, batch in enumerate(batches):
        columns = [list(column) for column in zip(*batch, strict=True)] or [[]] * len(SCHEMA)
        engine.feed("S", pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA))
        tap.open()
        _ = engine.advance() if number < len(batches) - 1 else engine.finish()
        panes = tap.collect()["q"]
        keys, found = log.read(panes)
        again = Keys(log.types)
        again.encode(keys, len(keys[0]))
        assert ordered(log.table(again, found).to_pylist()) == ordered(panes.to_pylist())
        read.take("q", keys, found)
    instants = list(range(0, 60, 4))
    assert ordered(read.lookup("q", instants).to_pylist()) == ordered(engine.lookup("q", instants).to_pylist())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT k, SUM(v) AS s FROM S [ROWS 5] GROUP BY k", "do not follow time alone"),
        ("SELECT k, SUM(v) AS s FROM S [SESSION 5] GROUP BY k", "do not follow time alone"),
        ("SELECT DISTINCT k FROM S [RANGE 5]", "answered from panes, but from rows"),
    ],
)
def test_what_has_no_panes_is_refused_at_its_place(tmp_path: Path, text: str, reason: str) -> None:
    pa.parquet.write_table(rows(0, 20), tmp_path / "in.parquet")
    script = (
        f"CREATE STREAM S (t BIGINT, k STRING, v BIGINT) TIME t FROM 'parquet:in.parquet';\nCREATE QUERY q AS {text}"
    )
    with pytest.raises(BindProblem, match=reason) as problem:
        answer(bind_script(f"{script}\n  PANES INTO 'parquet:panes'"), tmp_path, HOST)
    assert str(problem.value).startswith("line 3, column 3, in PANES INTO: query 'q' has no panes to log")
    assert not (tmp_path / "panes").exists()


@pytest.mark.parametrize("address", ["delta:panes", "kafka:server/topic", "parquet:", "parquet:s3://bucket/panes", "x"])
def test_only_folders_hold_logs(address: str) -> None:
    with pytest.raises(SourceProblem, match="is no place for a pane log; use parquet:path"):
        log_of(address, Path())


def test_a_window_from_a_time_of_day_is_refused() -> None:
    schema = pa.schema([("t", pa.timestamp("us", "UTC")), ("v", pa.int64())])
    pool = pw.Pool({"S": pw.StreamSchema(schema, time="t")})
    pool.register("q", "SELECT SUM(v) AS s FROM S [RANGE 1 HOUR SLIDE 1 HOUR START AT '07:00:00']")
    with pytest.raises(BindProblem, match="whose date a reader cannot know"):
        Header.of(pool.queries["q"], pool, "me")


def test_a_folder_belongs_to_one_query_and_one_pipeline(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "panes")
    pool = writer.engine.pool
    mine = Header.of(pool.queries["q"], pool, "the test")
    writer.log.claim(mine)
    with pytest.raises(StateProblem, match="another pipeline"):
        writer.log.claim(Header.of(pool.queries["q"], pool, "somebody else"))
    pool.register("r", QUERY.replace("RANGE 20", "RANGE 40"))
    with pytest.raises(StateProblem, match="another query, 'q'"):
        writer.log.claim(Header.of(pool.queries["r"], pool, "the test"))
    (tmp_path / "file").touch()
    with pytest.raises(SourceProblem, match="cannot be written"):
        PaneLog(tmp_path / "file" / "below").claim(mine)


def test_a_script_in_one_process_logs_its_panes(tmp_path: Path) -> None:
    """Run again over more rows, it replaces them."""
    script = f"""
        CREATE STREAM S (t BIGINT, k STRING, v BIGINT) TIME t FROM 'parquet:in.parquet';
        CREATE QUERY q AS {QUERY} INTO 'parquet:out' PANES INTO 'parquet:panes/q';
    """
    for last in (20, 60):
        table = rows(0, last)
        pa.parquet.write_table(table, tmp_path / "in.parquet")
        answer(bind_script(script), tmp_path, HOST)
        log = PaneLog(tmp_path / "panes/q")
        header = log.header()
        assert header is not None
        columns = rows_of(header.build_pool(), "q")
        panes = log.batches()[0].read(columns.schema)
        assert panes is not None
        assert sum(panes["count"].to_pylist()) == table.num_rows
        found = PaneLookups(header.build_pool())
        found.take("q", *columns.read(panes))
        wanted = pa.parquet.read_table(tmp_path / "out/q.parquet").to_pylist()
        assert ordered(found.lookup("q", 15).to_pylist()) == ordered([row for row in wanted if row["w_end"] == 15])


def test_two_queries_of_a_family_and_one_that_leaves() -> None:
    writer = pw.Engine(pool := pw.Pool({"S": pw.StreamSchema(SCHEMA, time="t", delay=0)}))
    for name, length in (("a", 10), ("b", 20)):
        pool.register(name, f"SELECT k, SUM(v) AS s FROM S [RANGE {length} SLIDE 5] GROUP BY k")
    tap = PaneCollector(writer, ["a", "b"])
    tap.open()
    writer.feed("S", rows_of_schema(11))
    writer.advance()
    drawn = tap.collect()
    assert drawn["a"].equals(drawn["b"])
    assert sum(drawn["a"]["count"].to_pylist()) == 6
    assert not any(table.num_rows for table in tap.collect().values())
    pool.revoke("a")
    assert list(tap.collect()) == ["b"]
    with pytest.raises(PanewiseError):
        pool.revoke("a")


def rows_of_schema(count: int) -> pa.Table:
    columns = [list(range(count)), ["a"] * count, [1.0] * count, [1] * count, [None] * count]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def test_every_damage_to_a_batch_of_a_log_is_one_clear_refusal(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "panes").write(rows(0, 40)).write(rows(40, 80))
    schema = rows_of(writer.engine.pool, "q").schema
    for batch in writer.log.batches().values():
        whole = batch.read(schema)
        (file,) = batch.files()
        for path, reason in ((file, "the length or the checksum"), (batch.seal, "")):
            data = path.read_bytes()
            for damaged in mutations(data, 60):
                path.write_bytes(damaged)
                if path == batch.seal and meaning(damaged) == meaning(data):
                    continue
                with pytest.raises(SourceProblem, match=f"cannot be read: {reason}.*; restore the files from a copy"):
                    batch.read(schema)
            path.write_bytes(data)
        assert batch.read(schema) == whole


def meaning(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return None


def test_every_damage_to_the_header_of_a_log_is_one_clear_refusal(tmp_path: Path) -> None:
    log = Writer(tmp_path / "panes").log
    header, path = log.header(), tmp_path / "panes" / HEADER
    data = path.read_bytes()
    refused = 0
    for damaged in mutations(data, 200):
        path.write_bytes(damaged)
        try:
            assert log.header() == header  # a space more or less between words is no damage
        except StateProblem as problem:
            refused += "is damaged: " in str(problem) or "has format" in str(problem)
    assert refused > 190


def test_a_batch_that_is_not_sealed_is_not_there_yet_unless_others_follow(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "panes").write(rows(0, 40)).write(rows(40, 80))
    schema = rows_of(writer.engine.pool, "q").schema
    for batch in reversed(writer.log.batches().values()):
        batch.seal.unlink()
        assert batch.version is None
    older, newest = writer.log.batches().values()
    assert newest.read(schema) is None
    with pytest.raises(SourceProblem, match=r"_batch-0.json' is missing"):
        older.read(schema)


def test_a_log_is_private_and_cleared_of_what_killed_writers_left(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "deep" / "panes").write(rows(0, 40))
    folder = writer.folder
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / ".spark-staging-1").mkdir()
    (folder / ".spark-staging-1" / "part").touch()
    (folder / ".draft-1-batch=3").mkdir()
    folder.chmod(0o750)
    Writer(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["_batch-0.json", HEADER, "batch=0"]
    assert folder.stat().st_mode & 0o777 == 0o750
