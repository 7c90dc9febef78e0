"""Functions of text. Characters are Unicode code points."""

from __future__ import annotations

from sqlglot import exp

from panewise.lang.data_types import INT, STRING
from panewise.lang.functions.catalogue import NODES, function, macro, node
from panewise.lang.functions.kinds import BYTES, TEXT, WHOLE

function("UPPER", "UCASE", takes=[TEXT], gives=STRING, duckdb="upper({0})")
function("LOWER", "LCASE", takes=[TEXT], gives=STRING, duckdb="lower({0})")
function("LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "LEN", takes=[BYTES], gives=INT, duckdb="octet_length({0})")
function("LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "LEN", takes=[TEXT], gives=INT, duckdb="length({0})")
function("OCTET_LENGTH", takes=[BYTES], gives=INT, duckdb="octet_length({0})")
function("OCTET_LENGTH", takes=[TEXT], gives=INT, duckdb="octet_length(encode({0}))")
function("BIT_LENGTH", takes=[TEXT], gives=INT, duckdb="octet_length(encode({0})) * 8")
function("||", takes=[TEXT, TEXT], gives=STRING, duckdb="({0} || {1})", form="({0} || {1})")
function("CONCAT", takes=[TEXT], rest=True, gives=STRING, duckdb=lambda args, kind: " || ".join(a.sql for a in args))
node(exp.DPipe, "||")

#: Places count from one, from the end where they are negative; one before the text begins takes part of the length.
macro(
    "pw_substring(s, p, n)",
    """substring(s, greatest(CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(s) + p ELSE 0 END, 0) + 1,
    greatest(CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(s) + p ELSE 0 END + n
    - greatest(CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(s) + p ELSE 0 END, 0), 0))""",
)
_PART = "pw_substring({0}, CAST({1} AS BIGINT), CAST({2} AS BIGINT))"
function("SUBSTRING", "SUBSTR", takes=[TEXT, WHOLE, WHOLE], gives=STRING, duckdb=_PART)
function("SUBSTRING", "SUBSTR", takes=[TEXT, WHOLE], gives=STRING, duckdb=_PART.replace("{2}", "2147483647"))
node(exp.Substring, "SUBSTRING", "this", "start", "length")
function("LEFT", takes=[TEXT, WHOLE], gives=STRING, duckdb="left({0}, greatest({1}, 0))")
function("RIGHT", takes=[TEXT, WHOLE], gives=STRING, duckdb="right({0}, greatest({1}, 0))")

for _name, _side in {"TRIM": "BOTH", "LTRIM": "LEADING", "RTRIM": "TRAILING"}.items():
    function(_name, takes=[TEXT], gives=STRING, duckdb=f"{_name.lower()}({{0}}, ' ')")
    _form = f"TRIM({_side} {{1}} FROM {{0}})"
    function(_name, takes=[TEXT, TEXT], gives=STRING, duckdb=f"{_name.lower()}({{0}}, {{1}})", form=_form)
_TRIMS = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}
NODES[exp.Trim] = lambda found: (
    _TRIMS.get(found.text("position").upper(), "TRIM"),
    [found.args[part] for part in ("this", "expression") if found.args.get(part) is not None],
)
function("REVERSE", takes=[TEXT], gives=STRING, duckdb="array_to_string(list_reverse(string_split({0}, '')), '')")
function("REPLACE", takes=[TEXT, TEXT, TEXT], gives=STRING, duckdb="replace({0}, {1}, {2})")
function("LOCATE", "POSITION", takes=[TEXT, TEXT], gives=INT, duckdb="strpos({1}, {0})")
function("INSTR", takes=[TEXT, TEXT], gives=INT, duckdb="strpos({0}, {1})")
node(exp.StrPosition, "LOCATE", "substr", "this", "position")
function("REPEAT", takes=[TEXT, WHOLE], gives=STRING, duckdb="repeat({0}, greatest({1}, 0))")
