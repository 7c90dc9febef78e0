"""Values as text and text as values, in the spelling of Java and Spark, as DuckDB SQL."""

from __future__ import annotations

import pyarrow as pa

from panewise.cql.data_types import INTEGERS, TIMESTAMP, duckdb_type, is_fraction
from panewise.cql.functions.catalogue import macro

#: The characters that Spark trims before it reads a value: blanks and control characters.
_BLANKS = "[\\x00-\\x20\\x7f]*"
_WHOLE = "[+-]?[0-9]+"
_POINT = "[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"
_FRACTION = f"{_POINT}[dDfF]?"
_SPECIAL = "[+-]?(inf|infinity)|nan"
_YEAR_MONTH_DAY = "([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_CLOCK = "(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\\.([0-9]*))?)?)?)?"
_ZONE = "(?:Z|UTC|GMT|([+-])([0-9]{1,2})(?::?([0-9]{2}))?)?"


def float_text(sql: str) -> str:
    """A FLOAT as Java shows it. DuckDB shows more digits of large ones than they need, so their digits are counted."""
    tries = [f"format('{{:.{digits}e}}', CAST({sql} AS DOUBLE))" for digits in (6, 7, 8)]
    fits = [f"WHEN CAST({text} AS FLOAT) = {sql} THEN {text}" for text in tries]
    return double_text(sql, f"CASE WHEN abs({sql}) < 1 THEN CAST({sql} AS VARCHAR) {' '.join(fits)} END")


def double_text(sql: str, digits: str = "") -> str:
    """A DOUBLE as Java shows it: 1.5E10, 0.001, NaN, -Infinity.

    DuckDB also gives the shortest digits of the number; only the place of the point differs.
    """
    shown = f"CAST({sql} AS VARCHAR)"
    size = f"abs({sql})"
    return (
        f"CASE WHEN isnan({sql}) THEN 'NaN' WHEN isinf({sql}) THEN CASE WHEN {sql} > 0 THEN 'Infinity' "
        f"ELSE '-Infinity' END WHEN {sql} = 0 OR ({size} >= 0.001 AND {size} < 10000000) THEN {shown} "
        f"ELSE pw_scientific({digits or shown}) END"
    )


def number_of_text(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    """The number that a text contains; whole numbers have no point and no exponent."""
    trimmed = f"regexp_replace({sql}, '^{_BLANKS}|{_BLANKS}$', '', 'g')"
    name = f"{'TRY_' if lenient else ''}CAST"
    if is_fraction(to):
        read = (
            f"CASE WHEN regexp_full_match({trimmed}, '{_FRACTION}') "
            f"THEN {name}(rtrim({trimmed}, 'dDfF') AS {duckdb_type(to)}) "
            f"WHEN regexp_full_match(lower({trimmed}), '{_SPECIAL}') THEN CAST(lower({trimmed}) AS {duckdb_type(to)}) "
        )
    else:
        form, large = _WHOLE, "FALSE"
        if to not in INTEGERS:
            # DuckDB reads digits with an exponent into decimals that are too small for them.
            form = _POINT
            large = (
                f"CASE WHEN contains(lower({trimmed}), 'e') THEN abs(TRY_CAST({trimmed} AS DOUBLE)) >= "
                f"1e{to.precision - to.scale} ELSE TRY_CAST({trimmed} AS {duckdb_type(to)}) IS NULL END"
            )
        digits = f"CASE WHEN {large} THEN {otherwise} ELSE {name}({trimmed} AS {duckdb_type(to)}) END"
        read = f"CASE WHEN regexp_full_match({trimmed}, '{form}') THEN {digits} "
    return f"{read}WHEN {sql} IS NOT NULL THEN {otherwise} END"


def date_of_text(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    """A date: a year, a month and a day, of which the last parts may be missing; text after a T or a blank is
    ignored."""
    parts = f"regexp_extract({sql}, '^{_BLANKS}{_YEAR_MONTH_DAY}(?:[ T].*)?)?)?{_BLANKS}$', ['y', 'm', 'd'])"
    return f"pw_date({sql}, {parts}, {otherwise})"


def moment_of_text(sql: str, given: pa.DataType, to: pa.DataType, lenient: bool, otherwise: str) -> str:
    """A timestamp: a date, a time of which the last parts may be missing, and an offset; without an offset in UTC.

    A timestamp without a zone is local time in an unknown place.
    """
    names = "['y', 'm', 'd', 'h', 'n', 's', 'f', 'sign', 'zh', 'zm']"
    parts = f"regexp_extract({sql}, '^{_BLANKS}{_YEAR_MONTH_DAY}{_CLOCK}[ ]?{_ZONE})?)?{_BLANKS}$', {names})"
    zoned = "TRUE" if to == TIMESTAMP else "FALSE"
    return f"pw_moment({sql}, {parts}, {zoned}, {otherwise})"


macro(
    "pw_scientific(s)",
    """CASE
    WHEN contains(s, 'e') THEN regexp_replace(split_part(s, 'e', 1), '\\.?0*$', '')
        || CASE WHEN regexp_matches(split_part(s, 'e', 1), '\\.[0-9]*[1-9]') THEN '' ELSE '.0' END
        || 'E' || CAST(CAST(split_part(s, 'e', 2) AS INTEGER) AS VARCHAR)
    WHEN regexp_matches(s, '^-?0') THEN regexp_replace(
        regexp_replace(s, '^(-?)0\\.0*([1-9])([0-9]*)$', '\\1\\2.\\3E-4'), '\\.E', '.0E')
    ELSE regexp_extract(s, '^-?[0-9]') || '.'
        || coalesce(nullif(rtrim(replace(regexp_replace(s, '^-?[0-9]', ''), '.', ''), '0'), ''), '0')
        || 'E' || CAST(strpos(ltrim(s, '-'), '.') - 2 AS VARCHAR)
    END""",
)
macro(
    "pw_date(s, p, bad)",
    """CASE WHEN s IS NULL THEN NULL ELSE coalesce(TRY_CAST(
        p.y || '-' || coalesce(nullif(p.m, ''), '1') || '-' || coalesce(nullif(p.d, ''), '1') AS DATE), bad) END""",
)
macro(
    "pw_moment(s, p, zoned, bad)",
    """CASE WHEN s IS NULL THEN NULL ELSE coalesce(make_timestamp(epoch_us(TRY_CAST(
        p.y || '-' || coalesce(nullif(p.m, ''), '1') || '-' || coalesce(nullif(p.d, ''), '1') || ' '
        || coalesce(nullif(p.h, ''), '0') || ':' || coalesce(nullif(p.n, ''), '0') || ':'
        || coalesce(nullif(p.s, ''), '0') || '.' || coalesce(nullif(left(p.f, 6), ''), '0') AS TIMESTAMP))
        - CASE WHEN NOT zoned THEN 0 ELSE CASE p.sign WHEN '' THEN 0 WHEN '-' THEN -1 ELSE 1 END END * 60000000
        * (60 * coalesce(TRY_CAST(p.zh AS BIGINT), 0) + coalesce(TRY_CAST(p.zm AS BIGINT), 0))), bad) END""",
)
