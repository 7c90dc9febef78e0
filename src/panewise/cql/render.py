"""Writes syntax as text: parsing that text gives the same syntax again."""

from __future__ import annotations

from panewise.cql.dialect import name_text, string_text
from panewise.cql.syntax import (
    Body,
    CreateQuery,
    CreateStream,
    CreateView,
    FromItem,
    QuerySyntax,
    ScriptSyntax,
    SelectItem,
    SelectSyntax,
    SetBoundary,
    SetSyntax,
    Statement,
)


def render(script: ScriptSyntax | Statement) -> str:
    """The text of a script or of one statement."""
    match script:
        case ScriptSyntax(statements):
            return "".join(f"{render(s)};\n" for s in statements)
        case CreateStream(name, columns, time, delay, source):
            listed = ", ".join(f"{name_text(c)} {kind}" for c, kind in columns)
            text = f"CREATE STREAM {name_text(name)}{f' ({listed})' if listed else ''} TIME {name_text(time)}"
            return text + (f" DELAY {delay}" if delay else "") + (f" FROM {string_text(source)}" if source else "")
        case SetBoundary(boundary):
            return f"WITH BOUNDARY {string_text(boundary.value)}"
        case CreateView(name, query):
            return f"CREATE VIEW {name_text(name)} AS {render(query)}"
        case CreateQuery(name, query, into, panes):
            text = f"CREATE QUERY {name_text(name)} AS {render(query)}"
            text += f" INTO {string_text(into)}" if into is not None else ""
            return text + (f" PANES INTO {string_text(panes)}" if panes is not None else "")
        case QuerySyntax(body, emit, empty, revise, unbounded):
            text = f"{emit}({_body(body)})" if emit else _body(body)
            text += (" EMIT EMPTY" if empty else "") + (f" LATE REVISE {revise}" if revise else "")
            return text + (" ALLOW UNBOUNDED" if unbounded else "")


def _body(body: Body, emit: str | None = None) -> str:
    match body:
        case SetSyntax(operator, left, right):
            # The left side of a chain needs no parentheses: set operators associate to the left.
            nested = f"({_body(right)})" if isinstance(right, SetSyntax) else _body(right)
            return f"{_body(left, emit)} {operator} {nested}"
        case SelectSyntax():
            return _select(body, emit)


def _select(body: SelectSyntax, emit: str | None) -> str:
    words = ["SELECT", *([emit] if emit else []), *(["DISTINCT"] if body.distinct else [])]
    words += [", ".join(_item(item) for item in body.items), "FROM", ", ".join(_from_item(ref) for ref in body.sources)]
    if body.where:
        words += ["WHERE", body.where.sql]
    if body.group_by:
        words += ["GROUP BY", ", ".join(e.sql for e in body.group_by)]
    if body.having:
        words += ["HAVING", body.having.sql]
    return " ".join(words)


def _item(item: SelectItem) -> str:
    return f"{item.expr.sql} AS {name_text(item.alias)}" if item.alias else item.expr.sql


def _from_item(ref: FromItem) -> str:
    text = name_text(ref.source) if isinstance(ref.source, str) else f"({_body(ref.source, ref.emit)})"
    text += f" AS {name_text(ref.alias)}" if ref.alias else ""
    text += f" [{ref.window.text()}]" if ref.window else ""
    return " ".join([text, *(fill.text() for fill in ref.fills)])
