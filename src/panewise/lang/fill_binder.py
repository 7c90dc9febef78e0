"""From FILL WITH to frames that are filled from a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from panewise.algebra import Filled, Framed, Node, Source
from panewise.errors import BindProblem, PanewiseError, did_you_mean
from panewise.lang.matching import conjuncts, join_key, lookup, source_node
from panewise.lang.scope import Describe, Scope, alias_name
from panewise.lang.syntax import Expr, FillSyntax
from panewise.schema import StreamSchema
from panewise.time import Domain, Duration


@dataclass(frozen=True)
class FillBinder:
    """Binds what fills frames against declared streams."""

    streams: Mapping[str, StreamSchema]
    describe: Describe

    def bind(self, node: Node, fill: FillSyntax) -> Filled:
        if not isinstance(node, Framed):
            raise BindProblem("only frames can be filled", fix="write FILL after [FRAME ...]", place=fill.place)
        stream = lookup(self.streams, fill.source)
        if stream is None:
            fix = did_you_mean(fill.source, self.streams)
            raise BindProblem(f"there is no stream {fill.source!r}", fix=fix, place=fill.place)
        alias = alias_name(fill.alias or fill.source)
        if any(c.name.startswith(f"{alias}.") for c in node.columns):
            raise BindProblem(f"{alias!r} stands twice in FROM", fix="give one an alias", place=fill.place)
        domain = stream[1].domain
        rows = source_node(*stream, alias)
        pairs = tuple(self._filling_pair(part, node, rows) for part in conjuncts(fill.on))
        shifts = (self._shift(duration, domain, fill) for duration in (fill.lower, fill.upper, fill.offset))
        return Filled(node, rows, pairs, *shifts)

    def _filling_pair(self, part: Expr, framed: Framed, rows: Source) -> tuple[str, str]:
        """A column of the frame's group, and the one of the rows that must agree with it."""
        groups = [c for c in framed.columns if c.name in framed.frame.partition_by]
        scope = Scope(self.describe, [*framed.columns, *rows.columns])
        pair = join_key(part, scope, {c.name for c in groups}, {c.name for c in rows.columns})
        if pair is None:
            raise BindProblem(
                f"FILL ON {part.sql} compares no column of PARTITION BY with one of the same type of {rows.alias!r}",
                fix="compare these, and put the rest into WHERE",
                place=part.place,
            )
        return pair

    def _shift(self, duration: Duration | None, domain: Domain, fill: FillSyntax) -> int:
        try:
            return 0 if duration is None else duration.ticks(domain)
        except PanewiseError as problem:
            raise problem.at(fill.places.get(str(duration), fill.place)) from None
