"""A CQL text as data, before names and types are resolved. Equal texts give equal syntax.

Places are kept for messages only and never compared. sqlglot nodes stay inside `Expr` and do not leave this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from panewise.core.errors import Place
from panewise.core.time import Boundary, Duration

if TYPE_CHECKING:
    from panewise.cql.clauses.base import WindowClause
    from panewise.cql.clauses.fill import FillClause


@dataclass(frozen=True)
class Expr:
    """A scalar expression: its canonical text, and sqlglot's tree of it."""

    sql: str
    node: exp.Expr = field(compare=False, repr=False)
    place: Place | None = field(default=None, compare=False, repr=False)


def place_of(node: exp.Expr, otherwise: Place | None) -> Place | None:
    """The place of the first word of an expression; the parser stores a place on every name and literal."""
    places = [part.meta["place"] for part in node.walk() if "place" in part.meta]
    return min(places, key=lambda p: (p.line, p.column), default=otherwise)


@dataclass(frozen=True)
class SelectItem:
    """One selected expression; `*` and `alias.*` are expressions too."""

    expr: Expr
    alias: str | None = None


@dataclass(frozen=True)
class FromItem:
    """One entry of FROM: a stream or view by name, or a sub-query."""

    source: str | Body
    alias: str | None = None
    window: WindowClause | None = None
    emit: str | None = None
    fills: tuple[FillClause, ...] = ()
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class SelectSyntax:
    items: tuple[SelectItem, ...]
    sources: tuple[FromItem, ...]
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    having: Expr | None = None
    distinct: bool = False


@dataclass(frozen=True)
class SetSyntax:
    """UNION ALL or EXCEPT ALL of two bodies."""

    operator: str
    left: Body
    right: Body
    place: Place | None = field(default=None, compare=False, repr=False)


Body = SelectSyntax | SetSyntax


@dataclass(frozen=True)
class QuerySyntax:
    """A SELECT with the clauses around it."""

    body: Body
    emit: str | None = None
    empty: bool = False
    revise: Duration | None = None
    unbounded: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)
    late: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class CreateStream:
    """A stream; without declared columns it has those of its files."""

    name: str
    columns: tuple[tuple[str, str], ...]
    time: str
    delay: Duration | None = None
    source: str | None = None
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class CreateView:
    name: str
    query: QuerySyntax
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class CreateQuery:
    name: str
    query: QuerySyntax
    into: str | None = None
    panes: str | None = None
    place: Place | None = field(default=None, compare=False, repr=False)
    #: The place of PANES INTO.
    panes_place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class SetBoundary:
    """Which end of windows is included, for all queries of a script."""

    boundary: Boundary
    place: Place | None = field(default=None, compare=False, repr=False)


Statement = CreateStream | CreateView | CreateQuery | QuerySyntax | SetBoundary


@dataclass(frozen=True)
class ScriptSyntax:
    statements: tuple[Statement, ...]
