"""The calendar: fields of dates and times, units of them, and distances in units. Everything is in UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from panewise.core.errors import BindProblem, did_you_mean
from panewise.cql.data_types import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP
from panewise.cql.functions.catalogue import NODES, Translation, TypedSql, function, macro
from panewise.cql.functions.kinds import CONSTANT, COUNT, DATE_ONLY, DAY, INSTANT, LONG, MOMENT, UNIT, WHOLE

# ---- fields --------------------------------------------------------------------------------------------------------

function("YEAR", "EXTRACT YEAR", takes=[DAY], gives=INT, duckdb="year({0})")
function("QUARTER", "EXTRACT QUARTER", takes=[DAY], gives=INT, duckdb="quarter({0})")
function("MONTH", "EXTRACT MONTH", takes=[DAY], gives=INT, duckdb="month({0})")
function("WEEKOFYEAR", "EXTRACT WEEK", takes=[DAY], gives=INT, duckdb="weekofyear({0})")
function("EXTRACT YEAROFWEEK", takes=[DAY], gives=INT, duckdb="isoyear({0})", form="EXTRACT(YEAROFWEEK FROM {0})")
function("DAY", "DAYOFMONTH", "EXTRACT DAY", takes=[DAY], gives=INT, duckdb="day({0})")
function("DAYOFYEAR", "EXTRACT DOY", takes=[DAY], gives=INT, duckdb="dayofyear({0})")
#: Sunday is 1, and Monday is 0.
function("DAYOFWEEK", "EXTRACT DAYOFWEEK", "EXTRACT DOW", takes=[DAY], gives=INT, duckdb="dayofweek({0}) + 1")
function("WEEKDAY", takes=[DAY], gives=INT, duckdb="isodow({0}) - 1")
for _name in ("DAYOFWEEK_ISO", "DOW_ISO"):
    _form = f"EXTRACT({_name} FROM {{0}})"
    function(f"EXTRACT {_name}", takes=[DAY], gives=INT, duckdb="isodow({0})", form=_form)
function("HOUR", "EXTRACT HOUR", takes=[INSTANT], gives=INT, duckdb="hour({0})")
function("MINUTE", "EXTRACT MINUTE", takes=[INSTANT], gives=INT, duckdb="minute({0})")
function("SECOND", takes=[INSTANT], gives=INT, duckdb="second({0})")
#: Seconds with their fraction.
function(
    "EXTRACT SECOND",
    takes=[INSTANT],
    gives=pa.decimal128(8, 6),
    duckdb="CAST(microsecond({0}) AS DECIMAL(8, 0)) * CAST(0.000001 AS DECIMAL(7, 6))",
    form="EXTRACT(SECOND FROM {0})",
)
function("DAYNAME", takes=[DAY], gives=STRING, duckdb="left(dayname({0}), 3)")
function("MONTHNAME", takes=[DAY], gives=STRING, duckdb="left(monthname({0}), 3)")
NODES[exp.Extract] = lambda found: (f"EXTRACT {found.name.upper()}", [found.expression])

# ---- units ---------------------------------------------------------------------------------------------------------

_SECOND = 1_000_000
#: Units of fixed length, in microseconds, and units that are numbers of months.
_SPANS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": _SECOND,
    "MINUTE": 60 * _SECOND,
    "HOUR": 3600 * _SECOND,
    "DAY": 86_400 * _SECOND,
    "WEEK": 7 * 86_400 * _SECOND,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SHORT = {"YYYY": "YEAR", "YY": "YEAR", "MON": "MONTH", "MM": "MONTH", "DD": "DAY"}


def _unit(name: Any, known: Sequence[str]) -> str:
    wanted = _SHORT.get(str(name).upper(), str(name).upper())
    if wanted not in known:
        raise BindProblem(f"{name!r} is no unit that fits here", fix=did_you_mean(str(name), known))
    return wanted


def _truncate(known: Sequence[str], unit: int, value: int) -> Translation:
    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        return f"date_trunc('{_unit(arguments[unit].literal, known)}', {arguments[value].sql})"

    return translate


_UNITS = (*_SPANS, *_MONTHS)
_LONG_UNITS = ("WEEK", *_MONTHS)
function(
    "DATE_TRUNC",
    takes=[CONSTANT, INSTANT],
    gives=TIMESTAMP,
    duckdb=_truncate(_UNITS, 0, 1),
    edges=[(f"'{unit}'", "?") for unit in (*_UNITS, "yyyy", "mon", "dd") if unit != "WEEK"]
    + [("'WEEK'", "TIMESTAMP'2024-02-29 12:34:56.789'")],
)
function(
    "TRUNC",
    takes=[DAY, CONSTANT],
    gives=DATE,
    duckdb=_truncate(_LONG_UNITS, 1, 0),
    edges=[("?", f"'{unit}'") for unit in (*_MONTHS, "mm")] + [("DATE'2024-02-29'", "'week'")],
)

# ---- shifted -------------------------------------------------------------------------------------------------------

_SOME_DAYS = [("DATE'2024-01-31'", "1"), ("DATE'2024-02-29'", "-1"), ("DATE'2024-02-29'", "12"), ("NULL", "1")]
function("DATE_ADD", "DATEADD", takes=[DAY, COUNT], gives=DATE, duckdb="({0} + {1})", made_up=False, edges=_SOME_DAYS)
function("DATE_SUB", takes=[DAY, COUNT], gives=DATE, duckdb="({0} - {1})", made_up=False, edges=_SOME_DAYS)
function("ADD_MONTHS", takes=[DAY, COUNT], gives=DATE, duckdb="({0} + to_months({1}))", made_up=False, edges=_SOME_DAYS)
function("LAST_DAY", takes=[DAY], gives=DATE, duckdb="last_day({0})")
_DAYS = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")


def _next_day(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    """The first day after a date with the given name."""
    date, day = arguments
    name = str(day.literal).upper()
    fitting = [place for place, day in enumerate(_DAYS) if name in (day, day[:2], day[:3])]
    if not fitting:
        raise BindProblem(f"{day.literal!r} is no day of the week", fix=did_you_mean(name, _DAYS))
    return f"({date.sql} + CAST(({fitting[0]} - dayofweek({date.sql}) + 6) % 7 + 1 AS INTEGER))"


function(
    "NEXT_DAY",
    takes=[DAY, CONSTANT],
    gives=DATE,
    duckdb=_next_day,
    edges=[("DATE'2024-02-29'", f"'{day}'") for day in ("Mon", "THURSDAY", "fr", "su")],
)


def _add_units(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    unit_name, count, moment = arguments
    unit = _unit(unit_name.literal, _UNITS)
    if unit in _MONTHS:
        return f"({moment.sql} + to_months(CAST({count.sql} * {_MONTHS[unit]} AS INTEGER)))"
    return f"make_timestamp(epoch_us({moment.sql}) + {count.sql} * {_SPANS[unit]})"


_MOMENT = "TIMESTAMP'2024-01-31 12:34:56.789'"
function(
    "TIMESTAMPADD",
    "DATEADD",
    "DATE_ADD",
    takes=[UNIT, WHOLE, INSTANT],
    gives=TIMESTAMP,
    duckdb=_add_units,
    edges=[(unit, count, _MOMENT) for unit in _UNITS for count in ("1", "-13")],
)

# ---- distances -----------------------------------------------------------------------------------------------------

function("DATEDIFF", "DATE_DIFF", takes=[DAY, DAY], gives=INT, duckdb="({0} - {1})")
#: A month has passed when the day and the time of day are reached again.
macro(
    "pw_months(a, b)",
    """(year(b) - year(a)) * 12 + month(b) - month(a)
    + CASE WHEN b >= a AND (day(b), b - date_trunc('day', b)) < (day(a), a - date_trunc('day', a)) THEN -1
    WHEN b < a AND (day(b), b - date_trunc('day', b)) > (day(a), a - date_trunc('day', a)) THEN 1 ELSE 0 END""",
)


def _units_between(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    unit_name, begin, end = arguments
    unit = _unit(unit_name.literal, _UNITS)
    if unit in _MONTHS:
        return f"(pw_months({begin.sql}, {end.sql}) // {_MONTHS[unit]})"
    return f"((epoch_us({end.sql}) - epoch_us({begin.sql})) // {_SPANS[unit]})"


_ENDS = (
    ("TIMESTAMP'2024-01-31 10:00:00'", "TIMESTAMP'2024-02-29 09:00:00'"),
    ("TIMESTAMP'2024-02-29 09:00:00.5'", "TIMESTAMP'2023-01-31 10:00:00'"),
    ("TIMESTAMP'1970-01-01 00:59:59'", "TIMESTAMP'2024-01-01 00:00:00'"),
    ("DATE'2024-01-31'", "DATE'2024-03-31'"),
)
function(
    "TIMESTAMPDIFF",
    "DATEDIFF",
    "DATE_DIFF",
    takes=[UNIT, INSTANT, INSTANT],
    gives=BIGINT,
    duckdb=_units_between,
    edges=[(unit, *ends) for unit in _UNITS for ends in _ENDS],
)
macro("pw_clock(x)", "(epoch_us(x) - epoch_us(date_trunc('day', x))) // 1000000")
macro(
    "pw_months_between(a, b)",
    """CASE WHEN day(a) = day(b) OR (last_day(a) = CAST(a AS DATE) AND last_day(b) = CAST(b AS DATE))
    THEN (year(a) - year(b)) * 12 + month(a) - month(b)
    ELSE (year(a) - year(b)) * 12 + month(a) - month(b)
    + ((day(a) - day(b)) * 86400 + pw_clock(a) - pw_clock(b)) / CAST(2678400 AS DOUBLE) END""",
)
function(
    "MONTHS_BETWEEN",
    takes=[INSTANT, INSTANT],
    gives=DOUBLE,
    duckdb="floor(pw_months_between({0}, {1}) * 1e8 + 0.5) / 1e8",
    ulps=1,
    made_up=False,
    edges=[*_ENDS, ("?", "TIMESTAMP'2024-01-31 10:00:00'")],
)

# ---- seconds since 1970 --------------------------------------------------------------------------------------------

macro("pw_whole(x, n)", "(x - ((x % n) + n) % n) // n")
_UNIX: dict[str, Callable[[int], str]] = {
    "UNIX_SECONDS": lambda us: f"pw_whole(epoch_us({{0}}), {us})",
    "UNIX_MILLIS": lambda us: f"pw_whole(epoch_us({{0}}), {us // 1000})",
    "UNIX_MICROS": lambda us: "epoch_us({0})",
}
for _name, _text in _UNIX.items():
    function(_name, takes=[MOMENT], gives=BIGINT, duckdb=_text(_SECOND))
#: This function truncates fractions, also before 1970.
function("UNIX_TIMESTAMP", "TO_UNIX_TIMESTAMP", takes=[INSTANT], gives=BIGINT, duckdb=f"epoch_us({{0}}) // {_SECOND}")
function("UNIX_DATE", takes=[DATE_ONLY], gives=INT, duckdb="({0} - DATE '1970-01-01')")
_NUMBERS = [("0",), ("-1",), ("1709210096",), ("NULL",)]
for _name, _factor in {"TIMESTAMP_SECONDS": _SECOND, "TIMESTAMP_MILLIS": 1000, "TIMESTAMP_MICROS": 1}.items():
    _made = f"make_timestamp({{0}} * {_factor})"
    function(_name, takes=[LONG], gives=TIMESTAMP, duckdb=_made, made_up=False, edges=_NUMBERS)
function(
    "DATE_FROM_UNIX_DATE",
    takes=[COUNT],
    gives=DATE,
    duckdb="(DATE '1970-01-01' + {0})",
    made_up=False,
    edges=[("0",), ("-1",), ("20000",), ("NULL",)],
)
function(
    "MAKE_DATE",
    takes=[WHOLE, WHOLE, WHOLE],
    gives=DATE,
    duckdb="make_date({0}, {1}, {2})",
    made_up=False,
    edges=[("2024", "2", "29"), ("2023", "2", "29"), ("2023", "13", "1"), ("1", "1", "1"), ("NULL", "1", "1")],
)
