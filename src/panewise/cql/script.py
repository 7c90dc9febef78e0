"""A whole script, bound: its streams with their sources and its queries with their targets."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from panewise.algebra import Query
from panewise.algebra.hints import hints
from panewise.core.errors import BindProblem, PanewiseError, PanewiseWarning, Place, SchemaProblem, TimeProblem
from panewise.core.schema import StreamSchema
from panewise.core.time import Boundary
from panewise.cql.bind import Binder
from panewise.cql.data_types import data_type
from panewise.cql.limits import MAX_SELECTS
from panewise.cql.naming import check_column_names
from panewise.cql.render import render
from panewise.cql.statements import parse_query, parse_script
from panewise.cql.syntax import (
    Body,
    CreateQuery,
    CreateStream,
    CreateView,
    FromItem,
    QuerySyntax,
    SetBoundary,
    SetSyntax,
)

#: Finds the columns of the files at an address.
Infer = Callable[[str], pa.Schema]
_KINDS = {
    ".parquet": "parquet",
    **dict.fromkeys((".csv", ".csv.gz"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".json.gz", ".jsonl.gz"), "json"),
}


@dataclass(frozen=True)
class NamedQuery:
    name: str
    query: Query
    text: str
    #: The text with views expanded, which can be parsed without the script.
    alone: str
    into: str | None = None
    #: The address of the pane log, and the place in the script that names it.
    panes: str | None = None
    panes_place: Place | None = None


@dataclass
class BoundScript:
    """Everything a `.cql` script declares."""

    streams: dict[str, StreamSchema] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    queries: dict[str, NamedQuery] = field(default_factory=dict)
    #: Streams whose columns were not declared but inferred from their files.
    inferred: set[str] = field(default_factory=set)
    boundary: Boundary | None = None

    def boundary_or(self, given: str | None) -> Boundary:
        """Which end of windows is included: as the script states, or else as its user states, who must not contradict
        it."""
        wanted = None if given is None else Boundary.of(given)
        if wanted and self.boundary and wanted is not self.boundary:
            raise BindProblem(
                f"the boundary is {wanted.value!r} here and {self.boundary.value!r} in the script", fix="give it once"
            )
        return self.boundary or wanted or Boundary.RIGHT


def standalone_text(query: QuerySyntax, views: Mapping[str, QuerySyntax]) -> str:
    """The text of a query that needs no views."""
    return render(expand_views(query, views))


def bind_query(text: str, streams: Mapping[str, StreamSchema]) -> Query:
    """One SELECT over declared streams."""
    return bind_syntax(parse_query(text), streams)


def bind_syntax(syntax: QuerySyntax, streams: Mapping[str, StreamSchema]) -> Query:
    """One parsed SELECT over declared streams."""
    return check_column_names(Binder(streams, {}).query(syntax), syntax)


def bind_script(text: str, infer: Infer | None = None) -> BoundScript:
    """Bind a script, statement by statement; each can use those before it. `infer` finds columns that are not
    declared."""
    found, problems = script_and_problems(text, infer)
    for problem in problems:
        raise problem
    return found


def script_and_problems(text: str, infer: Infer | None = None) -> tuple[BoundScript, list[PanewiseError]]:
    """The part of a script that can be bound, and the problems of the rest: all wrong queries up to the first wrong
    declaration."""
    found = BoundScript()
    problems: list[PanewiseError] = []
    views: dict[str, QuerySyntax] = {}
    for statement in parse_script(text).statements:
        try:
            match statement:
                case CreateStream():
                    _declare(statement, found, views, infer)
                case SetBoundary(boundary):
                    if found.boundary:
                        raise BindProblem("the boundary is set twice", fix="keep one of them")
                    found.boundary = boundary
                case CreateView(name, query):
                    _refuse_taken_name(name, found, views)
                    _bind(query, found, views)
                    views[name] = query
                case CreateQuery(name, query):
                    _refuse_taken_name(name, found, views)
                    bound = check_column_names(_bind(query, found, views), query)
                    _warn(name, bound)
                    found.queries[name] = NamedQuery(
                        name,
                        bound,
                        render(query),
                        standalone_text(query, views),
                        statement.into,
                        statement.panes,
                        statement.panes_place,
                    )
                case QuerySyntax():
                    name = f"query_{len(found.queries) + 1}"
                    bound = check_column_names(_bind(statement, found, views), statement)
                    _warn(name, bound)
                    found.queries[name] = NamedQuery(name, bound, render(statement), standalone_text(statement, views))
        except PanewiseError as problem:
            problems.append(problem.at(statement.place))
            if isinstance(statement, CreateStream | CreateView):
                break
    return found, problems


def _warn(name: str, query: Query) -> None:
    for hint in hints(query):
        warnings.warn(f"query {name!r}: {hint}", PanewiseWarning, stacklevel=3)


def _bind(query: QuerySyntax, found: BoundScript, views: Mapping[str, QuerySyntax]) -> Query:
    refuse_wide(query, views)
    return Binder(found.streams, views).query(query)


def _refuse_taken_name(name: str, found: BoundScript, views: Mapping[str, QuerySyntax]) -> None:
    if any(name.lower() == other.lower() for other in (*found.streams, *found.queries, *views)):
        raise BindProblem(f"the name {name!r} is taken", fix="choose another one")


def _declare(
    statement: CreateStream, found: BoundScript, views: Mapping[str, QuerySyntax], infer: Infer | None
) -> None:
    _refuse_taken_name(statement.name, found, views)
    address = statement.source and address_with_kind(statement.source)
    schema = pa.schema([(name, _column_type(kind, statement.places.get(kind))) for name, kind in statement.columns])
    if not statement.columns:
        schema = _infer_columns(statement, address or "", infer)
        found.inferred.add(statement.name)
    delay = str(statement.delay) if statement.delay else None
    for name, _ in statement.columns:
        if place := statement.places.get(f"{name} again"):
            raise SchemaProblem(f"column {name!r} appears twice", fix="rename one of them", place=place)
    if statement.delay and statement.delay.count < 0:
        place = statement.places.get(str(delay))
        raise SchemaProblem(f"DELAY {delay} is negative", fix="use zero or more", place=place)
    try:
        found.streams[statement.name] = StreamSchema(schema, statement.time, delay)
    except SchemaProblem as problem:
        place = statement.places.get(statement.time)
        raise problem.at(place) from None
    except TimeProblem as problem:
        place = statement.places.get(str(delay))
        raise problem.at(place) from None
    if address:
        found.sources[statement.name] = address


def address_with_kind(source: str) -> str:
    """An address with its kind, which follows from the name of the file if it is not written.

    >>> address_with_kind("trips/taxi.csv")
    'csv:trips/taxi.csv'
    """
    kind = next((kind for ending, kind in _KINDS.items() if source.lower().endswith(ending)), None)
    return f"{kind}:{source}" if kind and ":" not in source else source


def _infer_columns(statement: CreateStream, address: str, infer: Infer | None) -> pa.Schema:
    """The columns of a stream that declares none."""
    place = statement.places.get("#source")
    if infer is None:
        raise SchemaProblem(f"stream {statement.name!r} has no columns", fix="declare them", place=place)
    try:
        return infer(address)
    except PanewiseError as problem:
        raise problem.at(place) from None


def _column_type(kind: str, place: Place | None) -> pa.DataType:
    try:
        return data_type(kind)
    except BindProblem as problem:
        raise problem.at(place) from None


# ---- views ---------------------------------------------------------------------------------------------------------


def expand_views(query: QuerySyntax, views: Mapping[str, QuerySyntax]) -> QuerySyntax:
    """The same query without views: each becomes a sub-query under its name."""
    return replace(query, body=_expand_body(query.body, views)) if views else query


def _expand_body(body: Body, views: Mapping[str, QuerySyntax]) -> Body:
    if isinstance(body, SetSyntax):
        return replace(body, left=_expand_body(body.left, views), right=_expand_body(body.right, views))
    return replace(body, sources=tuple(_expand_item(ref, views) for ref in body.sources))


def _expand_item(ref: FromItem, views: Mapping[str, QuerySyntax]) -> FromItem:
    if not isinstance(ref.source, str):
        return replace(ref, source=_expand_body(ref.source, views))
    name = _find_view(ref.source, views)
    if name is None:
        return ref
    view = expand_views(views[name], {n: v for n, v in views.items() if n != name})
    return replace(ref, source=view.body, emit=view.emit, alias=ref.alias or ref.source)


def _find_view(source: str, views: Mapping[str, QuerySyntax]) -> str | None:
    """The view of a name, if there is one: case matters only where names differ in nothing else."""
    by_case = {name.lower(): name for name in views}
    return source if source in views else by_case.get(source.lower())


def refuse_wide(query: QuerySyntax, views: Mapping[str, QuerySyntax]) -> None:
    """Refuse a query that is too large once its views are expanded.

    A view that reads another one twice doubles the size each time, so that a few lines of script could exceed any
    memory.
    """
    if _selects(query.body, views, {}) > MAX_SELECTS:
        raise BindProblem(
            f"with its views written out the query has more than {MAX_SELECTS} SELECTs",
            fix="let views read each other less often, or write a view into a file and read that as a stream",
            place=query.place,
        )


def _selects(body: Body, views: Mapping[str, QuerySyntax], known: dict[str, int]) -> int:
    """How many SELECTs a body has with views expanded; `known` has those of views, so that each is counted once."""
    if isinstance(body, SetSyntax):
        return _selects(body.left, views, known) + _selects(body.right, views, known)
    return 1 + sum(_selects_below(ref, views, known) for ref in body.sources)


def _selects_below(ref: FromItem, views: Mapping[str, QuerySyntax], known: dict[str, int]) -> int:
    if not isinstance(ref.source, str):
        return _selects(ref.source, views, known)
    name = _find_view(ref.source, views)
    if name is None:
        return 0
    if name not in known:
        known[name] = _selects(views[name].body, views, known)
    return known[name]
