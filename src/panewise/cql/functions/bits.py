"""Bits of whole numbers, and numbers in other bases."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from panewise.cql.data_types import BIGINT, BINARY, INT, STRING, TINYINT
from panewise.cql.functions.catalogue import Translation, TypedSql, error_call, function, macro, node, same_type
from panewise.cql.functions.kinds import BYTES, CONDITION, LONG, TEXT_ONLY, WHOLE, WHOLES, ArgumentKind

function("BIT_COUNT", takes=[CONDITION], gives=INT, duckdb="CAST({0} AS INTEGER)")
function("BIT_COUNT", takes=[WHOLES], gives=INT, duckdb="bit_count(CAST({0} AS BIGINT))")


def _bit(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    value, place = arguments
    bad = error_call(f"{value.text} has no bit {place.text}", "number its bits from 0")
    inside = f"{place.sql} BETWEEN 0 AND {value.type.bit_width - 1}"
    bit = f"(pw_floor_quotient({value.sql}, {place.sql}) & CAST(1 AS HUGEINT))"
    return (
        f"CASE WHEN {value.sql} IS NULL THEN NULL WHEN {inside} THEN {bit} WHEN {place.sql} IS NOT NULL THEN {bad} END"
    )


macro("pw_power_of_two(n)", "(CAST(1 AS HUGEINT) << CAST(n AS HUGEINT))")
macro(
    "pw_floor_quotient(x, n)",
    """((CAST(x AS HUGEINT) - ((CAST(x AS HUGEINT) % pw_power_of_two(n)) + pw_power_of_two(n)) % pw_power_of_two(n))
    // pw_power_of_two(n))""",
)
function("BIT_GET", "GETBIT", takes=[WHOLES, WHOLE], gives=TINYINT, duckdb=_bit)

#: A number of which only the lower bits are kept; the first of them is its sign.
macro(
    "pw_wrapped(x, bits)",
    """((x + pw_power_of_two(bits - 1)) % pw_power_of_two(bits) + pw_power_of_two(bits)) % pw_power_of_two(bits)
    - pw_power_of_two(bits - 1)""",
)
_SHIFTABLE = ArgumentKind("a whole number", lambda k: k if k == BIGINT else WHOLE.fit(k), (INT, BIGINT))
_PLACES = ArgumentKind("a whole number", lambda k: INT if k != BIGINT and WHOLE.fit(k) else None, (INT,))


def _shift(text: str) -> Translation:
    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        value, places = arguments
        bits = kind.bit_width
        return text.format(value.sql, f"(CAST({places.sql} AS BIGINT) & {bits - 1})", bits)

    return translate


_LEFT = _shift("pw_wrapped(CAST({0} AS HUGEINT) * pw_power_of_two({1}), {2})")
_RIGHT = _shift("pw_floor_quotient({0}, {1})")
_UNSIGNED = _shift(
    "pw_wrapped(pw_floor_quotient(CASE WHEN {0} < 0 THEN pw_power_of_two({2}) + {0} ELSE {0} END, {1}), {2})"
)
for _symbol, _name, _translation in (
    ("<<", "SHIFTLEFT", _LEFT),
    (">>", "SHIFTRIGHT", _RIGHT),
    (">>>", "SHIFTRIGHTUNSIGNED", _UNSIGNED),
):
    function(_name, _symbol, takes=[_SHIFTABLE, _PLACES], gives=same_type(), duckdb=_translation)
node(exp.BitwiseLeftShift, "<<")
node(exp.BitwiseRightShift, ">>")

function("BIN", takes=[LONG], gives=STRING, duckdb="bin({0})")
function("HEX", takes=[LONG], gives=STRING, duckdb="hex({0})")
function("HEX", takes=[TEXT_ONLY], gives=STRING, duckdb="hex(encode({0}))")
function("HEX", takes=[BYTES], gives=STRING, duckdb="hex({0})")
function(
    "UNHEX",
    takes=[TEXT_ONLY],
    gives=BINARY,
    duckdb="CASE WHEN regexp_full_match({0}, '[0-9a-fA-F]*') THEN unhex(repeat('0', length({0}) % 2) || {0}) END",
    edges=[("'1F'",), ("'abc'",), ("'xyz'",)],
)
