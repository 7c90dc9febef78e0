"""Queries without views: views are expanded where they are used, within a limit of size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from panewise.core.errors import BindProblem
from panewise.cql.limits import MAX_SELECTS
from panewise.cql.syntax import Body, FromItem, QuerySyntax, SetSyntax


def expand_views(query: QuerySyntax, views: Mapping[str, QuerySyntax]) -> QuerySyntax:
    """The same query without views: each becomes a sub-query under its name."""
    return replace(query, body=_body(query.body, views)) if views else query


def _body(body: Body, views: Mapping[str, QuerySyntax]) -> Body:
    if isinstance(body, SetSyntax):
        return replace(body, left=_body(body.left, views), right=_body(body.right, views))
    return replace(body, sources=tuple(_expand_item(ref, views) for ref in body.sources))


def _expand_item(ref: FromItem, views: Mapping[str, QuerySyntax]) -> FromItem:
    if not isinstance(ref.source, str):
        return replace(ref, source=_body(ref.source, views))
    name = _view_named(ref.source, views)
    if name is None:
        return ref
    view = expand_views(views[name], {n: v for n, v in views.items() if n != name})
    return replace(ref, source=view.body, emit=view.emit, alias=ref.alias or ref.source)


def _view_named(source: str, views: Mapping[str, QuerySyntax]) -> str | None:
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
    name = _view_named(ref.source, views)
    if name is None:
        return 0
    if name not in known:
        known[name] = _selects(views[name].body, views, known)
    return known[name]
