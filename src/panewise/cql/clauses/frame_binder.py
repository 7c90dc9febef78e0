"""From a frame clause to a frame spec, in the time domain of its stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from panewise.aggregate import Aggregate, CountAll
from panewise.core.errors import BindProblem, PanewiseError, Place, WindowProblem
from panewise.core.scalar import Scalar
from panewise.core.schema import is_number, type_name
from panewise.core.time import Domain, Duration
from panewise.cql.clauses.frame_syntax import (
    BetweenSyntax,
    BoundarySyntax,
    CustomSyntax,
    DeltaSyntax,
    DensitySyntax,
    FrameClause,
    LengthSyntax,
    ReachSyntax,
    TrendSyntax,
    WhileSyntax,
)
from panewise.cql.dialect import canonical
from panewise.cql.group_by import GroupByBinder, aggregate_calls
from panewise.cql.scope import Scope
from panewise.cql.syntax import Expr, place_of
from panewise.frame.frame import (
    BetweenFrames,
    BoundaryFrames,
    CustomFrames,
    DeltaFrames,
    DensityFrames,
    Direction,
    Duplicates,
    Frame,
    FrameKind,
    FrameLength,
    Missing,
    ReachFrames,
    Saturation,
    Schedule,
    Scheme,
    Span,
    StartPolicy,
    TrendFrames,
    WhileFrames,
)
from panewise.frame.functions import framing_function

_OPERATORS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}


@dataclass(frozen=True)
class FrameBinder:
    """Binds the frames of one stream, whose columns are in scope."""

    scope: Scope
    domain: Domain

    def bind(self, clause: FrameClause) -> Frame:
        try:
            return self._frame(clause)
        except PanewiseError as problem:
            raise problem.at(self._contradiction_place(clause) or clause.place) from None

    def _contradiction_place(self, clause: FrameClause) -> Place | None:
        """The place of the last condition without which the others do not contradict each other; otherwise that of the
        kind."""
        said = [key.removeprefix("#") for key in clause.places if key.startswith("#")]
        for name in reversed(said):
            without: dict[str, Any] = {name: None}
            try:
                if name not in ("kind", "partition_by"):
                    self._frame(replace(clause, **without))
                    return clause.places[f"#{name}"]
            except PanewiseError:
                continue
        return clause.places.get("#kind")

    def _frame(self, clause: FrameClause) -> Frame:
        every = self._ticks("EVERY", clause.every, clause)
        return Frame(
            self._kind(clause),
            tuple(dict.fromkeys(self.scope.find(n, None, clause.places.get(n)).name for n in clause.partition_by)),
            self._predicate(clause.some, "WITH SOME") if clause.some else None,
            self._length("AT LEAST", clause.least, clause),
            self._length("AT MOST", clause.most, clause),
            Span(clause.span) if clause.span else None,
            Scheme(clause.scheme) if clause.scheme else None,
            Saturation(clause.choice) if clause.choice else None,
            self._ticks("ADJACENT", clause.overlap, clause) or 0,
            clause.extent == "LIBERAL",
            clause.reading == "INTERVALS",
            Schedule(every, Missing(clause.missing or "FAILS")) if every is not None else None,
            Duplicates(clause.duplicates or ("ERROR" if clause.every else "KEEP")),
            self._length("FRAGMENTS EVERY", clause.fragments, clause),
        )

    def _kind(self, clause: FrameClause) -> FrameKind:
        match clause.kind:
            case WhileSyntax(condition):
                return WhileFrames(self._predicate(condition, "WHILE"))
            case BoundarySyntax(value, step, marks):
                return BoundaryFrames(
                    self._number(value), None if step is None else float(step), tuple(map(float, marks))
                )
            case DeltaSyntax(comparison):
                value, operator, limit = self._comparison(comparison, "DELTA")
                self._require_growth(operator, comparison, "DELTA")
                return DeltaFrames(self._number(value), limit, operator == ">=")
            case ReachSyntax(comparison):
                value, operator, limit = self._comparison(comparison, "FRAME")
                return self._reach(value, operator, limit)
            case TrendSyntax(direction, value, tolerance):
                if tolerance is not None and direction != "FLAT":
                    raise BindProblem("WITHIN says how flat FLAT is", fix="leave it out", place=value.place)
                return TrendFrames(self._number(value), Direction(direction), float(tolerance or 0))
            case DensitySyntax(count, per, chance, expected):
                ticks = self._ticks("PER", per, clause) or 0
                return DensityFrames(count, ticks, *(None if n is None else float(n) for n in (chance, expected)))
            case BetweenSyntax(start, end, policy):
                predicates = self._predicate(start, "START WHEN"), self._predicate(end, "END WHEN")
                return BetweenFrames(*predicates, StartPolicy(policy or "CLOSE"))
            case CustomSyntax(name, value):
                framing_function(name)  # refused here rather than at the first row
                return CustomFrames(name, self._number(value))

    def _comparison(self, expr: Expr, clause: str) -> tuple[Expr, str, float]:
        """The two sides of `value > number`."""
        node = expr.node
        operator = _OPERATORS.get(type(node))
        limit = _literal(node.expression) if isinstance(node, exp.Binary) else None
        if operator is None or limit is None:
            example = "DELTA temperature > 2" if clause == "DELTA" else "SUM(vehicles) >= 100, or WHILE speed < 40"
            raise BindProblem(
                f"{clause} {expr.sql} compares nothing with a number", fix=f"write {example}", place=expr.place
            )
        left = node.this
        return Expr(canonical(left), left, place_of(left, expr.place)), operator, limit

    def _require_growth(self, operator: str, expr: Expr, clause: str) -> None:
        if operator not in (">", ">="):
            raise BindProblem(
                f"{clause} {expr.sql} never ends a frame", fix=f"write {clause} value > number", place=expr.place
            )

    def _reach(self, value: Expr, operator: str, limit: float) -> ReachFrames:
        calls = list(aggregate_calls(value.node))
        if len(calls) != 1 or calls[0] is not value.node:
            raise BindProblem(
                f"FRAME {value.sql} is no aggregate",
                fix="write WHILE before a condition, or SUM(vehicles) >= 100",
                place=value.place,
            )
        aggregate, argument = self._call(value)
        if not is_number(aggregate.result):
            raise BindProblem(
                f"FRAME compares {value.sql}, which is {type_name(aggregate.result)}, with a number",
                fix="use an aggregate that is a number",
                place=value.place,
            )
        return ReachFrames(aggregate, argument, operator, limit)

    def _call(self, value: Expr) -> tuple[Aggregate[Any], Scalar | None]:
        arguments, aggregate = GroupByBinder(self.scope, [], self.domain).aggregate(value.node, value)
        if isinstance(aggregate, CountAll):
            return aggregate, None
        if len(arguments) != 1:
            raise BindProblem(f"{value.sql} looks at two columns", fix="use an aggregate of one", place=value.place)
        return aggregate, arguments[0]

    def _predicate(self, expr: Expr, clause: str) -> Scalar:
        if (found := next(aggregate_calls(expr.node), None)) is not None:
            fix = "write [FRAME SUM(x) >= number] for frames that an aggregate ends"
            raise BindProblem(f"{clause} {expr.sql} holds an aggregate", fix=fix, place=place_of(found, expr.place))
        return self.scope.predicate(expr, clause)

    def _number(self, expr: Expr) -> Scalar:
        bound = self.scope.bind(expr)
        if not is_number(bound.type):
            raise BindProblem(
                f"frames follow numbers, but {expr.sql} is {type_name(bound.type)}",
                fix="use a number",
                place=expr.place,
            )
        return bound

    def _length(self, name: str, length: LengthSyntax | None, clause: FrameClause) -> FrameLength | None:
        if length is None:
            return None
        if isinstance(length.amount, int):
            return FrameLength(_require_positive(name, length.amount, length, clause), rows=True)
        return FrameLength(self._ticks(name, length.amount, clause) or 0)

    def _ticks(self, name: str, duration: Duration | None, clause: FrameClause) -> int | None:
        if duration is None:
            return None
        place = clause.places.get(str(duration))
        try:
            ticks = duration.ticks(self.domain)
        except PanewiseError as problem:
            raise problem.at(place) from None
        return _require_positive(name, ticks, duration, clause)


def _require_positive(name: str, amount: int, shown: object, clause: FrameClause) -> int:
    if amount <= 0:
        place = clause.places.get(str(shown).removesuffix(" ROWS"))
        raise WindowProblem(f"{name} {shown} is not positive", fix="use more than zero", place=place)
    return amount


def _literal(node: exp.Expr) -> float | None:
    """The number if the expression is a literal, or None."""
    sign = 1.0
    while isinstance(node, exp.Neg | exp.Paren):
        sign *= -1.0 if isinstance(node, exp.Neg) else 1.0
        node = node.this
    return sign * float(node.this) if isinstance(node, exp.Literal) and not node.is_string else None
