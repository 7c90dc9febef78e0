"""Nothing grows for ever unasked: keys that always change leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import panewise as pw
from panewise.aggregate.multisets import MultisetStates
from panewise.core.errors import BindProblem
from panewise.engine.frames import FrameQuery
from panewise.engine.rows.operator_graph import OperatorGraph
from panewise.engine.rows.operators.group import GroupOperator

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("j", pa.string()), ("v", pa.int64())])
BATCH = 1000

#: Frames that no item of these streams is in for longer than a moment, or at all.
FRAMES = {
    "threshold": "SELECT k, COUNT(*) AS n FROM S [FRAME WHILE v > 5 PARTITION BY k] GROUP BY k",
    "start and end": "SELECT COUNT(*) AS n FROM S [FRAME START WHEN v > 5 END WHEN v > 6 PARTITION BY k]",
    "aggregate kept": "SELECT COUNT(*) AS n FROM S [FRAME SUM(v) < 1 PARTITION BY k]",
    "aggregate reached, short": "SELECT COUNT(*) AS n FROM S [FRAME SUM(v) >= 1 FOR AT LEAST 5 ROWS PARTITION BY k]",
    "two keys": "SELECT k, j, COUNT(*) AS n FROM S [FRAME WHILE v > 5 PARTITION BY k, j] GROUP BY k, j",
    "groups inside": "SELECT k, COUNT(*) AS n FROM S [FRAME SUM(v) >= 10] GROUP BY k",
    "density": "SELECT COUNT(*) AS n FROM S [FRAME DENSITY 5 PER 2 PARTITION BY k]",
    "one item": "SELECT COUNT(*) AS n FROM S [FRAME SUM(v) >= 1 PARTITION BY k]",
    "one item, adjacent": "SELECT COUNT(*) AS n FROM S [FRAME SUM(v) >= 1 ADJACENT 2 PARTITION BY k]",
    "one item, followed": "SELECT COUNT(*) AS n FROM S [FRAME MEDIAN(v) >= 1 PARTITION BY k]",
    "one item, everywhere": "SELECT COUNT(*) AS n FROM S [FRAME COUNT(*) >= 1 UNCONSTRAINED PARTITION BY k]",
    "windows": "SELECT k, COUNT(*) AS n FROM S [RANGE 20 SLIDE 10] GROUP BY k",
    "sessions": "SELECT k, COUNT(*) AS n FROM S [PARTITION BY k SESSION 2] GROUP BY k",
    "sessions of keys, without groups": "SELECT COUNT(*) AS n FROM S [PARTITION BY k SESSION 2]",
}


def batches(count: int) -> Iterator[pa.Table]:
    """Keys that are always new."""
    for number in range(count):
        first = number * BATCH
        keys = [f"key {first + place}" for place in range(BATCH)]
        times = [10 * number + place * 10 // BATCH for place in range(BATCH)]
        yield pa.table([times, keys, keys, [1] * BATCH], schema=SCHEMA)


def followed(query: str, count: int) -> pw.Engine:
    """An engine after so many batches."""
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", delay=0)})
    pool.register("q", query)
    engine = pw.Engine(pool)
    for batch in batches(count):
        engine.feed("S", batch)
        engine.advance()
    return engine


@pytest.mark.parametrize("kind", FRAMES)
def test_keys_without_open_frames_are_forgotten(kind: str) -> None:
    """Five times as many keys are no larger state."""
    few, many = (followed(FRAMES[kind], count) for count in (8, 40))
    assert len(many.snapshot()) < 1.5 * len(few.snapshot())
    for part in many._row_engine.parts.values():
        if isinstance(part, FrameQuery):
            assert len(part.groups) <= 4 * BATCH
            assert all(len(contents.inner) <= 4 * BATCH for contents in part.contents)


def test_a_key_with_an_open_frame_is_remembered() -> None:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", delay=0)})
    pool.register("q", "SELECT k, COUNT(*) AS n FROM S [FRAME WHILE v > 5 PARTITION BY k] GROUP BY k")
    engine = pw.Engine(pool)
    early = pa.table([[-3, -2], ["open", "ended"], ["", ""], [9, 9]], schema=SCHEMA)
    ended = pa.table([[-1], ["ended"], [""], [0]], schema=SCHEMA)
    said = []
    for batch in (early, ended, *batches(20)):
        engine.feed("S", batch)
        said.append(engine.advance()["q"])
    again = pa.table([[500, 501, 502, 503], ["open", "open", "ended", "ended"], [""] * 4, [9, 0, 9, 0]], schema=SCHEMA)
    engine.feed("S", again)
    said.append(engine.finish()["q"])
    found = pa.concat_tables(said).select(["k", "n", "frame_id"]).to_pydict()
    assert found == {"k": ["ended", "open", "ended"], "n": [1, 2, 1], "frame_id": [-2, -3, 502]}


@pytest.mark.parametrize("window", ["RANGE 5 SLIDE 1", "RANGE 5", "UNBOUNDED"])
def test_lookups_find_the_groups_of_kept_panes_after_others_are_forgotten(
    window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Panes are kept for lookups longer than rows for windows: codes that windows forget may stand in panes."""
    monkeypatch.setattr("panewise.engine.keys.FEW_KEYS", 4)
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", delay=0)})
    pool.register("q", f"SELECT k, SUM(v) AS s FROM S [{window}] GROUP BY k ALLOW UNBOUNDED")
    engine = pw.Engine(pool, keep=1000)
    for time in range(60):
        engine.feed("S", pa.table([[time], [f"key {time:02}"], [""], [time]], schema=SCHEMA))
        engine.advance()
    found = engine.lookup("SELECT k, SUM(v) AS s FROM S [RANGE 5] GROUP BY k", at=10).sort_by("k")
    assert found["k"].to_pylist() == [f"key {time:02}" for time in range(6, 11)]
    assert found["s"].to_pylist() == [6, 7, 8, 9, 10]


#: Queries that have codes of texts, over windows and relations that keep few rows.
CODES = {
    "panes": "SELECT COUNT(DISTINCT k) AS n FROM S [RANGE 20 SLIDE 10]",
    "changes": "SELECT COUNT(DISTINCT k) AS n FROM S [RANGE 5]",
    "counted": "SELECT QUANTILE(k, 0.5) AS n FROM S [ROWS 5]",
    "sessions": "SELECT COUNT(DISTINCT k) AS n FROM S [PARTITION BY k SESSION 2]",
    "groups over a join": (
        "SELECT COUNT(DISTINCT a.k) AS n, QUANTILE(a.k, 0.5) AS q "
        "FROM S [RANGE 5 SLIDE 5] AS a, S [RANGE 5 SLIDE 5] AS b WHERE a.k = b.k"
    ),
}


@pytest.mark.parametrize("kind", CODES)
def test_texts_that_no_window_holds_are_forgotten(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("panewise.aggregate.dictionary.SMALL_DICTIONARY", 2 * BATCH)
    engine = followed(CODES[kind], 40)
    sizes = [len(column.dictionary) for column in multisets(engine) if column.dictionary is not None]
    assert sizes
    assert max(sizes) <= 8 * BATCH


def multisets(engine: pw.Engine) -> Iterator[MultisetStates]:
    graphs = [part for part in engine._row_engine.parts.values() if isinstance(part, OperatorGraph)]
    operators = [operator for graph in graphs for operator in graph.operators.values()]
    groups = [operator.columns for operator in operators if isinstance(operator, GroupOperator)]
    for columns in (*groups, *(family.columns for family in engine._families.values())):
        yield from (column for column in columns if isinstance(column, MultisetStates))


PARTITIONED = {
    "groups": "SELECT k, MAX(v) AS m FROM S [PARTITION BY k ROWS 3] GROUP BY k",
    "one group": "SELECT MAX(v) AS m FROM S [PARTITION BY k, j ROWS 3]",
    "rows": "SELECT k, v FROM S [PARTITION BY k ROWS 3]",
    "below a query": "SELECT k FROM (SELECT ISTREAM k FROM S [PARTITION BY k ROWS 3]) AS T [RANGE 3]",
}


@pytest.mark.parametrize("kind", PARTITIONED)
def test_the_last_rows_of_ever_new_keys_are_kept_only_where_that_is_allowed(kind: str) -> None:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", delay=0)})
    with pytest.raises(BindProblem, match=r"grows for ever: the last rows of every different .*ALLOW UNBOUNDED"):
        pool.register("q", PARTITIONED[kind])
    pool.register("q", f"{PARTITIONED[kind]} ALLOW UNBOUNDED")


@pytest.mark.parametrize("kind", PARTITIONED)
def test_bounded_data_have_as_many_keys_as_they_have(kind: str) -> None:
    assert pw.run(PARTITIONED[kind], {"S": next(batches(1)).slice(0, 5)}, time="t").num_rows
