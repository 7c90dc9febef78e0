"""Functions of text. Characters are Unicode code points, and places in a text count from one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from panewise.cql.data_types import BOOLEAN, INT, STRING
from panewise.cql.functions.catalogue import NODES, TypedSql, error_call, function, macro, node, suggest_instead
from panewise.cql.functions.kinds import BYTES, LONG, TEXT, WHOLE

#: Letters that become several letters in upper case; DuckDB does not change them.
_WIDE = "ßŉǰΐΰևẖẗẘẙẚὐὒὔὖᾀᾁᾂᾃᾄᾅᾆᾇᾈᾉᾊᾋᾌᾍᾎᾏᾐᾑᾒᾓᾔᾕᾖᾗᾘᾙᾚᾛᾜᾝᾞᾟᾠᾡᾢᾣᾤᾥᾦᾧᾨᾩᾪᾫᾬᾭᾮᾯᾲᾳᾴᾶᾷᾼῂῃῄῆῇῌῒΐῖῗῢΰῤῦῧῲῳῴῶῷῼﬀﬁﬂﬃﬄﬅﬆﬓﬔﬕﬖﬗ"


def _expand_letters(text: str) -> str:
    for letter in _WIDE:
        text = f"replace({text}, '{letter}', '{letter.upper()}')"
    return text


macro("pw_upper(s)", f"CASE WHEN regexp_matches(s, '[{_WIDE}]') THEN upper({_expand_letters('s')}) ELSE upper(s) END")
#: A capital sigma at the end of a word has its own small letter, and one letter becomes two.
macro(
    "pw_lower(s)",
    r"""CASE WHEN regexp_matches(s, '[Σİ]')
    THEN lower(regexp_replace(replace(s, 'İ', 'i̇'), '(\pL)Σ(\PL|$)', '\1ς\2', 'g')) ELSE lower(s) END""",
)
#: The title case of a letter is not always its upper case: some characters are two letters in one.
_TITLES = " ".join(f"WHEN '{letter}' THEN '{letter.title()}'" for letter in f"{_WIDE}ǆǉǌǳ")
macro("pw_title(c)", f"CASE c {_TITLES} ELSE upper(c) END")
_CASES = [("'ŉ ﬁ ß İ ΑΣ Σ ΣΑ'",)]
function("UPPER", "UCASE", takes=[TEXT], gives=STRING, duckdb="pw_upper({0})", edges=_CASES, safe=True)
function("LOWER", "LCASE", takes=[TEXT], gives=STRING, duckdb="pw_lower({0})", edges=_CASES, safe=True)
function(
    "INITCAP",
    takes=[TEXT],
    gives=STRING,
    duckdb="""array_to_string(list_transform(string_split(pw_lower({0}), ' '),
    lambda word: pw_title(left(word, 1)) || substring(word, 2)), ' ')""",
    edges=[("'hello wORLD it''s ß-a ŉx 1a ǆa'",)],
)
function("LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "LEN", takes=[BYTES], gives=INT, duckdb="octet_length({0})")
function("LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "LEN", takes=[TEXT], gives=INT, duckdb="length({0})")
function("OCTET_LENGTH", takes=[BYTES], gives=INT, duckdb="octet_length({0})")
function("OCTET_LENGTH", takes=[TEXT], gives=INT, duckdb="octet_length(encode({0}))")
function("BIT_LENGTH", takes=[BYTES], gives=INT, duckdb="octet_length({0}) * 8")
function("BIT_LENGTH", takes=[TEXT], gives=INT, duckdb="octet_length(encode({0})) * 8")
function("||", takes=[TEXT, TEXT], gives=STRING, duckdb="({0} || {1})", form="({0} || {1})")
function("CONCAT", takes=[TEXT], rest=True, gives=STRING, duckdb=lambda args, kind: " || ".join(a.sql for a in args))
node(exp.DPipe, "||")


def _concat_with_separator(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    """The texts that are not NULL, with the first one between them."""
    separator, *texts = (a.sql for a in arguments)
    return f"CASE WHEN {separator} IS NOT NULL THEN concat_ws({', '.join([separator, *texts])}) END"


function("CONCAT_WS", takes=[TEXT, TEXT], rest=True, gives=STRING, duckdb=_concat_with_separator)

# ---- parts of a text -----------------------------------------------------------------------------------------------

#: The place before which a part begins; if it is before the start of the text, the length is reduced.
_BEFORE = "CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(s) + p ELSE 0 END"
macro(
    "pw_substring(s, p, n)",
    f"""CASE WHEN s IS NULL OR p IS NULL OR n IS NULL THEN NULL
    ELSE substring(s, greatest({_BEFORE}, 0) + 1, greatest({_BEFORE} + n - greatest({_BEFORE}, 0), 0)) END""",
)
_PART = "pw_substring({0}, CAST({1} AS BIGINT), CAST({2} AS BIGINT))"
_REST = "2147483647"
function("SUBSTRING", "SUBSTR", "MID", takes=[TEXT, WHOLE, WHOLE], gives=STRING, duckdb=_PART)
function("SUBSTRING", "SUBSTR", "MID", takes=[TEXT, WHOLE], gives=STRING, duckdb=_PART.replace("{2}", _REST))
node(exp.Substring, "SUBSTRING", "this", "start", "length")
_COUNT = "CASE WHEN {1} < 0 THEN 0 ELSE {1} END"
for _name in ("LEFT", "RIGHT"):
    _part = f"CASE WHEN {{0}} IS NOT NULL THEN {_name.lower()}({{0}}, {_COUNT}) END"
    function(_name, takes=[TEXT, WHOLE], gives=STRING, duckdb=_part)
_AROUND = (
    "pw_substring({0}, 1, CAST({2} AS BIGINT) - 1) || {1} "
    f"|| pw_substring({{0}}, CAST({{2}} AS BIGINT) + LENGTH, {_REST})"
)
_OVER = [("?", "'xyz'", "2"), ("?", "?", "0"), ("?", "'x'", "-3"), ("?", "NULL", "1")]
function(
    "OVERLAY",
    takes=[TEXT, TEXT, WHOLE],
    gives=STRING,
    duckdb=_AROUND.replace("LENGTH", "length({1})"),
    made_up=False,
    form="OVERLAY({0} PLACING {1} FROM {2})",
    edges=_OVER,
)
function(
    "OVERLAY",
    takes=[TEXT, TEXT, WHOLE, WHOLE],
    gives=STRING,
    duckdb=_AROUND.replace("LENGTH", "CASE WHEN {3} >= 0 THEN {3} ELSE length({1}) END"),
    made_up=False,
    form="OVERLAY({0} PLACING {1} FROM {2} FOR {3})",
    edges=[(*over, length) for over in _OVER for length in ("0", "2", "-1")],
)
node(exp.Overlay, "OVERLAY", "this", "expression", "from_", "for_")

for _name, _side in {"TRIM": "BOTH", "LTRIM": "LEADING", "RTRIM": "TRAILING"}.items():
    function(_name, takes=[TEXT], gives=STRING, duckdb=f"{_name.lower()}({{0}}, ' ')")
    _form = f"TRIM({_side} {{1}} FROM {{0}})"
    function(_name, takes=[TEXT, TEXT], gives=STRING, duckdb=f"{_name.lower()}({{0}}, {{1}})", form=_form)
function("BTRIM", takes=[TEXT], gives=STRING, duckdb="trim({0}, ' ')")
function("BTRIM", takes=[TEXT, TEXT], gives=STRING, duckdb="trim({0}, {1})")
_TRIMS = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}
NODES[exp.Trim] = lambda found: (
    _TRIMS.get(found.text("position").upper(), "TRIM"),
    [found.args[part] for part in ("this", "expression") if found.args.get(part) is not None],
)

macro("pw_joined(parts, between)", "list_reduce(parts, lambda done, part: done || between || part)")
#: The text before the n-th separator, or after the n-th from the end.
function(
    "SUBSTRING_INDEX",
    takes=[TEXT, TEXT, WHOLE],
    gives=STRING,
    duckdb="""CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {2} = 0 OR {1} = '' THEN ''
    WHEN {2} > 0 THEN pw_joined(list_slice(string_split({0}, {1}), 1, {2}), {1})
    ELSE pw_joined(list_slice(string_split({0}, {1}), {2}, -1), {1}) END""",
    edges=[("'a,b,,c'", "','", count) for count in ("1", "2", "-1", "-2", "9", "-9", "0")],
)
_ZEROTH = error_call("SPLIT_PART counts parts from 1", "use another number")
function(
    "SPLIT_PART",
    takes=[TEXT, TEXT, WHOLE],
    gives=STRING,
    duckdb=f"""CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {{2}} IS NULL THEN NULL WHEN {{2}} = 0 THEN {_ZEROTH}
    WHEN {{1}} = '' THEN CASE WHEN abs(CAST({{2}} AS BIGINT)) = 1 THEN {{0}} ELSE '' END
    ELSE split_part({{0}}, {{1}}, {{2}}) END""",
    edges=[("'a,b,,c'", "','", count) for count in ("1", "3", "-1", "9", "-9", "0")],
)

# ---- places, tests -------------------------------------------------------------------------------------------------

function("LOCATE", "POSITION", "CHARINDEX", takes=[TEXT, TEXT], gives=INT, duckdb="strpos({1}, {0})")
function(
    "LOCATE",
    "POSITION",
    "CHARINDEX",
    takes=[TEXT, TEXT, WHOLE],
    gives=INT,
    duckdb="""CASE WHEN {2} IS NULL THEN 0 WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {2} < 1 THEN 0
    WHEN {0} = '' THEN 1 WHEN strpos(substring({1}, {2}), {0}) = 0 THEN 0
    ELSE strpos(substring({1}, {2}), {0}) + CAST({2} AS BIGINT) - 1 END""",
    edges=[(found, "'banana'", place) for found in ("'an'", "''", "'x'") for place in ("1", "3", "6", "7", "8", "0")],
)
function("INSTR", takes=[TEXT, TEXT], gives=INT, duckdb="strpos({0}, {1})")
node(exp.StrPosition, "LOCATE", "substr", "this", "position")
function("STARTSWITH", takes=[TEXT, TEXT], gives=BOOLEAN, duckdb="starts_with({0}, {1})", safe=True)
function("ENDSWITH", takes=[TEXT, TEXT], gives=BOOLEAN, duckdb="ends_with({0}, {1})", safe=True)
function("CONTAINS", takes=[TEXT, TEXT], gives=BOOLEAN, duckdb="contains({0}, {1})", safe=True)
function(
    "FIND_IN_SET",
    takes=[TEXT, TEXT],
    gives=INT,
    duckdb="""CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN contains({0}, ',') THEN 0
    ELSE coalesce(list_position(string_split({1}, ','), {0}), 0) END""",
    edges=[("'b'", "'a,b'"), ("''", "'a,,b'"), ("'a,b'", "'a,b'"), ("''", "''")],
)

# ---- other texts ---------------------------------------------------------------------------------------------------

function("REVERSE", takes=[TEXT], gives=STRING, duckdb="array_to_string(list_reverse(string_split({0}, '')), '')")
function("REPLACE", takes=[TEXT, TEXT, TEXT], gives=STRING, duckdb="replace({0}, {1}, {2})")
function("REPLACE", takes=[TEXT, TEXT], gives=STRING, duckdb="replace({0}, {1}, '')")
function("TRANSLATE", takes=[TEXT, TEXT, TEXT], gives=STRING, duckdb="translate({0}, {1}, {2})")
_TIMES = [("?", "3"), ("?", "0"), ("?", "-1"), ("?", "NULL")]
function("REPEAT", takes=[TEXT, WHOLE], gives=STRING, duckdb=f"repeat({{0}}, {_COUNT})", made_up=False, edges=_TIMES)
function(
    "SPACE",
    takes=[WHOLE],
    gives=STRING,
    duckdb="repeat(' ', CASE WHEN {0} < 0 THEN 0 ELSE {0} END)",
    made_up=False,
    edges=[("3",), ("0",), ("-1",), ("NULL",)],
)
for _name in ("LPAD", "RPAD"):
    _padded = f"""CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR PAD IS NULL THEN NULL WHEN {{1}} <= 0 THEN ''
    WHEN PAD = '' THEN left({{0}}, {{1}}) ELSE {_name.lower()}({{0}}, {{1}}, PAD) END"""
    _lengths = [("?", "5"), ("?", "0"), ("?", "-2"), ("?", "NULL"), ("?", "12")]
    function(
        _name,
        takes=[TEXT, WHOLE],
        gives=STRING,
        duckdb=_padded.replace("PAD", "' '"),
        made_up=False,
        edges=_lengths,
    )
    function(
        _name,
        takes=[TEXT, WHOLE, TEXT],
        gives=STRING,
        duckdb=_padded.replace("PAD", "{2}"),
        made_up=False,
        edges=[(*given, pad) for given in _lengths for pad in ("'xy'", "'日本'", "?")],
    )
function("ASCII", takes=[TEXT], gives=INT, duckdb="ascii({0})")
function(
    "CHAR",
    "CHR",
    takes=[LONG],
    gives=STRING,
    duckdb="CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} % 256 AS INTEGER)) END",
)


def _pick_text(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    """One of several texts, by its number."""
    number, *texts = (a.sql for a in arguments)
    branches = " ".join(f"WHEN {place} THEN {text}" for place, text in enumerate(texts, start=1))
    bad = error_call(f"ELT has {len(texts)} texts and is asked for another one", "check the number")
    return f"CASE {number} {branches} ELSE CASE WHEN {number} IS NOT NULL THEN {bad} END END"


function(
    "ELT", takes=[WHOLE, TEXT], rest=True, gives=STRING, duckdb=_pick_text, edges=[("2", "'a'", "?"), ("1", "'a'")]
)
suggest_instead("compute it before the rows come here", "SOUNDEX", "LEVENSHTEIN")
