"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from panewise.lang.coercion import bounded
from panewise.lang.data_types import BIGINT, DOUBLE, INTEGERS
from panewise.lang.functions.casts import cast
from panewise.lang.functions.catalogue import Translation, Typed, function, same
from panewise.lang.functions.kinds import NUMBER, REAL, SIGNED

function("ABS", takes=[SIGNED], gives=same(), duckdb="abs({0})")
function(
    "SQRT", takes=[REAL], gives=DOUBLE, duckdb="CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt({0}) END", ulps=1
)


def _whole(arguments: Sequence[Typed]) -> pa.DataType:
    kind = arguments[0].type
    return bounded(kind.precision - kind.scale + 1, 0) if pa.types.is_decimal(kind) else BIGINT


def _rounded(name: str) -> Translation:
    def translated(arguments: Sequence[Typed], kind: pa.DataType) -> str:
        (a,) = arguments
        if a.type in INTEGERS:
            return a.sql
        rounded = f"{name}({a.sql})"
        return rounded if pa.types.is_decimal(kind) else cast(Typed(rounded, DOUBLE, text=a.text), BIGINT)

    return translated


function("FLOOR", takes=[NUMBER], gives=_whole, duckdb=_rounded("floor"))
function("CEIL", "CEILING", takes=[NUMBER], gives=_whole, duckdb=_rounded("ceil"))
