"""Lines over series, and forecasts: engine and shards against the reference, whatever the levels are."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.aggregate import Items, LevelView, StateWords
from panewise.aggregate.series import SeriesForecast, SeriesLine, SeriesR2, SeriesSlope

from .strategies import BOUNDARIES
from .test_kernels import twins_in_use
from .test_positional import IN_DISORDER, IN_ORDER, SCHEMA, windows
from .test_shards import SPLITS, in_one_engine, sharded

pytestmark = pytest.mark.slow

CALLS = (
    "REGR_SLOPE(v, 'FILLED')",
    "REGR_SLOPE(x, 'SKIPPED', 2)",
    "REGR_INTERCEPT(v, 'FILLED', '3')",
    "REGR_INTERCEPT(x, 'SKIPPED')",
    "REGR_R2(v, 'FILLED', 2)",
    "REGR_R2(v, 'skipped')",
    "REGR_FORECAST(v, 4)",
    "REGR_FORECAST(x, 0)",
    "REGR_FORECAST(v, 2, 'FILLED', 2)",
    "REGR_FORECAST(x, 3, 'SKIPPED')",
    "REGR_SLOPE(v)",
    "COUNT(*)",
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    calls = ", ".join(draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=4, unique=True)))
    lead, tail = draw(st.sampled_from([("k, ", " GROUP BY k"), ("", "")]))
    return f"SELECT {lead}{calls} FROM S [{draw(windows())}]{tail}"


def alike(found: pa.Table, wanted: pa.Table) -> None:
    """Equal rows; a value of an instant is a rounded mean, so that lines may differ by its rounding."""
    assert found.schema == wanted.schema
    ours, theirs = (sorted((tuple(row.values()) for row in t.to_pylist()), key=_place) for t in (found, wanted))
    assert [_place(row) for row in ours] == [_place(row) for row in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert all(map(_close, one, other)), (one, other)


def _place(row: tuple[Any, ...]) -> str:
    return repr([v for v in row if not isinstance(v, float)])


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isfinite(one) and math.isfinite(other):
        return math.isclose(one, other, rel_tol=1e-13, abs_tol=1e-13)
    return repr(one) == repr(other)


@settings(max_examples=30)
@given(IN_ORDER, queries(), BOUNDARIES, st.lists(st.integers(0, 16), max_size=3))
def test_the_engine_says_what_the_reference_says(s: pa.Table, cql: str, boundary: str, cuts: list[int]) -> None:
    """However rows are cut into batches, and after a restart at every cut."""
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")}, boundary)
    pool.register("q", cql)
    engine, said, done = pw.Engine(pool), [], 0
    for cut in [*sorted(cuts), s.num_rows]:
        engine.feed("S", s.slice(done, max(cut - done, 0)))
        done = max(cut, done)
        said.append(engine.advance()["q"])
        engine = pw.Engine.restore(engine.snapshot())
    said.append(engine.finish()["q"])
    alike(pa.concat_tables(said), pw.reference.run(cql, {"S": s}, time="t", boundary=boundary))


@settings(max_examples=20)
@given(IN_DISORDER, queries(), BOUNDARIES, st.integers(0, 6))
def test_late_rows_count_as_the_reference_counts_them(s: pa.Table, cql: str, boundary: str, delay: int) -> None:
    stream = {"S": pw.Stream(s, time="t", delay=delay)}
    alike(pw.execute(cql, stream, boundary=boundary).table, pw.reference.run(cql, stream, boundary=boundary))


@settings(max_examples=12)
@given(IN_DISORDER, queries(), st.integers(0, 5), SPLITS, st.integers(1, 3), BOUNDARIES, st.booleans())
def test_shards_say_what_one_engine_says(
    s: pa.Table,
    cql: str,
    delay: int,
    splits: list[tuple[int, int]],
    shards: int,
    boundary: str,
    restarts: bool,
) -> None:
    wanted, _ = in_one_engine({"q": cql}, s, splits, delay, boundary)
    alike(sharded({"q": cql}, s, splits, shards, delay, boundary, restarts).results("q"), wanted["q"])


# ---- segments --------------------------------------------------------------------------------------------------------

GROUPS = 3
_ITEM = st.tuples(
    st.integers(0, GROUPS - 1),
    st.integers(-9, 30),
    st.one_of(st.integers(-5, 5).map(float), st.sampled_from([math.nan])),
)
LINES = st.builds(
    lambda kind, series, step: kind(pa.float64(), series=series, step=str(step)),
    st.sampled_from([SeriesSlope, SeriesR2, lambda *types, **given: SeriesForecast(*types, ahead="2", **given)]),
    st.sampled_from(["FILLED", "SKIPPED"]),
    st.integers(1, 4),
)


@dataclass(frozen=True)
class OneTier:
    """A tier with nothing but its total."""

    words: StateWords

    def total(self) -> StateWords:
        return self.words

    def panes(self) -> Any:
        raise AssertionError("no line over a series looks at panes")


@settings(max_examples=150)
@given(LINES, st.lists(_ITEM, max_size=14), st.lists(st.integers(-9, 30), max_size=4), st.booleans(), st.booleans())
def test_segments_that_follow_each_other_are_the_whole(
    line: SeriesLine, rows: list[tuple[int, int, float]], cuts: list[int], later: bool, twins: bool
) -> None:
    """Wherever they are cut, inside an instant too; also if parts of a pane are written, read and merged before."""
    columns, shift = line.state_arrays(), int(later)
    edges = [-100, *sorted(cuts), 100]
    view = LevelView(32, (200,), (1,), shift=shift)
    with twins_in_use("series") if twins else nullcontext():
        panes = []
        for low, high in pairwise(edges):
            mine = [row for row in rows if low < row[1] <= high]
            halves = [_pane_of(columns, mine[part::2]) for part in (0, 1)]
            panes.append(columns.combine(columns.read(columns.write(halves[1])), halves[0]))
        totals = columns.tier_totals(shift)
        segments = [totals.of_pane(pane) for pane in panes]
        for several in (segments, segments[::-1]):
            whole = reduce(totals.combine, several, totals.identity(GROUPS))
            found = columns.lower(columns.combine_tiers(view, [OneTier(whole)], GROUPS)).to_pylist()
            for group in range(GROUPS):
                items = sorted((time + shift, value) for number, time, value in rows if number == group)
                assert _close(found[group], line.meaning_in_view(items, view)), (group, found[group])


def _pane_of(columns: Any, rows: list[tuple[int, int, float]]) -> StateWords:
    slots, times = (np.array([row[part] for row in rows], np.int64) for part in (0, 1))
    found: StateWords = columns.gather(
        slots, Items((pa.array([row[2] for row in rows], pa.float64()),), times, times), GROUPS
    )
    return found
