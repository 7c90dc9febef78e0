"""Dates and times formatted by a pattern, which is a literal, and parsed from text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from panewise.core.errors import BindProblem
from panewise.cql.data_types import DATE, STRING, TIMESTAMP, duckdb_text
from panewise.cql.functions.catalogue import TypedSql, function, suggest_instead
from panewise.cql.functions.kinds import CONSTANT, DAY, INSTANT, LONG

_PIECE = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", re.DOTALL)
#: Letters of a pattern, and DuckDB's text for them, with {0} for the value.
_MEANINGS = {
    "yyyy": "lpad(CAST(year({0}) AS VARCHAR), 4, '0')",
    "yy": "lpad(CAST(year({0}) % 100 AS VARCHAR), 2, '0')",
    "MMMM": "monthname({0})",
    "MMM": "left(monthname({0}), 3)",
    "MM": "lpad(CAST(month({0}) AS VARCHAR), 2, '0')",
    "M": "CAST(month({0}) AS VARCHAR)",
    "dd": "lpad(CAST(day({0}) AS VARCHAR), 2, '0')",
    "d": "CAST(day({0}) AS VARCHAR)",
    "D": "CAST(dayofyear({0}) AS VARCHAR)",
    "EEEE": "dayname({0})",
    **{"E" * count: "left(dayname({0}), 3)" for count in (1, 2, 3)},
    "HH": "lpad(CAST(hour({0}) AS VARCHAR), 2, '0')",
    "H": "CAST(hour({0}) AS VARCHAR)",
    "hh": "lpad(CAST((hour({0}) + 11) % 12 + 1 AS VARCHAR), 2, '0')",
    "h": "CAST((hour({0}) + 11) % 12 + 1 AS VARCHAR)",
    "mm": "lpad(CAST(minute({0}) AS VARCHAR), 2, '0')",
    "m": "CAST(minute({0}) AS VARCHAR)",
    "ss": "lpad(CAST(second({0}) AS VARCHAR), 2, '0')",
    "s": "CAST(second({0}) AS VARCHAR)",
    "a": "CASE WHEN hour({0}) < 12 THEN 'AM' ELSE 'PM' END",
    "Q": "CAST(quarter({0}) AS VARCHAR)",
    **{
        "S" * count: f"left(lpad(CAST(microsecond({{0}}) % 1000000 AS VARCHAR), 6, '0'), {count})"
        for count in range(1, 7)
    },
}


def _format_moment(moment: str, pattern: str) -> str:
    """DuckDB's text for a moment, formatted by a pattern."""
    pieces = []
    for found in _PIECE.finditer(pattern):
        text = found[0]
        if text in _MEANINGS:
            pieces.append(_MEANINGS[text].format(moment))
        elif text == "''":
            pieces.append(duckdb_text("'"))
        elif text.startswith("'") and len(text) > 1:
            pieces.append(duckdb_text(text[1:-1].replace("''", "'")))
        elif text.isalpha() or text in "'[]{}#":
            raise BindProblem(f"{text!r} in the pattern {pattern!r} is not supported", fix=_KNOWN)
        else:
            pieces.append(duckdb_text(text))
    return " || ".join(pieces) or f"left(CAST({moment} AS VARCHAR), 0)"


_KNOWN = "use yyyy, MM, dd, HH, mm, ss, SSS, MMM, EEE, a, and text in single quotes"


def _date_format(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    moment, pattern = arguments
    return f"({_format_moment(moment.sql, str(pattern.literal))})"


_PATTERNS = ("yyyy-MM-dd HH:mm:ss", "dd/MM/yy h:m:s a", "EEE, d MMM yyyy", "EEEE MMMM D", "HH:mm:ss.SSSSSS")
_SOME = ("TIMESTAMP'2024-02-29 12:34:56.789012'", "TIMESTAMP'1970-01-01 00:04:05'", "CAST(NULL AS TIMESTAMP)")
function(
    "DATE_FORMAT",
    takes=[INSTANT, CONSTANT],
    gives=STRING,
    duckdb=_date_format,
    edges=[(moment, f"'{pattern}'") for moment in _SOME for pattern in _PATTERNS],
)


def _from_seconds(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    seconds, *pattern = arguments
    form = str(pattern[0].literal) if pattern else "yyyy-MM-dd HH:mm:ss"
    return f"({_format_moment(f'make_timestamp({seconds.sql} * 1000000)', form)})"


_SECONDS = ("0", "-1", "1709210096", "CAST(NULL AS BIGINT)")
function(
    "FROM_UNIXTIME", takes=[LONG], gives=STRING, duckdb=_from_seconds, made_up=False, edges=[(s,) for s in _SECONDS]
)
function(
    "FROM_UNIXTIME",
    takes=[LONG, CONSTANT],
    gives=STRING,
    duckdb=_from_seconds,
    edges=[(s, "'yyyy/MM/dd'") for s in _SECONDS],
)
function("TO_DATE", takes=[DAY], gives=DATE, duckdb="{0}")
function("TO_TIMESTAMP", takes=[INSTANT], gives=TIMESTAMP, duckdb="{0}")
suggest_instead(
    "shift the times by an interval, since everything here is in UTC", "FROM_UTC_TIMESTAMP", "TO_UTC_TIMESTAMP"
)
suggest_instead("use the time of the stream", "NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE")
