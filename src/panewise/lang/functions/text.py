"""Functions of text. Characters are Unicode code points."""

from __future__ import annotations

from sqlglot import exp

from panewise.lang.data_types import INT, STRING
from panewise.lang.functions.catalogue import function, node
from panewise.lang.functions.kinds import TEXT

function("UPPER", "UCASE", takes=[TEXT], gives=STRING, duckdb="upper({0})")
function("LOWER", "LCASE", takes=[TEXT], gives=STRING, duckdb="lower({0})")
function("LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "LEN", takes=[TEXT], gives=INT, duckdb="length({0})")
function("||", takes=[TEXT, TEXT], gives=STRING, duckdb="({0} || {1})", form="({0} || {1})")
function(
    "CONCAT", takes=[TEXT], rest=True, gives=STRING, duckdb=lambda args, kind: f"({' || '.join(a.sql for a in args)})"
)
node(exp.DPipe, "||")
