"""The syntax of `[FRAME ...]`."""

from __future__ import annotations

from dataclasses import dataclass

from panewise.core.time import Duration
from panewise.cql.syntax import Expr, WindowClause


@dataclass(frozen=True)
class WhileSyntax:
    condition: Expr


@dataclass(frozen=True)
class BoundarySyntax:
    """EVERY step OF value, or AT (marks) OF value; numbers as they were written."""

    value: Expr
    step: str | None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeltaSyntax:
    comparison: Expr


@dataclass(frozen=True)
class ReachSyntax:
    comparison: Expr


@dataclass(frozen=True)
class TrendSyntax:
    direction: str
    value: Expr
    tolerance: str | None = None


@dataclass(frozen=True)
class DensitySyntax:
    count: int
    per: Duration
    chance: str | None = None
    expected: str | None = None


@dataclass(frozen=True)
class BetweenSyntax:
    start: Expr
    end: Expr
    policy: str | None = None


@dataclass(frozen=True)
class CustomSyntax:
    name: str
    value: Expr


KindSyntax = (
    WhileSyntax
    | BoundarySyntax
    | DeltaSyntax
    | ReachSyntax
    | TrendSyntax
    | DensitySyntax
    | BetweenSyntax
    | CustomSyntax
)


@dataclass(frozen=True)
class LengthSyntax:
    """A duration, or a number of rows."""

    amount: Duration | int

    def __str__(self) -> str:
        return f"{self.amount} ROWS" if isinstance(self.amount, int) else str(self.amount)


@dataclass(frozen=True)
class FrameClause(WindowClause):
    """FRAME, its kind, and the conditions after it."""

    kind: KindSyntax
    partition_by: tuple[str, ...] = ()
    some: Expr | None = None
    least: LengthSyntax | None = None
    most: LengthSyntax | None = None
    span: str | None = None
    scheme: str | None = None
    choice: str | None = None
    overlap: Duration | None = None
    extent: str | None = None
    reading: str | None = None
    every: Duration | None = None
    missing: str | None = None
    duplicates: str | None = None
    fragments: LengthSyntax | None = None
