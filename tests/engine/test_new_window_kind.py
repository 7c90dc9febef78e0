"""A kind of window that the package has never seen is answered right: its spec says all that the engine needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.algebra import Node, Query, Windowed
from panewise.algebra.host import default_host
from panewise.core.time import Boundary, Domain, Ticks, ceil_to_grid, floor_to_grid
from panewise.window.base import Contents, LogicalWindow, Pattern
from tests.laws.test_engine import same

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])


@dataclass(frozen=True)
class PeriodBefore(LogicalWindow):
    """All items of the period before the one that has just ended, at the end of each period."""

    size: int

    @property
    def pattern(self) -> Pattern:
        return Pattern.WEAK

    @property
    def periodic(self) -> bool:
        return True

    @property
    def grid(self) -> tuple[int, int]:
        return 0, self.size

    def scope(self, instants: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        high = floor_to_grid(instants, 0, self.size) - self.size - boundary.shift
        return high - self.size + 1, high

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        return np.unique(ceil_to_grid(contents.times + boundary.shift, 0, self.size)) + self.size

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        ends = floor_to_grid(instants, 0, self.size) - self.size
        return ends - self.size, ends

    def next_instants(self, instants: Ticks) -> Ticks:
        return instants + self.size

    def lifetimes(self, times: Ticks, boundary: Boundary) -> tuple[Ticks, Ticks]:
        first = ceil_to_grid(times + boundary.shift, 0, self.size) + self.size
        return first, first + self.size

    @property
    def max_lifetime(self) -> int:
        return 3 * self.size

    def text(self, domain: Domain) -> str:
        return f"PERIOD BEFORE {self.size}"


def with_window(node: Node, window: LogicalWindow) -> Node:
    if isinstance(node, Windowed):
        return replace(node, window=window)
    return node.with_children(*(with_window(child, window) for child in node.children))


def asked(text: str, size: int) -> Query:
    """A query over the new kind instead of the window that stands in its text."""
    query = default_host().read(text, {"S": pw.StreamSchema(SCHEMA, "t")})
    return replace(query, root=with_window(query.root, PeriodBefore(size)))


TEXTS = [
    "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM S [RANGE 9 SLIDE 9] GROUP BY k",
    "SELECT MAX(v) AS m, MEDIAN(v) AS d FROM S [RANGE 9 SLIDE 9]",
    "SELECT DISTINCT k FROM S [RANGE 9 SLIDE 9]",
    "SELECT k, v FROM S [RANGE 9 SLIDE 9] WHERE v > 0",
]
ROWS = st.lists(st.tuples(st.integers(-20, 40), st.sampled_from("ab"), st.integers(-3, 3)), max_size=12)


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=40)
@given(rows=ROWS, size=st.integers(1, 7), delay=st.integers(0, 9), boundary=st.sampled_from(["(]", "[)"]))
def test_the_engine_answers_it_as_the_reference_does(
    text: str, rows: list[tuple[int, str, int]], size: int, delay: int, boundary: str
) -> None:
    items = pa.Table.from_pylist([dict(zip("tkv", row, strict=True)) for row in rows], SCHEMA)
    query = asked(text, size)
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", delay)}, boundary)
    pool.register("q", query)
    engine = pw.Engine(pool)
    found = []
    for start in range(0, items.num_rows, 3):
        engine.feed("S", items.slice(start, 3))
        found.append(engine.advance()["q"])
    found.append(engine.finish()["q"])
    same(pa.concat_tables(found), pw.reference.run(query, {"S": pw.Stream(items, "t", delay)}, boundary=boundary))
