"""A query and the tables that it reads, as users give them: bound and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from panewise.algebra import Derived, Query, Source
from panewise.core.errors import BindProblem, SchemaProblem
from panewise.core.schema import Stream, as_stream
from panewise.cql.script import bind_query


def bind_inputs(
    query: str | Query, streams: Mapping[str, Any], time: str | None = None
) -> tuple[Query, dict[str, Stream]]:
    """A query and streams as users give them, bound and checked."""
    if not isinstance(streams, Mapping):
        raise SchemaProblem(
            f"a {type(streams).__name__} is not a set of streams", fix='pass a dict such as {"S": table}'
        )
    if not isinstance(query, str | Query):
        raise BindProblem(f"{query!r} is not a query", fix="pass CQL text or a bound Query")
    given = {name: as_stream(name, source, time) for name, source in streams.items()}
    bound = bind_query(query, {n: s.schema for n, s in given.items()}) if isinstance(query, str) else query
    _check_streams(bound, given)
    return bound, given


def _check_streams(query: Query, given: Mapping[str, Stream]) -> None:
    """A bound tree may be older than the streams it now meets: they must have the columns it was bound to."""
    for node in query.root.walk():
        if isinstance(node, Derived):
            _check_streams(node.query, given)
        elif isinstance(node, Source):
            if node.stream not in given:
                raise BindProblem(
                    f"the query reads stream {node.stream!r}, which is not given",
                    fix=f"add {node.stream!r} to the streams",
                )
            found = {f"{node.alias}.{f.name}": f.type for f in given[node.stream].arrow.schema}
            wanted = {c.name: c.type for c in node.columns}
            if list(found.items()) != list(wanted.items()):
                raise BindProblem(
                    f"stream {node.stream!r} does not have the columns the query was bound to",
                    fix="bind the query again",
                )
