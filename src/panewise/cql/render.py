"""Writes syntax as text: parsing that text gives the same syntax again."""

from __future__ import annotations

from panewise.core.time import Duration
from panewise.cql.clauses.frame_render import frame_text
from panewise.cql.clauses.frame_syntax import FrameClause
from panewise.cql.quoting import name_text, string_text
from panewise.cql.syntax import (
    Body,
    CreateQuery,
    CreateStream,
    CreateView,
    CumulateClause,
    FillSyntax,
    FromItem,
    LandmarkClause,
    NowClause,
    QuerySyntax,
    RangeClause,
    RowsClause,
    ScriptSyntax,
    SelectItem,
    SelectSyntax,
    SessionClause,
    SetBoundary,
    SetSyntax,
    Statement,
    VaryingClause,
    WhereClause,
    WindowClause,
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
    text += f" [{window_text(ref.window)}]" if ref.window else ""
    return " ".join([text, *(_fill(fill) for fill in ref.fills)])


def _fill(fill: FillSyntax) -> str:
    text = f"FILL WITH {name_text(fill.source)}" + (f" AS {name_text(fill.alias)}" if fill.alias else "")
    text += f" ON {fill.on.sql}" if fill.on else ""
    text += f" FROM START {_signed_duration(fill.lower)}" if fill.lower else ""
    text += f" TO END {_signed_duration(fill.upper)}" if fill.upper else ""
    return text + (f" OFFSET {fill.offset}" if fill.offset else "")


def _signed_duration(shift: Duration) -> str:
    return str(shift) if str(shift).startswith("-") else f"+ {shift}"


def window_text(clause: WindowClause) -> str:
    """A window clause without its brackets."""
    match clause:
        case NowClause():
            return "NOW"
        case RangeClause(ranges, slides, lag, start, several):
            many = "S" if several else ""
            text = f"RANGE{many} {', '.join(map(str, ranges))}"
            text += f" SLIDE{many} {', '.join(map(str, slides))}" if slides else ""
            return text + (f" LAG {lag}" if lag else "") + _start(start)
        case VaryingClause(extent, slide):
            return f"RANGE ({extent.sql}) SLIDE {slide}"
        case LandmarkClause(lower, upper, slide):
            text = "UNBOUNDED" + _start(lower)
            if upper is not None:
                text = f"UNTIL {_instant(upper)}"
                text = text if lower is None else f"FROM {_instant(lower)} {text}"
            return text + (f" SLIDE {slide}" if slide else "")
        case RowsClause(count, rows_lag, columns):
            return f"{_partition(columns)}ROWS {count}{f' LAG {rows_lag}' if rows_lag else ''}"
        case SessionClause(gap, columns):
            return f"{_partition(columns)}SESSION {gap}"
        case CumulateClause(size, step, start):
            return f"CUMULATE {size} STEP {step}{_start(start)}"
        case WhereClause(condition):
            return f"WHERE {condition.sql}"
        case FrameClause():
            return frame_text(clause)
    raise TypeError(f"cannot write {type(clause).__name__}")


def _partition(columns: tuple[str, ...]) -> str:
    return f"PARTITION BY {', '.join(map(name_text, columns))} " if columns else ""


def _start(value: str | int | None) -> str:
    return "" if value is None else f" START AT {_instant(value)}"


def _instant(value: str | int) -> str:
    return str(value) if isinstance(value, int) else string_text(value)
