"""The kinds of frames in a frame clause, one class each: how a kind is read, bound and printed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import TokenType, exp

from panewise.aggregate import CountAll
from panewise.core.errors import BindProblem, did_you_mean
from panewise.core.scalar import Scalar
from panewise.core.schema import is_number, type_name
from panewise.core.time import Duration
from panewise.cql.clauses.base import ClauseBinder
from panewise.cql.clauses.frame_conditions import ENDS, read_expression, read_number, read_one_of
from panewise.cql.dialect import canonical, string_text
from panewise.cql.group_by import GroupByBinder, aggregate_calls
from panewise.cql.syntax import Expr, place_of
from panewise.cql.tokens import Cursor, word
from panewise.frame.frame import (
    BetweenFrames,
    BoundaryFrames,
    CustomFrames,
    DeltaFrames,
    DensityFrames,
    Direction,
    FrameKind,
    ReachFrames,
    StartPolicy,
    TrendFrames,
    WhileFrames,
)
from panewise.frame.functions import framing_function

#: How the kind that begins with a word is read; the cursor is after that word.
KIND_READERS: dict[str, Callable[[Cursor, str], KindSyntax]] = {}


class KindSyntax(ABC):
    """A kind of frames as it was written; a subclass is registered for the `words` with which its text may begin."""

    def __init_subclass__(cls, words: tuple[str, ...] = ()) -> None:
        KIND_READERS.update(dict.fromkeys(words, cls.read))

    @classmethod
    @abstractmethod
    def read(cls, cursor: Cursor, opening: str) -> KindSyntax:
        """The kind that follows its opening word."""

    @abstractmethod
    def bind(self, binder: ClauseBinder) -> FrameKind:
        """The kind with its expressions over the columns of a stream, and its durations in ticks."""

    @abstractmethod
    def text(self) -> str:
        """The text of the kind; reading it gives the same kind again."""


def read_kind(cursor: Cursor) -> KindSyntax:
    """The kind of frames at the cursor; without a word of its own, it is a comparison of an aggregate."""
    opening = word(cursor.token) if cursor.token else ""
    cursor.places.setdefault("#kind", cursor.place())
    reader = KIND_READERS.get(opening)
    if reader is None:
        _refuse_misspelt(cursor, opening)
        return ReachSyntax.read(cursor, opening)
    cursor.at += 1
    return reader(cursor, opening)


def _refuse_misspelt(cursor: Cursor, opening: str) -> None:
    """Refuse a word that is no kind, unless it is an aggregate that is compared with a number."""
    ahead = cursor.tokens[cursor.at + 1 : cursor.at + 2]
    called = bool(ahead) and ahead[0].token_type is TokenType.L_PAREN
    meant = did_you_mean(opening, KIND_READERS, "")
    if not opening or opening in ENDS or (meant and not called):
        fix = meant or f"start with one of {', '.join(KIND_READERS)}, or with an aggregate such as SUM(v) >= 100"
        raise cursor.problem("expected a kind of frames", fix)


@dataclass(frozen=True)
class WhileSyntax(KindSyntax, words=("WHILE",)):
    condition: Expr

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> WhileSyntax:
        return cls(read_expression(cursor))

    def bind(self, binder: ClauseBinder) -> WhileFrames:
        return WhileFrames(bind_predicate(binder, self.condition, "WHILE"))

    def text(self) -> str:
        return f"WHILE {self.condition.sql}"


@dataclass(frozen=True)
class BoundarySyntax(KindSyntax, words=("EVERY", "AT")):
    """EVERY step OF value, or AT (marks) OF value; numbers as they were written."""

    value: Expr
    step: str | None
    marks: tuple[str, ...] = ()

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> BoundarySyntax:
        step, marks = None, tuple[str, ...]()
        if opening == "EVERY":
            step = read_number(cursor)
        else:
            cursor.expect("(")
            marks = cursor.comma_list(lambda: read_number(cursor))
            cursor.expect(")")
        cursor.expect("OF")
        return cls(read_expression(cursor), step, marks)

    def bind(self, binder: ClauseBinder) -> BoundaryFrames:
        step = None if self.step is None else float(self.step)
        return BoundaryFrames(bind_number(binder, self.value), step, tuple(map(float, self.marks)))

    def text(self) -> str:
        boundaries = f"EVERY {self.step}" if self.step else f"AT ({', '.join(self.marks)})"
        return f"{boundaries} OF {self.value.sql}"


@dataclass(frozen=True)
class DeltaSyntax(KindSyntax, words=("DELTA",)):
    comparison: Expr

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> DeltaSyntax:
        return cls(read_expression(cursor))

    def bind(self, binder: ClauseBinder) -> DeltaFrames:
        value, operator, limit = _split_comparison(self.comparison, "DELTA", "DELTA temperature > 2")
        if operator not in (">", ">="):
            raise BindProblem(
                f"{self.text()} never ends a frame", fix="write DELTA value > number", place=self.comparison.place
            )
        return DeltaFrames(bind_number(binder, value), limit, operator == ">=")

    def text(self) -> str:
        return f"DELTA {self.comparison.sql}"


@dataclass(frozen=True)
class TrendSyntax(KindSyntax, words=("RISING", "FALLING", "FLAT")):
    direction: str
    value: Expr
    tolerance: str | None = None

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> TrendSyntax:
        value = read_expression(cursor)
        return cls(opening, value, read_number(cursor) if cursor.take("WITHIN") else None)

    def bind(self, binder: ClauseBinder) -> TrendFrames:
        if self.tolerance is not None and self.direction != "FLAT":
            raise BindProblem("only FLAT has WITHIN", fix="leave it out", place=self.value.place)
        return TrendFrames(bind_number(binder, self.value), Direction(self.direction), float(self.tolerance or 0))

    def text(self) -> str:
        return f"{self.direction} {self.value.sql}" + (f" WITHIN {self.tolerance}" if self.tolerance else "")


@dataclass(frozen=True)
class DensitySyntax(KindSyntax, words=("DENSITY",)):
    count: int
    per: Duration
    chance: str | None = None
    expected: str | None = None

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> DensitySyntax:
        count = cursor.integer("a number of rows")
        cursor.expect("PER")
        per = cursor.duration()
        if not cursor.take("CHANCE"):
            return cls(count, per)
        chance = read_number(cursor)
        cursor.expect("EXPECTED")
        return cls(count, per, chance, read_number(cursor))

    def bind(self, binder: ClauseBinder) -> DensityFrames:
        chance, expected = (None if n is None else float(n) for n in (self.chance, self.expected))
        return DensityFrames(self.count, binder.length("PER", self.per), chance, expected)

    def text(self) -> str:
        chance = f" CHANCE {self.chance} EXPECTED {self.expected}" if self.chance else ""
        return f"DENSITY {self.count} PER {self.per}{chance}"


@dataclass(frozen=True)
class BetweenSyntax(KindSyntax, words=("START",)):
    start: Expr
    end: Expr
    policy: str | None = None

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> BetweenSyntax:
        cursor.expect("WHEN")
        start = read_expression(cursor)
        cursor.expect("END")
        cursor.expect("WHEN")
        end = read_expression(cursor)
        policies = tuple(policy.value for policy in StartPolicy)
        return cls(start, end, read_one_of(cursor, policies) if cursor.take("ON", "START") else None)

    def bind(self, binder: ClauseBinder) -> BetweenFrames:
        start, end = bind_predicate(binder, self.start, "START WHEN"), bind_predicate(binder, self.end, "END WHEN")
        return BetweenFrames(start, end, StartPolicy(self.policy or "CLOSE"))

    def text(self) -> str:
        policy = f" ON START {self.policy}" if self.policy else ""
        return f"START WHEN {self.start.sql} END WHEN {self.end.sql}{policy}"


@dataclass(frozen=True)
class CustomSyntax(KindSyntax, words=("USING",)):
    name: str
    value: Expr

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> CustomSyntax:
        name = cursor.string("the name of a framing function")
        cursor.expect("OF")
        return cls(name, read_expression(cursor))

    def bind(self, binder: ClauseBinder) -> CustomFrames:
        framing_function(self.name)  # refused here rather than at the first row
        return CustomFrames(self.name, bind_number(binder, self.value))

    def text(self) -> str:
        return f"USING {string_text(self.name)} OF {self.value.sql}"


@dataclass(frozen=True)
class ReachSyntax(KindSyntax):
    """An aggregate that is compared with a number; it has no opening word."""

    comparison: Expr

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> ReachSyntax:
        return cls(read_expression(cursor))

    def bind(self, binder: ClauseBinder) -> ReachFrames:
        example = "SUM(vehicles) >= 100, or WHILE speed < 40"
        value, operator, limit = _split_comparison(self.comparison, "FRAME", example)
        calls = list(aggregate_calls(value.node))
        if len(calls) != 1 or calls[0] is not value.node:
            raise BindProblem(
                f"FRAME {value.sql} is no aggregate",
                fix="write WHILE before a condition, or SUM(vehicles) >= 100",
                place=value.place,
            )
        arguments, aggregate = GroupByBinder(binder.scope, [], binder.domain).aggregate(value.node, value)
        if not isinstance(aggregate, CountAll) and len(arguments) != 1:
            raise BindProblem(f"{value.sql} looks at two columns", fix="use an aggregate of one", place=value.place)
        if not is_number(aggregate.result):
            raise BindProblem(
                f"FRAME compares {value.sql}, which is {type_name(aggregate.result)}, with a number",
                fix="use an aggregate that is a number",
                place=value.place,
            )
        argument = None if isinstance(aggregate, CountAll) else arguments[0]
        return ReachFrames(aggregate, argument, operator, limit)

    def text(self) -> str:
        return self.comparison.sql


# ---- parts of kinds ----------------------------------------------------------------------------------------------


def bind_predicate(binder: ClauseBinder, expr: Expr, clause: str) -> Scalar:
    """A condition on single items."""
    if (found := next(aggregate_calls(expr.node), None)) is not None:
        fix = "write [FRAME SUM(x) >= number] for frames that an aggregate ends"
        raise BindProblem(f"{clause} {expr.sql} holds an aggregate", fix=fix, place=place_of(found, expr.place))
    return binder.scope.predicate(expr, clause)


def bind_number(binder: ClauseBinder, expr: Expr) -> Scalar:
    """An expression that is a number."""
    bound = binder.scope.bind(expr)
    if not is_number(bound.type):
        raise BindProblem(
            f"frames follow numbers, but {expr.sql} is {type_name(bound.type)}", fix="use a number", place=expr.place
        )
    return bound


_OPERATORS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}


def _split_comparison(expr: Expr, clause: str, example: str) -> tuple[Expr, str, float]:
    """The value, the operator and the number of `value > number`."""
    node = expr.node
    operator = _OPERATORS.get(type(node))
    limit = _literal(node.expression) if isinstance(node, exp.Binary) else None
    if operator is None or limit is None:
        raise BindProblem(
            f"{clause} {expr.sql} compares nothing with a number", fix=f"write {example}", place=expr.place
        )
    left = node.this
    return Expr(canonical(left), left, place_of(left, expr.place)), operator, limit


def _literal(node: exp.Expr) -> float | None:
    """The number if the expression is a literal, or None."""
    sign = 1.0
    while isinstance(node, exp.Neg | exp.Paren):
        sign *= -1.0 if isinstance(node, exp.Neg) else 1.0
        node = node.this
    return sign * float(node.this) if isinstance(node, exp.Literal) and not node.is_string else None
