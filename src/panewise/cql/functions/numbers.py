"""Functions of numbers. Where a function is undefined, logarithms give NULL and the others NaN."""

from __future__ import annotations

from panewise.cql.coercion import wider_type
from panewise.cql.data_types import BIGINT, DOUBLE, INT
from panewise.cql.functions.casts import cast
from panewise.cql.functions.catalogue import function, macro, same_type
from panewise.cql.functions.kinds import LONG, NUMBER, REAL, SIGNED, WHOLE

#: How far transcendental functions may be from Java's, in units of the last place.
_NEAR = 2

function("ABS", takes=[SIGNED], gives=same_type(), duckdb="abs({0})")
macro(
    "pw_sign(x)",
    "CASE WHEN isnan(x) OR x = 0 THEN x WHEN x > 0 THEN CAST(1 AS DOUBLE) WHEN x < 0 THEN CAST(-1 AS DOUBLE) END",
)
function("SIGN", "SIGNUM", takes=[REAL], gives=DOUBLE, duckdb="pw_sign({0})")
function("PI", gives=DOUBLE, duckdb="pi()")
function("E", gives=DOUBLE, duckdb="CAST(2.718281828459045e0 AS DOUBLE)")

function("EXP", takes=[REAL], gives=DOUBLE, duckdb="exp({0})", ulps=_NEAR)
macro("pw_expm1(x)", "CASE WHEN abs(x) < 1 THEN 2 * exp(x / 2) * sinh(x / 2) ELSE exp(x) - 1 END")
function("EXPM1", takes=[REAL], gives=DOUBLE, duckdb="pw_expm1({0})", ulps=4)
macro("pw_ln(x)", "CASE WHEN x > 0 THEN ln(x) END")
function("LN", takes=[REAL], gives=DOUBLE, duckdb="pw_ln({0})", ulps=_NEAR)
function("LOG", takes=[REAL], gives=DOUBLE, duckdb="pw_ln({0})", ulps=_NEAR)
macro("pw_log(b, x)", "CASE WHEN b = 1 AND x = 1 THEN CAST('NaN' AS DOUBLE) ELSE pw_ln(x) / pw_ln(b) END")
function("LOG", takes=[REAL, REAL], gives=DOUBLE, duckdb="pw_log({0}, {1})", ulps=_NEAR)
function("LOG2", takes=[REAL], gives=DOUBLE, duckdb="CASE WHEN {0} > 0 THEN log2({0}) END", ulps=_NEAR)
function("LOG10", takes=[REAL], gives=DOUBLE, duckdb="CASE WHEN {0} > 0 THEN log10({0}) END", ulps=_NEAR)
#: 1 + x loses digits of x, but the same ones twice.
macro(
    "pw_log1p(x)",
    "CASE WHEN x <= -1 THEN NULL WHEN 1 + x = 1 OR isinf(x) THEN x ELSE ln(1 + x) * (x / ((1 + x) - 1)) END",
)
function("LOG1P", takes=[REAL], gives=DOUBLE, duckdb="pw_log1p({0})", ulps=4)

function("SQRT", takes=[REAL], gives=DOUBLE, duckdb="CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt({0}) END")
function("CBRT", takes=[REAL], gives=DOUBLE, duckdb="cbrt({0})", ulps=_NEAR)
#: In C 1 to any power is 1; in Java 1 to an infinite power is NaN.
macro(
    "pw_power(x, y)",
    """CASE WHEN x IS NULL OR y IS NULL THEN NULL
    WHEN isnan(y) OR (isnan(x) AND y <> 0) OR (abs(x) = 1 AND isinf(y)) THEN CAST('NaN' AS DOUBLE)
    ELSE pow(x, y) END""",
)
function("POW", "POWER", takes=[REAL, REAL], gives=DOUBLE, duckdb="pw_power({0}, {1})", ulps=_NEAR)
macro(
    "pw_hypotenuse(x, y)",
    """CASE WHEN isinf(x) OR isinf(y) THEN CAST('Infinity' AS DOUBLE)
    WHEN isnan(x) OR isnan(y) THEN CAST('NaN' AS DOUBLE) WHEN x = 0 AND y = 0 THEN CAST(0 AS DOUBLE)
    ELSE greatest(abs(x), abs(y)) * sqrt(1 + pow(least(abs(x), abs(y)) / greatest(abs(x), abs(y)), 2)) END""",
)
function(
    "HYPOT",
    takes=[REAL, REAL],
    gives=DOUBLE,
    duckdb="CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN pw_hypotenuse({0}, {1}) END",
    ulps=_NEAR,
)

for _name in ("SIN", "COS", "TAN", "ATAN", "SINH", "COSH", "TANH", "DEGREES", "RADIANS"):
    function(_name, takes=[REAL], gives=DOUBLE, duckdb=f"{_name.lower()}({{0}})", ulps=_NEAR)
for _name in ("ASIN", "ACOS"):
    _inside = f"CASE WHEN abs({{0}}) > 1 THEN CAST('NaN' AS DOUBLE) ELSE {_name.lower()}({{0}}) END"
    function(_name, takes=[REAL], gives=DOUBLE, duckdb=_inside, ulps=_NEAR)
for _name, _other in {"COT": "tan", "SEC": "cos", "CSC": "sin"}.items():
    function(_name, takes=[REAL], gives=DOUBLE, duckdb=f"1 / {_other}({{0}})", ulps=_NEAR)
#: The sign of a zero is ignored.
macro("pw_atan2(y, x)", "atan2(CASE WHEN y = 0 THEN 0 ELSE y END, CASE WHEN x = 0 THEN 0 ELSE x END)")
function("ATAN2", takes=[REAL, REAL], gives=DOUBLE, duckdb="pw_atan2({0}, {1})", ulps=_NEAR)

for _name, _outside in {"ASINH": "FALSE", "ACOSH": "{0} < 1", "ATANH": "abs({0}) > 1"}.items():
    _inside = f"CASE WHEN {_outside} THEN CAST('NaN' AS DOUBLE) ELSE {_name.lower()}({{0}}) END"
    function(_name, takes=[REAL], gives=DOUBLE, duckdb=_inside, ulps=4)

function("FACTORIAL", takes=[WHOLE], gives=BIGINT, duckdb="CASE WHEN {0} BETWEEN 0 AND 20 THEN factorial({0}) END")
macro(
    "pw_bucket(v, a, b, n)",
    """CASE WHEN n IS NULL OR n <= 0 OR n = 9223372036854775807 OR isnan(v) OR a = b OR NOT isfinite(a)
    OR NOT isfinite(b) THEN NULL WHEN (a < b AND v < a) OR (a > b AND v > a) THEN 0
    WHEN (a < b AND v >= b) OR (a > b AND v <= b) THEN n + 1
    ELSE CAST(trunc(CAST(n AS DOUBLE) * (v - a) / (b - a)) AS BIGINT) + 1 END""",
)
function("WIDTH_BUCKET", takes=[REAL] * 3 + [LONG], gives=BIGINT, duckdb="pw_bucket({0}, {1}, {2}, {3})", stricter=True)
function(
    "ZEROIFNULL",
    takes=[NUMBER],
    gives=lambda args: wider_type(args[0].type, INT),
    duckdb=lambda args, kind: f"coalesce({cast(args[0], kind)}, 0)",
)
function("NULLIFZERO", takes=[NUMBER], gives=same_type(), duckdb="CASE WHEN {0} <> 0 THEN {0} END")
