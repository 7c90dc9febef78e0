"""LIKE and regular expressions."""

from __future__ import annotations

from sqlglot import exp

from panewise.lang.data_types import BOOLEAN
from panewise.lang.functions.catalogue import function, node
from panewise.lang.functions.kinds import TEXT

function("LIKE", takes=[TEXT, TEXT], gives=BOOLEAN, duckdb="({0} LIKE {1} ESCAPE '\\')", form="({0} LIKE {1})")
function("ILIKE", takes=[TEXT, TEXT], gives=BOOLEAN, duckdb="({0} ILIKE {1} ESCAPE '\\')", form="({0} ILIKE {1})")
node(exp.Like, "LIKE")
node(exp.ILike, "ILIKE")
