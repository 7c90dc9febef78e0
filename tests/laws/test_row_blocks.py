"""Counted windows with a SLIDE: rows come in blocks, each with its last row, at every level and in every partition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise import kernels
from panewise.core.errors import BindProblem
from panewise.kernels.ranges import OPEN
from tests.laws.strategies import BOUNDARIES, KINDS, Aggregated, aggregated, odd_tables
from tests.laws.test_engine import CUTS, DISORDER, played, same, split
from tests.laws.test_kernels import twins_in_use
from tests.meaning.examples import late, rows
from tests.spark.shards import Shards

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])


def row_table(times: list[int], keys: str = "") -> pa.Table:
    """Rows numbered by `v`, from 1 on."""
    columns = [times, list(keys or "a" * len(times)), range(1, len(times) + 1)]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


# ---- by example ------------------------------------------------------------------------------------------------------


def test_blocks_are_disjoint_where_the_slide_is_the_count() -> None:
    s = {"S": row_table([1, 1, 1, 2, 3, 3, 3, 5])}
    assert rows("SELECT MIN(v) AS a, MAX(v) AS z FROM S [ROWS 2 SLIDE 2]", s, "a", "z", "w_end") == [
        (1, 2, 1),
        (3, 4, 2),
        (5, 6, 3),
        (7, 8, 5),
    ]


def test_several_blocks_at_one_time_are_one_instant() -> None:
    """Rows 1 to 5 come at 1, in two blocks of two; the fifth waits for the sixth."""
    s = {"S": row_table([1, 1, 1, 1, 1, 4])}
    query = "SELECT MIN(v) AS a, MAX(v) AS z FROM S [ROWS 3 SLIDE 2]"
    assert rows(query, s, "a", "z", "w_end") == [(2, 4, 1), (4, 6, 4)]


def test_a_slide_longer_than_the_count_leaves_rows_out() -> None:
    s = {"S": row_table([1, 2, 3, 4, 5, 6])}
    assert rows("SELECT v FROM S [ROWS 1 SLIDE 3]", s, "v", "w_end") == [(3, 3), (6, 6)]


def test_the_lag_is_counted_from_the_last_block() -> None:
    s = {"S": row_table([1, 2, 3, 4, 5])}
    assert rows("SELECT v FROM S [ROWS 1 SLIDE 2 LAG 2]", s, "v", "w_end") == [(2, 4)]


def test_a_slide_of_one_reports_whole_results() -> None:
    s = {"S": row_table([1, 2, 3])}
    assert rows("SELECT v FROM S [ROWS 2 SLIDE 1]", s, "v", "w_end") == [(1, 1), (1, 2), (2, 2), (2, 3), (3, 3)]


@pytest.mark.filterwarnings("ignore::panewise.PanewiseWarning")
def test_a_late_row_completes_a_block() -> None:
    """The row of 2 comes after that of 6, as the fourth, and is the second by its time."""
    s = {"S": late(0, t=[1, 5, 6, 2, 7], v=[1, 2, 3, 4, 5])}
    assert rows("SELECT v FROM S [ROWS 3 SLIDE 2]", s, "v", "w_end") == [(1, 5), (2, 5), (4, 6), (2, 6), (3, 6)]


def test_joins_see_what_the_last_block_left() -> None:
    """At 4 and at 6 the window over rows is that of 3: the third row waits for the fourth, which comes at 7."""
    streams = {"S": row_table([1, 3, 5, 7]), "T": row_table([4, 6])}
    query = "SELECT S.v, T.v AS w FROM S [ROWS 1 SLIDE 2], T [RANGE 2 SLIDE 2] WHERE S.k = T.k"
    assert rows(query, streams, "v", "w", "w_end") == [(2, 1, 4), (2, 2, 6), (4, 2, 7)]


def test_one_family_holds_the_rows_of_all_counted_windows() -> None:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 0)})
    for name, window in (("plain", "ROWS 4"), ("blocks", "ROWS 4 SLIDE 3"), ("levels", "ROWS 4, 2 SLIDES 3, 1")):
        pool.register(name, f"SELECT ISTREAM k, SUM(v) AS s FROM S [{window}] GROUP BY k")
    assert len({window.family for window in pool.windows()}) == 1


def test_what_has_no_meaning_is_refused() -> None:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 0)})
    pool.register("q", "SELECT SUM(v) AS s FROM S [ROWS 4 SLIDE 2]")
    engine = pw.Engine(pool)
    engine.feed("S", row_table([1, 2, 3]))
    with pytest.raises(BindProblem, match="has instants of its own"):
        engine.lookup("q", at=2)


def test_counted_windows_beside_continuous_ones_are_not_spread_over_shards() -> None:
    """They share a family; its rows were spread by the keys of groups if the continuous one came first."""
    s = row_table(list(range(40)), "abcdefgh" * 5)
    queries = {
        w: f"SELECT DSTREAM k, SUM(v) AS s FROM S [{w}] GROUP BY k" for w in ("RANGE 5", "ROWS 6", "ROWS 6 SLIDE 4")
    }
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 0)})
    for name, query in queries.items():
        pool.register(name, query)
    found = Shards(pool, 3)
    for start in range(0, 40, 10):
        found.batch(S=[s.slice(start, 10)])
    found.finish()
    for name, query in queries.items():
        same(found.results(name), pw.reference.run(query, {"S": s}, time="t"))


# ---- by law ----------------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=9), max_size=3),
    st.integers(2, 4),
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.booleans(),
)
def test_when_blocks_come(visible: list[list[int]], size: int, before: list[int], twins: bool) -> None:
    edges, every = np.cumsum([0, *map(len, visible)]), np.array([at for some in visible for at in some], np.int64)
    with twins_in_use(*["range"] * twins):
        found = kernels.range_blocks(edges, every, size, np.array(before[: len(visible)], np.int64))
    wanted = []
    for some, gone in zip(visible, before, strict=False):
        coming = [-1] * gone + sorted(some)
        lasts = [coming[n + size - 1] if n + size <= len(coming) else OPEN for n in range(0, len(coming), size)]
        places = sorted(range(len(some)), key=lambda place: some[place])
        numbers = {place: number for number, place in enumerate(places, start=gone)}
        wanted += [lasts[numbers[place] // size] for place in range(len(some))]
    assert found.tolist() == wanted


@pytest.mark.slow
@settings(max_examples=150)
@given(odd_tables(16, DISORDER), aggregated(("blocks",)), st.integers(0, 5), CUTS, BOUNDARIES, st.booleans())
def test_batches_late_rows_and_restarts(
    s: pa.Table, query: Aggregated, delay: int, cuts: list[tuple[int, bool]], boundary: str, restarts: bool
) -> None:
    """Rows that wait for others survive a restart, and so do the numbers of rows that are gone."""
    wanted = pw.reference.run(query.cql, {"S": pw.Stream(s, "t", delay)}, boundary=boundary)
    pool = pw.Pool({"S": pw.StreamSchema(s.schema, "t", delay)}, boundary)
    pool.register("q", f"{query.cql} ALLOW UNBOUNDED")
    engine, said = pw.Engine(pool), []
    for event in split(s, cuts):
        if isinstance(event, pa.Table):
            engine.feed("S", event)
        said.append(engine.advance()["q"])
        if restarts:
            engine = pw.Engine.restore(engine.snapshot())
    said.append(engine.finish()["q"])
    same(pa.concat_tables(said), wanted)


@pytest.mark.slow
@settings(max_examples=80)
@given(
    odd_tables(16, DISORDER),
    aggregated(("blocks",)),
    st.lists(st.one_of(KINDS["blocks"], KINDS["rows"], KINDS["continuous"]), min_size=1, max_size=3),
    st.integers(0, 5),
    CUTS,
)
def test_together_as_alone(
    s: pa.Table, query: Aggregated, windows: list[str], delay: int, cuts: list[tuple[int, bool]]
) -> None:
    """Windows that share rows drop them only when none needs them any more, also for its numbers."""
    texts = {f"q{n}": Aggregated(w, query.calls, query.keys).cql for n, w in enumerate([query.window, *windows])}
    found, _ = played(texts, split(s, cuts), s.schema, delay)
    for name, text in texts.items():
        same(found[name], pw.reference.run(text, {"S": pw.Stream(s, "t", delay)}))


@settings(max_examples=60)
@given(
    odd_tables(14), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.sampled_from(["", "PARTITION BY k "])
)
def test_levels_are_their_windows(s: pa.Table, count: int, more: int, slide: int, by: str) -> None:
    query = "SELECT k, COUNT(*) AS n, SUM(v) AS v FROM S [{}] GROUP BY k"
    both = f"{by}ROWS {count + more}, {count} SLIDES {2 * slide}, {slide}"
    found = pw.run(query.format(both), {"S": s}, time="t")
    for level, single in enumerate((f"ROWS {count} SLIDE {slide}", f"ROWS {count + more} SLIDE {2 * slide}")):
        alone = pw.run(query.format(by + single), {"S": s}, time="t")
        mine = found.filter(pa.compute.equal(found["w_level"], level)).drop_columns(["w_level"])
        same(mine, alone)
