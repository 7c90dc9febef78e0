"""A frame kind and a window clause that only this module knows: what a new one needs, and who misses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panewise as pw
from panewise import kernels
from panewise.aggregate import Int64Array
from panewise.core.errors import BindProblem, PlanProblem, SyntaxProblem
from panewise.core.scalar import Scalar
from panewise.core.time import Domain, Duration
from panewise.cql import bind_query, parse_query, render
from panewise.cql.clauses import READERS, ClauseBinder, WindowClause
from panewise.cql.clauses.frame_conditions import read_expression
from panewise.cql.clauses.frame_kinds import KIND_READERS, KindSyntax, bind_number
from panewise.cql.syntax import Expr
from panewise.cql.tokens import Cursor
from panewise.engine.frames.item_followers import FOLLOWERS, Follower, FrameItem, ItemRange, value_of
from panewise.engine.frames.kernel_runs import RUN_FINDERS, Registers, RowRuns, RunFinder, doubles_of
from panewise.engine.frames.stretch_finders import STRETCH_FINDERS
from panewise.frame.frame import Frame
from panewise.frame.kinds import FrameKind, plain_sql
from panewise.reference.items import GroupItem
from panewise.reference.stretches import STRETCHES, Stretch, maximal
from panewise.window import Sliding, Window
from tests.spark.shards import Shards

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
S = pa.table(
    [
        pa.array(range(12)),
        pa.array(["a", "b"] * 6),
        pa.array([2, 1, 4, 0, 3, 0, None, 7, 8, 2, 8, 4]),
    ],
    schema=SCHEMA,
)
QUERY = "SELECT k, SUM(v) AS s FROM S [FRAME EVEN v PARTITION BY k]"
#: Group, sum, start and end of each frame.
WANTED = [("a", 6, 0, 2), ("b", 0, 3, 5), ("a", 16, 8, 10), ("b", 6, 9, 11)]


@dataclass(frozen=True)
class EvenFrames(FrameKind):
    """Every value is even."""

    value: Scalar

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (self.value,)

    def text(self, domain: Domain) -> str:
        return f"EVEN {plain_sql(self.value)}"


@dataclass(frozen=True)
class SlowEvenFrames(EvenFrames):
    """The same frames, found item by item."""

    keeps_items = True


def even_stretches(frame: Frame, kind: EvenFrames, items: Sequence[GroupItem]) -> list[Stretch]:
    def holds(first: int, last: int) -> bool:
        values = [item.values[0] for item in items[first : last + 1]]
        return all(value is not None and value % 2 == 0 for value in values)

    return maximal(len(items), holds)


class EvenRunFinder(RunFinder[EvenFrames]):
    def find_runs(
        self, codes: Int64Array, times: Int64Array, values: Sequence[pa.ChunkedArray], at: Registers, free: int
    ) -> RowRuns:
        return RowRuns(*kernels.frame_flags(codes, np.mod(doubles_of(values[0]), 2) == 0, at["current"], free))


class EvenFollower(Follower):
    def __init__(self) -> None:
        super().__init__()
        self.start: int | None = None

    @property
    def oldest(self) -> int:
        return self.next if self.start is None else self.start

    def _follow(self, number: int, item: FrameItem) -> list[ItemRange]:
        value = value_of(item)
        if value is not None and value % 2 == 0:
            self.start = number if self.start is None else self.start
            return []
        return self._end(number - 1)

    def _end(self, last: int) -> list[ItemRange]:
        start, self.start = self.start, None
        return [] if start is None else [(start, last)]

    def finish(self) -> list[ItemRange]:
        return self._end(self.next - 1)


@pytest.fixture
def even() -> Iterator[None]:
    """EVEN and SLOWLY EVEN as kinds of frames, which the reference and the engine know."""

    @dataclass(frozen=True)
    class EvenSyntax(KindSyntax, words=("EVEN", "SLOWLY")):
        value: Expr
        slowly: bool

        @classmethod
        def read(cls, cursor: Cursor, opening: str) -> EvenSyntax:
            if opening == "SLOWLY":
                cursor.expect("EVEN")
            return cls(read_expression(cursor), opening == "SLOWLY")

        def bind(self, binder: ClauseBinder) -> EvenFrames:
            return (SlowEvenFrames if self.slowly else EvenFrames)(bind_number(binder, self.value))

        def text(self) -> str:
            return f"{'SLOWLY ' if self.slowly else ''}EVEN {self.value.sql}"

    STRETCHES.update(dict.fromkeys((EvenFrames, SlowEvenFrames), even_stretches))
    RUN_FINDERS[EvenFrames] = EvenRunFinder
    FOLLOWERS[SlowEvenFrames] = lambda frame, kind: EvenFollower()
    yield
    for table in (STRETCHES, RUN_FINDERS, FOLLOWERS):
        for kind in (EvenFrames, SlowEvenFrames):
            table.pop(kind, None)
    for opening in ("EVEN", "SLOWLY"):
        del KIND_READERS[opening]


def pool() -> pw.Pool:
    return pw.Pool({"S": pw.StreamSchema(SCHEMA, "t", 5)}, bounded=True)


def facts(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(
        (tuple(row[name] for name in ("k", "s", "w_start", "w_end")) for row in table.to_pylist()), key=lambda r: r[2]
    )


@pytest.mark.usefixtures("even")
@pytest.mark.parametrize("query", [QUERY, QUERY.replace("EVEN", "SLOWLY EVEN")])
def test_a_new_kind_works_everywhere(query: str) -> None:
    """Parser and printer, reference, engine with a restart, and shards."""
    assert parse_query(render(parse_query(query))) == parse_query(query)
    assert facts(pw.reference.run(query, {"S": S}, time="t")) == WANTED
    assert facts(pw.run(query, {"S": S}, time="t")) == WANTED
    shards = pool()
    shards.register("q", query)
    engine = pw.Engine(shards)
    engine.feed("S", S.slice(0, 5))
    said = [engine.advance(4)["q"]]
    engine = pw.Engine.restore(engine.snapshot())
    engine.feed("S", S.slice(5))
    assert facts(pa.concat_tables([*said, engine.finish()["q"]])) == WANTED
    spread = Shards(shards, 2, restarts=True)
    spread.batch(S=[S.slice(0, 3), S.slice(3, 4)])
    spread.batch(S=[S.slice(7)])
    spread.finish()
    assert facts(spread.results("q")) == WANTED


@pytest.mark.usefixtures("even")
def test_a_new_kind_is_explained() -> None:
    shards = pool()
    shards.register("q", QUERY)
    assert "EVEN S.v" in shards.explain()


@pytest.mark.usefixtures("even")
@pytest.mark.parametrize(
    ("query", "table", "kind", "reason"),
    [
        (QUERY, RUN_FINDERS, EvenFrames, "no kernel finds EvenFrames"),
        (
            QUERY.replace("EVEN", "SLOWLY EVEN"),
            FOLLOWERS,
            SlowEvenFrames,
            "no follower finds SlowEvenFrames item by item",
        ),
    ],
)
def test_a_kind_that_the_engine_does_not_know_is_refused(
    query: str, table: dict[type[FrameKind], Any], kind: type[FrameKind], reason: str
) -> None:
    """It is not found by the method of another kind; `pw.run` asks the reference."""
    del table[kind]
    with pytest.raises(BindProblem, match=f"the engine does not answer this query: {reason}"):
        pool().register("q", query)
    assert facts(pw.run(query, {"S": S}, time="t")) == WANTED


@pytest.mark.usefixtures("even")
def test_a_kind_that_the_reference_does_not_know_is_refused() -> None:
    del STRETCHES[EvenFrames]
    with pytest.raises(PlanProblem, match="the reference does not know EvenFrames"):
        pw.reference.run(QUERY, {"S": S}, time="t")


def test_a_kind_that_the_parser_does_not_know_is_refused() -> None:
    with pytest.raises(SyntaxProblem, match="expected a"):
        pw.reference.run(QUERY, {"S": S}, time="t")


def own_kinds(kind: type[FrameKind] = FrameKind) -> Iterator[type[FrameKind]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("panewise."):
            yield each
            yield from own_kinds(each)


@pytest.mark.parametrize("kind", list(own_kinds()))
def test_every_kind_has_a_meaning_and_somebody_who_finds_it(kind: type[FrameKind]) -> None:
    assert kind in STRETCHES
    assert kind in RUN_FINDERS or kind in STRETCH_FINDERS or kind in FOLLOWERS
    assert kind in STRETCH_FINDERS or not kind.dividing  # frames that divide a stream may overlap


@pytest.fixture
def lately() -> Iterator[None]:
    """A window clause LATELY: a sliding window of a duration that moves by its half."""

    @dataclass(frozen=True)
    class LatelyClause(WindowClause, words=("LATELY",)):
        size: Duration

        @classmethod
        def read(cls, cursor: Cursor, opening: str) -> LatelyClause:
            return cls(cursor.duration())

        def bind(self, binder: ClauseBinder) -> Window:
            size = binder.length("LATELY", self.size)
            return Sliding(size, size // 2)

        def text(self) -> str:
            return f"LATELY {self.size}"

    yield
    del READERS["LATELY"]


@pytest.mark.usefixtures("lately")
def test_a_new_window_clause_is_one_class() -> None:
    query = "SELECT SUM(v) AS s FROM S [LATELY 4]"
    assert parse_query(render(parse_query(query))) == parse_query(query)
    streams = {"S": pw.StreamSchema(SCHEMA, "t")}
    same = "SELECT SUM(v) AS s FROM S [RANGE 4 SLIDE 2]"
    assert bind_query(query, streams).windows == bind_query(same, streams).windows
    assert pw.run(query, {"S": S}, time="t").equals(pw.run(same, {"S": S}, time="t"))
    with pytest.raises(pw.PanewiseError, match=r"line 1, column 35, in LATELY: LATELY 0 is not positive"):
        pw.run("SELECT SUM(v) AS s FROM S [LATELY 0]", {"S": S}, time="t")


def test_a_clause_that_is_not_registered_is_refused() -> None:
    with pytest.raises(SyntaxProblem, match="expected a window, but found 'LATELY'"):
        parse_query("SELECT SUM(v) AS s FROM S [LATELY 4]")
