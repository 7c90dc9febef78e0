"""Arrays, maps and structs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from panewise.lang.data_types import INT
from panewise.lang.functions.catalogue import NODES, Typed, fails, function
from panewise.lang.functions.kinds import ALIKE, ARRAY, WHOLE


def _element(arguments: Sequence[Typed], kind: pa.DataType) -> str:
    """An element by its number from zero; there must be one."""
    array, place = arguments
    bad = fails(f"{array.text}[{place.text}] is beyond the array", "use GET, which gives NULL")
    return (
        f"CASE WHEN {place.sql} < 0 OR {place.sql} >= len({array.sql}) THEN {bad} ELSE {array.sql}[{place.sql} + 1] END"
    )


function(
    "ARRAY",
    takes=[ALIKE],
    least=0,
    rest=True,
    gives=lambda args: pa.list_(args[0].type if args else INT),
    duckdb=lambda args, kind: f"[{', '.join(a.sql for a in args)}]",
)
function("[]", takes=[ARRAY, WHOLE], gives=lambda args: args[0].type.value_type, duckdb=_element, form="{0}[{1}]")
function(
    "GET",
    takes=[ARRAY, WHOLE],
    gives=lambda args: args[0].type.value_type,
    duckdb="CASE WHEN {1} >= 0 THEN {0}[{1} + 1] END",
)
NODES[exp.Bracket] = lambda found: ("[]", [found.this, *found.expressions])
