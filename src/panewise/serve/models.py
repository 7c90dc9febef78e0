"""The shapes of requests and answers, which FastAPI checks and the OpenAPI document describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

#: An instant: a number on integer time, ISO text on timestamps.
When = StrictInt | Annotated[StrictStr, Field(max_length=64)]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Scalar = StrictStr | StrictInt | float | bool | None


class Health(BaseModel):
    """The condition of the server: `waiting` for a log to begin, `degraded` if one cannot be read further, or
    `overloaded`."""

    status: Literal["ok", "waiting", "degraded", "overloaded"]
    #: Clients that receive events, and clients whose texts wait in the queue.
    listeners: int
    texts: int


class ColumnInfo(BaseModel):
    """A column and its Arrow type."""

    name: str
    type: str


class QueryInfo(BaseModel):
    """A query that can be looked up."""

    name: str
    query: str
    stream: str
    boundary: str
    keys: list[ColumnInfo]
    #: The instant up to which everything is final; null before there is one.
    final: int | str | None


class Queries(BaseModel):
    """All queries, and the problems that keep logs from being read."""

    queries: list[QueryInfo]
    problems: list[str]


class Registration(BaseModel):
    """A query to be answered under a name of its own."""

    model_config = ConfigDict(extra="forbid")

    query: Text


class Lookup(BaseModel):
    """A query by its name or its text, instants, and groups."""

    model_config = ConfigDict(extra="forbid")

    query: Text
    #: One instant or several; the newest final one if none is given.
    at: When | list[When] | None = None
    #: How far back each window reaches, instead of the query's own: a number, or a duration such as "10 minutes".
    window: When | None = None
    #: Where each window begins.
    since: When | list[When] | None = None
    #: For each key column the requested values, row by row; all groups if none is given.
    keys: dict[str, list[Scalar]] | None = None


class LookupResponse(BaseModel):
    """The rows that a lookup found."""

    query: str
    final: int | str
    columns: list[ColumnInfo]
    rows: list[dict[str, Any]]


class Problem(BaseModel):
    """Why a request is refused, and what to do about it."""

    error: str
    fix: str | None = None
    #: The place in a CQL text.
    line: int | None = None
    column: int | None = None
