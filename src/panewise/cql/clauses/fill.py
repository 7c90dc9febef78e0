"""FILL WITH a stream: which of its rows belong to a frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from panewise.algebra import Filled, Framed, Group, Node, Select, Source
from panewise.algebra.tree import inputs_of
from panewise.core.errors import BindProblem, Place, did_you_mean
from panewise.core.schema import StreamSchema
from panewise.core.time import Domain, Duration
from panewise.cql.clauses.base import errors_at
from panewise.cql.dialect import name_text
from panewise.cql.scope import Scope, alias_name, conjuncts, find_ignoring_case, join_key, source_node
from panewise.cql.syntax import Expr
from panewise.cql.tokens import Cursor, word

_ENDS = ("FROM", "TO", "OFFSET")


@dataclass(frozen=True)
class FillClause:
    """FILL WITH a stream: `on` compares it with the group of a frame, `lower`, `upper` and `offset` shift its rows."""

    source: str
    alias: str | None = None
    on: Expr | None = None
    lower: Duration | None = None
    upper: Duration | None = None
    offset: Duration | None = None
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def read(cls, cursor: Cursor, place: Place) -> FillClause:
        """The clause after FILL WITH, which is at a place."""
        source = cursor.name("the name of a stream")
        alias = cursor.name("an alias") if cursor.take("AS") else None
        on = _read_condition(cursor) if cursor.take("ON") else None
        lower = _read_shift(cursor, "START") if cursor.take("FROM") else None
        upper = _read_shift(cursor, "END") if cursor.take("TO") else None
        offset = cursor.duration() if cursor.take("OFFSET") else None
        cursor.expect_end(
            "write FILL WITH stream AS alias ON condition FROM START - duration TO END + duration OFFSET duration"
        )
        return cls(source, alias, on, lower, upper, offset, place, cursor.places)

    def text(self) -> str:
        """The text of the clause; reading it gives the same clause again."""
        text = f"FILL WITH {name_text(self.source)}" + (f" AS {name_text(self.alias)}" if self.alias else "")
        text += f" ON {self.on.sql}" if self.on else ""
        text += f" FROM START {_shift_text(self.lower)}" if self.lower else ""
        text += f" TO END {_shift_text(self.upper)}" if self.upper else ""
        return text + (f" OFFSET {self.offset}" if self.offset else "")

    def bind(self, node: Node, streams: Mapping[str, StreamSchema]) -> Filled:
        """Frames that are filled from a declared stream."""
        if not isinstance(node, Framed | Filled):
            raise BindProblem("only frames can be filled", fix="write FILL after [FRAME ...]", place=self.place)
        framed = node if isinstance(node, Framed) else node.framed_node
        stream = find_ignoring_case(streams, self.source)
        if stream is None:
            fix = did_you_mean(self.source, streams)
            raise BindProblem(f"there is no stream {self.source!r}", fix=fix, place=self.place)
        alias = alias_name(self.alias or self.source)
        if any(c.name.startswith(f"{alias}.") for c in (*framed.columns, *node.columns)):
            raise BindProblem(f"{alias!r} is twice in FROM", fix="give one an alias", place=self.place)
        rows = source_node(*stream, alias)
        scope = Scope([*framed.columns, *rows.columns])
        pairs = tuple(_filling_pair(part, scope, framed, rows) for part in conjuncts(self.on))
        shifts = (self._shift(duration, stream[1].domain) for duration in (self.lower, self.upper, self.offset))
        return Filled(node, rows, pairs, *shifts)

    def _shift(self, duration: Duration | None, domain: Domain) -> int:
        with errors_at(self.places.get(str(duration), self.place)):
            return 0 if duration is None else duration.ticks(domain)


def _read_condition(cursor: Cursor) -> Expr:
    start = cursor.offset
    while cursor.token is not None and word(cursor.token) not in _ENDS:
        cursor.at += 1
    node = cursor.source.parse(start, cursor.offset, [], "ON")
    return cursor.source.expr(node, "ON", start)


def _read_shift(cursor: Cursor, edge: str) -> Duration | None:
    """How far outside the edges of the frame rows still belong to it."""
    cursor.expect(edge)
    if cursor.peek("-"):
        return cursor.duration()
    return cursor.duration() if cursor.take("+") else None


def _shift_text(shift: Duration) -> str:
    return str(shift) if str(shift).startswith("-") else f"+ {shift}"


def _filling_pair(part: Expr, scope: Scope, framed: Framed, rows: Source) -> tuple[str, str]:
    """A column of the frame's group, and the column of the filling rows that must be equal to it."""
    groups = {c.name for c in framed.columns if c.name in framed.frame.partition_by}
    pair = join_key(part, scope, groups, {c.name for c in rows.columns})
    if pair is None:
        raise BindProblem(
            f"FILL ON {part.sql} compares no column of PARTITION BY with one of the same type of {rows.alias!r}",
            fix="compare these, and put the rest into WHERE",
            place=part.place,
        )
    return pair


def refuse_mixed_fillings(source: Filled, node: Node, place: Place | None) -> None:
    """Refuse to mix rows of several fillings: each condition and each aggregate uses one filling only."""
    if len(source.fillings) == 1:
        return
    group = next((each for each in node.walk() if isinstance(each, Group)), None)
    if group is None:
        fix = "aggregate them, or ask for each alone"
        raise BindProblem("rows of several fillings cannot be listed together", fix=fix, place=place)
    if len(group.keys) > len(source.groups):
        raise BindProblem("several fillings have no groups in common", fix="leave GROUP BY out", place=place)
    if any(isinstance(each, Select) and len(source.fillings_of(each.predicate.inputs)) > 1 for each in group.walk()):
        raise BindProblem("a condition is about two fillings", fix="write one for each", place=place)
    if any(len(source.fillings_of(inputs_of(group, call))) != 1 for call in group.calls):
        fix = "name a column of it, such as COUNT(alias.column)"
        raise BindProblem("an aggregate must be about one of several fillings", fix=fix, place=place)
