"""From FILL WITH to frames that are filled from a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from panewise.algebra import Filled, Framed, Group, Node, Select, Source
from panewise.algebra.tree import inputs_of
from panewise.core.errors import BindProblem, PanewiseError, Place, did_you_mean
from panewise.core.schema import StreamSchema
from panewise.core.time import Domain, Duration
from panewise.cql.matching import conjuncts, find_ignoring_case, join_key, source_node
from panewise.cql.scope import Scope, alias_name
from panewise.cql.syntax import Expr, FillSyntax


@dataclass(frozen=True)
class FillBinder:
    """Binds FILL WITH clauses against declared streams."""

    streams: Mapping[str, StreamSchema]

    def bind(self, node: Node, fill: FillSyntax) -> Filled:
        if not isinstance(node, Framed | Filled):
            raise BindProblem("only frames can be filled", fix="write FILL after [FRAME ...]", place=fill.place)
        framed = node if isinstance(node, Framed) else node.framed_node
        stream = find_ignoring_case(self.streams, fill.source)
        if stream is None:
            fix = did_you_mean(fill.source, self.streams)
            raise BindProblem(f"there is no stream {fill.source!r}", fix=fix, place=fill.place)
        alias = alias_name(fill.alias or fill.source)
        if any(c.name.startswith(f"{alias}.") for c in (*framed.columns, *node.columns)):
            raise BindProblem(f"{alias!r} stands twice in FROM", fix="give one an alias", place=fill.place)
        domain = stream[1].domain
        rows = source_node(*stream, alias)
        pairs = tuple(self._filling_pair(part, framed, rows) for part in conjuncts(fill.on))
        shifts = (self._shift(duration, domain, fill) for duration in (fill.lower, fill.upper, fill.offset))
        return Filled(node, rows, pairs, *shifts)

    def _filling_pair(self, part: Expr, framed: Framed, rows: Source) -> tuple[str, str]:
        """A column of the frame's group, and the column of the filling rows that must be equal to it."""
        groups = [c for c in framed.columns if c.name in framed.frame.partition_by]
        scope = Scope([*framed.columns, *rows.columns])
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
