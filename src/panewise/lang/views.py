"""Queries that stand on their own: views written out where they are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from panewise.lang.syntax import Body, QuerySyntax, Ref, SetSyntax


def written_out(query: QuerySyntax, views: Mapping[str, QuerySyntax]) -> QuerySyntax:
    """The same query without views: each has become a sub-query under its name."""
    return replace(query, body=_body(query.body, views)) if views else query


def _body(body: Body, views: Mapping[str, QuerySyntax]) -> Body:
    if isinstance(body, SetSyntax):
        return replace(body, left=_body(body.left, views), right=_body(body.right, views))
    return replace(body, sources=tuple(_ref(ref, views) for ref in body.sources))


def _ref(ref: Ref, views: Mapping[str, QuerySyntax]) -> Ref:
    if not isinstance(ref.source, str):
        return replace(ref, source=_body(ref.source, views))
    by_case = {name.lower(): name for name in views}
    name = ref.source if ref.source in views else by_case.get(ref.source.lower())
    if name is None:
        return ref
    view = written_out(views[name], {n: v for n, v in views.items() if n != name})
    return replace(ref, source=view.body, emit=view.emit, alias=ref.alias or ref.source)
