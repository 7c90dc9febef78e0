"""A window kind that the package does not know: its spec says all that the engine needs, or it is refused by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.algebra import Node, Query, Windowed
from panewise.core.errors import PanewiseError, WindowProblem
from panewise.core.time import Boundary, Domain, Ticks, ceil_to_grid, floor_to_grid, grid_between
from panewise.cql import bind_query
from panewise.cql.templates import TemplateBinder
from panewise.plan import plan_query
from panewise.window import (
    Contents,
    Edges,
    LogicalWindow,
    Pattern,
    Sliding,
    Window,
    WindowRetention,
)
from tests.laws.test_engine import same
from tests.spark.shards import Shards

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])


@dataclass(frozen=True)
class LastFullPeriod(LogicalWindow):
    """All items of the last period that has ended, reported at every multiple of a slide."""

    size: int
    slide: int

    retention = WindowRetention.LOOKS_BACK

    @property
    def pattern(self) -> Pattern:
        return Pattern.WEAK

    @property
    def periodic(self) -> bool:
        return True

    @property
    def grid(self) -> tuple[int, int]:
        return 0, self.slide

    @property
    def longest(self) -> int:
        return 2 * self.size

    @property
    def edges(self) -> tuple[Edges, ...]:
        return (Edges(0, self.size),)

    def _period_ends(self, instants: Ticks) -> Ticks:
        return floor_to_grid(floor_to_grid(instants, 0, self.slide), 0, self.size)

    def scope(self, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        high = self._period_ends(instants) - boundary.shift
        return high - self.size + 1, high

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        ends = ceil_to_grid(contents.times + boundary.shift, 0, self.size)
        return grid_between(ends, ends + self.size - 1, 0, self.slide)

    def next_instants(self, instants: Ticks) -> Ticks:
        return instants + self.slide

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        ends = self._period_ends(instants)
        return ends - self.size, ends

    def lifetimes(self, times: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        ends = ceil_to_grid(times + boundary.shift, 0, self.size)
        return ceil_to_grid(ends, 0, self.slide), ceil_to_grid(ends + self.size, 0, self.slide)

    def text(self, domain: Domain) -> str:
        return f"LAST FULL {self.size} SLIDE {self.slide}"


@dataclass(frozen=True)
class WithHole(Window):
    """Two sliding windows, one behind the other, as one: its scope is not one stretch of time."""

    near: Sliding
    far: Sliding

    retention = WindowRetention.REFERENCE_ONLY

    @property
    def pattern(self) -> Pattern:
        return Pattern.WEAK

    @property
    def periodic(self) -> bool:
        return True

    @property
    def grid(self) -> tuple[int, int] | None:
        return self.near.grid

    @property
    def logical(self) -> bool:
        return True

    def members(self, contents: Contents, at: int, boundary: Boundary) -> Ticks:
        return np.concatenate([window.members(contents, at, boundary) for window in (self.far, self.near)])

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        return np.union1d(self.near.instants(contents, boundary), self.far.instants(contents, boundary))

    def next_instants(self, instants: Ticks) -> Ticks:
        return self.near.next_instants(instants)

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        return self.far.spans(instants)[0], self.near.spans(instants)[1]

    def text(self, domain: Domain) -> str:
        return f"{self.near.text(domain)} AND {self.far.text(domain)}"


HOLED = WithHole(Sliding(2, slide=2), Sliding(2, slide=2, lag=4))


def with_window(node: Node, window: Window) -> Node:
    """The same tree over another window."""
    if isinstance(node, Windowed):
        return replace(node, window=window)
    return node.with_children(*(with_window(child, window) for child in node.children))


def read(text: str, window: Window) -> Query:
    """The query of a text, over a new kind instead of its windows."""
    query = bind_query(text, {"S": pw.StreamSchema(SCHEMA, "t")})
    return replace(query, root=with_window(query.root, window))


GROUPED = "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM S [RANGE 9 SLIDE 9] GROUP BY k"
TEXTS = [
    GROUPED,
    GROUPED.replace("SELECT", "SELECT ISTREAM"),
    GROUPED.replace("SELECT", "SELECT DSTREAM"),
    f"{GROUPED} LATE REVISE 3",
    "SELECT MAX(v) AS m, MEDIAN(v) AS d FROM S [RANGE 9 SLIDE 9]",
    "SELECT DISTINCT k FROM S [RANGE 9 SLIDE 9]",
    "SELECT k, v FROM S [RANGE 9 SLIDE 9] WHERE v > 0",
    "SELECT A.v, B.v AS w FROM S [RANGE 9 SLIDE 9] AS A, S [RANGE 9 SLIDE 9] AS B WHERE A.k = B.k",
]
Row = tuple[int, str, int]
ROWS = st.lists(st.tuples(st.integers(-20, 40), st.sampled_from("ab"), st.integers(-3, 3)), max_size=12)
PERIODS = st.builds(LastFullPeriod, st.integers(1, 7), st.integers(1, 7))
BOUNDARIES = st.sampled_from(["(]", "[)"])


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip("tkv", row, strict=True)) for row in rows], SCHEMA)


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=25)
@given(rows=ROWS, window=PERIODS, delay=st.integers(0, 9), boundary=BOUNDARIES)
def test_the_engine_answers_as_the_reference_does(
    text: str, rows: list[Row], window: Window, delay: int, boundary: str
) -> None:
    items, query = table(rows), read(text, window)
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", delay)}, boundary)
    pool.register("q", query)
    engine = pw.Engine(pool)
    found = []
    for start in range(0, items.num_rows, 3):
        engine.feed("S", items.slice(start, 3))
        found.append(engine.advance()["q"])
    found.append(engine.finish()["q"])
    same(pa.concat_tables(found), pw.reference.run(query, {"S": pw.Stream(items, "t", delay)}, boundary=boundary))


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=10)
@given(rows=ROWS, window=PERIODS, boundary=BOUNDARIES)
def test_shards_answer_as_the_reference_does(text: str, rows: list[Row], window: LastFullPeriod, boundary: str) -> None:
    # Rows of one batch are in no order that tasks agree on; in the order of time none is late.
    items = table(sorted(rows))
    with patch.object(TemplateBinder, "query", lambda binder, text: read(text, window)):
        pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 0)}, boundary)
        pool.register("q", text)
        shards = Shards(pool, 2, restarts=True)
        for start in range(0, items.num_rows, 4):
            shards.batch(S=[items.slice(start, 4)])
        shards.finish()
    same(shards.results("q"), pw.reference.run(read(text, window), {"S": pw.Stream(items, "t", 0)}, boundary=boundary))


def test_empty_windows_of_a_kind_that_looks_back_are_left_to_the_reference() -> None:
    query = read("SELECT COUNT(*) AS n FROM S [RANGE 9 SLIDE 9] EMIT EMPTY", LastFullPeriod(1, 1))
    assert "EMIT EMPTY needs" in str(plan_query(query))
    found = pw.run(query, {"S": table([(0, "a", 0), (2, "a", 0)])}, time="t").to_pylist()
    assert [row["n"] for row in found] == [1, 0, 1]


def test_panes_that_no_instant_needs_are_dropped() -> None:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")})
    pool.register("q", read(GROUPED, LastFullPeriod(5, 5)))
    engine = pw.Engine(pool)
    sizes = []
    for time in range(0, 1000, 5):
        engine.feed("S", table([(time, "a", 1)]))
        engine.advance()
        sizes.append(engine.nbytes)
    assert max(sizes[20:]) == max(sizes[100:])


@pytest.mark.parametrize("text", [GROUPED, "SELECT k, v FROM S [RANGE 9 SLIDE 9] WHERE v > 0"])
def test_a_kind_for_the_reference_only_is_refused_by_name_and_answered_by_it(text: str) -> None:
    query = read(text, HOLED)
    assert "WithHole" in str(plan_query(query))
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")})
    with pytest.raises(PanewiseError, match="WithHole"):
        pool.register("q", query)
    items = {"S": table([(1, "a", 1), (2, "a", 2), (5, "a", 4), (6, "b", 8)])}
    same(pw.run(query, items, time="t"), pw.reference.run(query, items, time="t"))


def test_a_window_with_a_hole_has_the_items_of_both_sides() -> None:
    items = {"S": table([(1, "a", 1), (3, "a", 2), (5, "a", 4)])}
    found = pw.run(read(GROUPED, HOLED), items, time="t").to_pylist()
    assert [(row["w_end"], row["s"]) for row in found] == [(2, 1), (4, 2), (6, 5), (8, 2), (10, 4)]


@pytest.mark.parametrize("missing", ["retention", "lifetimes"])
def test_a_kind_that_does_not_answer_cannot_be_made(missing: str) -> None:
    silent = type("Silent", (LastFullPeriod,), {missing: getattr(LogicalWindow, missing)})
    with pytest.raises(TypeError, match=missing):
        silent(5, 5)


class FalselySliding(LastFullPeriod):
    retention = WindowRetention.SLIDES


class NeverStartsAgain(LastFullPeriod):
    retention = WindowRetention.ACCUMULATES


@pytest.mark.parametrize("kind", [FalselySliding, NeverStartsAgain])
def test_a_kind_that_answers_what_it_is_not_is_refused_by_name(kind: type[LastFullPeriod]) -> None:
    query = read(GROUPED, kind(5, 5))
    with pytest.raises(WindowProblem, match=kind.__name__):
        pw.run(query, {"S": table([(1, "a", 1), (30, "a", 1)])}, time="t")
