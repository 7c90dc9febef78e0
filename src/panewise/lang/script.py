"""A whole script, bound: its streams with their sources and its queries with their targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from panewise.algebra import Query
from panewise.errors import BindProblem, PanewiseError, Place, SchemaProblem, TimeProblem, did_you_mean
from panewise.lang.binder import Binder
from panewise.lang.dialect import CQL
from panewise.lang.parser import parse_query, parse_script
from panewise.lang.render import render
from panewise.lang.scope import Describe
from panewise.lang.syntax import CreateQuery, CreateStream, CreateView, QuerySyntax
from panewise.lang.views import written_out
from panewise.schema import StreamSchema

_TYPES = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "CHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
}


@dataclass(frozen=True)
class NamedQuery:
    name: str
    query: Query
    text: str
    #: The text with views written out, which can be read without the script.
    alone: str
    into: str | None = None
    #: Where finished panes are logged, and where the script says so.
    panes: str | None = None
    panes_place: Place | None = None


@dataclass
class Pipeline:
    """Everything a `.cql` script declares."""

    streams: dict[str, StreamSchema] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    queries: dict[str, NamedQuery] = field(default_factory=dict)


def alone(query: QuerySyntax, views: Mapping[str, QuerySyntax]) -> str:
    """The text of a query that needs no views."""
    return render(written_out(query, views))


def bind_query(text: str, streams: Mapping[str, StreamSchema], describe: Describe) -> Query:
    """One SELECT over declared streams."""
    return Binder(streams, {}, describe).query(parse_query(text))


def bind_script(text: str, describe: Describe) -> Pipeline:
    """A script, statement by statement; each sees what stands before it."""
    found = Pipeline()
    views: dict[str, QuerySyntax] = {}
    for statement in parse_script(text).statements:
        try:
            match statement:
                case CreateStream():
                    _declare(statement, found, views)
                case CreateView(name, query):
                    _fresh(name, found, views)
                    Binder(found.streams, views, describe).query(query)
                    views[name] = query
                case CreateQuery(name, query):
                    _fresh(name, found, views)
                    bound = Binder(found.streams, views, describe).query(query)
                    found.queries[name] = NamedQuery(
                        name,
                        bound,
                        render(query),
                        alone(query, views),
                        statement.into,
                        statement.panes,
                        statement.panes_place,
                    )
                case QuerySyntax():
                    name = f"query_{len(found.queries) + 1}"
                    bound = Binder(found.streams, views, describe).query(statement)
                    found.queries[name] = NamedQuery(name, bound, render(statement), alone(statement, views))
        except PanewiseError as problem:
            raise problem.at(statement.place) from None
    return found


def _fresh(name: str, found: Pipeline, views: Mapping[str, QuerySyntax]) -> None:
    if any(name.lower() == other.lower() for other in (*found.streams, *found.queries, *views)):
        raise BindProblem(f"the name {name!r} is taken", fix="choose another one")


def _declare(statement: CreateStream, found: Pipeline, views: Mapping[str, QuerySyntax]) -> None:
    _fresh(statement.name, found, views)
    schema = pa.schema([(name, _column_type(kind, statement.places.get(kind))) for name, kind in statement.columns])
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
    if statement.source:
        found.sources[statement.name] = statement.source


def _column_type(kind: str, place: Place | None) -> pa.DataType:
    try:
        return data_type(kind)
    except BindProblem as problem:
        raise problem.at(place) from None


def data_type(text: str) -> pa.DataType:
    """The Arrow type of a SQL type name."""
    try:
        kind = sqlglot.parse_one(text, into=exp.DataType, dialect=CQL)
    except SqlglotError:
        kind = None
    if isinstance(kind, exp.DataType):
        name = kind.this.value if hasattr(kind.this, "value") else str(kind.this)
        if name == "DECIMAL":
            digits = [int(p.name) if p.name.isdecimal() else 0 for p in kind.expressions] or [10, 0]
            precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
            if not 0 <= scale <= precision <= 38 or not precision:
                raise BindProblem(f"{text} is not a decimal", fix="write DECIMAL(p, s) with s <= p <= 38")
            return pa.decimal128(precision, scale)
        if name in _TYPES:
            return _TYPES[name]
    known = ("BIGINT", "BOOLEAN", "DATE", "DOUBLE", "FLOAT", "INT", "STRING", "TIMESTAMP", "DECIMAL(p, s)")
    raise BindProblem(f"{text!r} is not a column type", fix=did_you_mean(text, known))
