"""Frames filled from another stream: the engine and shards against their meaning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.engine import keys
from tests.spark.shards import Shards

from .test_engine import same
from .test_frames import KEYS, SCHEMA, VALUES, reports

pytestmark = pytest.mark.slow

FRAMES = st.sampled_from(
    [
        "WHILE v > 1 PARTITION BY k",
        "WHILE v > 0 FOR AT LEAST 2 EXTENT LIBERAL PARTITION BY k",
        "WHILE v > 0 FRAGMENTS EVERY 2 PARTITION BY k",
        "WHILE v > 0 AS INTERVALS FRAGMENTS EVERY 1 ROWS PARTITION BY k",
        "DELTA v > 2 PARTITION BY k, v",
        "COUNT(*) >= 2 UNCONSTRAINED PARTITION BY k",
        "DENSITY 2 PER 3",
        "WHILE v > 0",
    ]
)
SHIFTS = st.sampled_from(["", "FROM START - 3", "TO END + 2", "FROM START + 1 TO END - 1", "OFFSET 4", "OFFSET -2"])
ASKED = st.sampled_from(
    [
        "COUNT(*) AS n, SUM(b.v) AS s",
        "b.*",
        "b.k AS other, b.v * 2 AS twice",
        "b.v % 2 AS odd, COUNT(*) AS n GROUP BY b.v % 2",
        "MAX(b.v) AS m HAVING COUNT(*) > 1",
    ]
)
WHERE = st.sampled_from(["", "", "WHERE b.v > 0"])


SEVERAL = st.sampled_from(["SUM(b.v) AS s, COUNT(c.v) AS n", "MAX(c.v) AS m, MAX(b.v) AS o, COUNT(b.k) AS n"])


@pytest.fixture(scope="module", autouse=True)
def forgetful() -> Iterator[None]:
    """Keys of which nothing is remembered are forgotten at once."""
    with patch.object(keys, "FEW_KEYS", 0):
        yield


@st.composite
def queries(draw: st.DrawFn) -> str:
    frame = draw(FRAMES)
    if draw(st.integers(0, 3)) == 0:
        second = "ON c.k = S.k" if "BY k" in frame and draw(st.booleans()) else ""
        where = draw(st.sampled_from(["", "WHERE b.v > 0 AND c.v < 4"]))
        first = f"FILL WITH T AS b {'ON b.k = S.k' if 'BY k' in frame else ''} {draw(SHIFTS)}"
        return f"SELECT {draw(SEVERAL)} FROM S [FRAME {frame}] {first} FILL WITH T AS c {second} {draw(SHIFTS)} {where}"
    on = draw(st.sampled_from(["ON b.k = S.k", "ON b.k = S.k", ""])) if "BY k" in frame else ""
    asked, clause, rest = draw(ASKED).partition(" GROUP")
    if not clause:
        asked, clause, rest = asked.partition(" HAVING")
    return f"SELECT {asked} FROM S [FRAME {frame}] FILL WITH T AS b {on} {draw(SHIFTS)} {draw(WHERE)} {clause}{rest}"


def streams(max_size: int = 14) -> st.SearchStrategy[pa.Table]:
    return st.lists(st.tuples(st.integers(0, 14), KEYS, VALUES, st.none()), max_size=max_size).map(reports)


def pool_of(cql: str, delays: Sequence[int | None]) -> pw.Pool:
    pool = pw.Pool({n: pw.StreamSchema(SCHEMA, "t", d) for n, d in zip("ST", delays, strict=True)})
    pool.register("q", cql)
    return pool


def steps(s: pa.Table, t: pa.Table, cuts: Sequence[int]) -> list[tuple[str, pa.Table]]:
    """Pieces of both streams in turn."""
    found = []
    for name, whole in (("S", s), ("T", t)):
        edges = [0, *sorted(min(cut, whole.num_rows) for cut in cuts), whole.num_rows]
        found.append([(name, whole.slice(a, b - a)) for a, b in pairwise(edges)])
    return [step for both in zip(*found, strict=True) for step in both]


@settings(max_examples=150)
@given(streams(), streams(), queries(), st.lists(st.integers(0, 14), max_size=3), st.integers(0, 6), st.integers(0, 8))
def test_the_engine_fills_as_is_meant(
    s: pa.Table, t: pa.Table, cql: str, cuts: list[int], delay: int, restart: int
) -> None:
    """Whichever stream is ahead, with rows that are late, and a restart while frames wait for what fills them."""
    given_ = {"S": pw.Stream(s, "t", delay), "T": pw.Stream(t, "t", delay)}
    wanted = pw.reference.execute(cql, given_)
    engine, said = pw.Engine(pool_of(cql, (delay, delay))), []
    for number, (name, rows) in enumerate(steps(s, t, cuts)):
        if number == restart:
            engine = pw.Engine.restore(engine.snapshot())
        engine.feed(name, rows)
        said.append(engine.advance()["q"])
    same(pa.concat_tables([*said, engine.finish()["q"]]), wanted.table)
    assert {n: engine.accounting[n] for n in "ST"} == wanted.accounting


@settings(max_examples=60)
@given(streams(), streams(), queries(), st.lists(st.integers(0, 14), max_size=3), st.integers(1, 3), st.booleans())
def test_shards_fill_as_is_meant(
    s: pa.Table, t: pa.Table, cql: str, cuts: list[int], shards: int, restarts: bool
) -> None:
    s, t = s.sort_by("t"), t.sort_by("t")
    found = Shards(pool_of(cql, (0, 0)), shards, restarts)
    for (_, one), (_, other) in zip(*[iter(steps(s, t, cuts))] * 2, strict=True):
        found.batch(S=[one], T=[other])
    found.finish()
    same(found.results("q"), pw.reference.run(cql, {"S": s, "T": t}, time="t"))


def test_a_fragment_that_has_no_time_lists_nothing_later() -> None:
    """Bounds that are moved inwards may leave nothing; rows before them were listed with the next fragment."""
    frame = "WHILE v > 0 AS INTERVALS FRAGMENTS EVERY 1 ROWS"
    cql = f"SELECT b.t FROM S [FRAME {frame}] FILL WITH T AS b FROM START + 1 TO END - 1"
    s, t = reports([(1, "a", 1, None), (2, "a", None, None)]), reports([(1, "a", None, None)])
    assert pw.run(cql, {"S": s, "T": t}, time="t").num_rows == 0


@settings(max_examples=60)
@given(streams(), streams(), queries(), st.lists(st.integers(0, 14), max_size=3))
def test_what_is_stored_fills_at_once(s: pa.Table, t: pa.Table, cql: str, cuts: list[int]) -> None:
    """A stream without a delay is a table: frames do not wait for it."""
    engine = pw.Engine(pool_of(cql, (20, None)))
    engine.feed("T", t)
    engine.feed("S", s)
    early, rest = engine.advance(100)["q"], engine.finish()["q"]
    same(pa.concat_tables([early, rest]), pw.reference.run(cql, {"S": s, "T": t}, time="t"))


def test_keys_of_different_widths_agree_by_value() -> None:
    schema = pa.schema([("t", pa.int64()), ("i", pa.int64())])
    s = pa.table({"t": [1, 2], "i": [2**40, 7]}, schema=schema)
    t = pa.table({"t": [2, 2], "j": pa.array([7, 1], pa.int32())})
    cql = "SELECT COUNT(*) AS n FROM S [FRAME WHILE i > 0 PARTITION BY i] FILL WITH T ON T.j = S.i"
    found = pw.run(cql, {"S": s, "T": t}, time="t")
    assert {(row["i"], row["n"]) for row in found.to_pylist()} == {(2**40, 0), (7, 1)}
