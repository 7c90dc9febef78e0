"""LIKE and regular expressions. A regular expression is a literal, so that it can be translated before any row is
read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from panewise.core.errors import BindProblem
from panewise.cql.data_types import BOOLEAN, INT, STRING, duckdb_text
from panewise.cql.functions.catalogue import NODES, Gives, Translation, TypedSql, error_call, function, suggest_instead
from panewise.cql.functions.kinds import CONSTANT, CONSTANT_WHOLE, TEXT
from panewise.cql.regex import Regex, replacement

# ---- LIKE ----------------------------------------------------------------------------------------------------------


def _like(operator: str) -> Translation:
    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        text, pattern, *given = arguments
        escape = str(given[0].literal) if given else "\\"
        if len(escape) != 1:
            raise BindProblem(f"ESCAPE takes one character, not {escape!r}", fix="write ESCAPE '!'")
        compared = f"({text.sql} {operator} {pattern.sql} ESCAPE {duckdb_text(escape)})"
        character = re.escape(escape)
        sound = f"^(?s:[^{character}]|{character}[%_{character}])*$"
        if pattern.literal is None:
            bad = error_call(f"{escape} in a pattern of {operator} stands before a letter", f"write {escape}{escape}")
            return f"CASE WHEN regexp_matches({pattern.sql}, {duckdb_text(sound)}) THEN {compared} " + (
                f"WHEN {pattern.sql} IS NOT NULL THEN {bad} END"
            )
        if not re.fullmatch(sound, str(pattern.literal)):
            raise BindProblem(f"{escape} in {pattern.text} stands before a letter", fix=f"write {escape}{escape}")
        return compared

    return translate


for _name in ("LIKE", "ILIKE"):
    function(_name, takes=[TEXT, TEXT], gives=BOOLEAN, duckdb=_like(_name), form=f"({{0}} {_name} {{1}})")
    function(
        _name,
        takes=[TEXT, TEXT, CONSTANT],
        gives=BOOLEAN,
        duckdb=_like(_name),
        form=f"({{0}} {_name} {{1}} ESCAPE {{2}})",
        edges=[("?", "'%!_%'", "'!'"), ("?", "'h%'", "'!'"), ("?", "'%!!%'", "'!'")],
    )


def _like_parts(name: str) -> Any:
    """The parts of LIKE, whose ESCAPE sqlglot puts around or into it."""
    return lambda found: (name, [found.this, found.expression, *filter(None, [found.args.get("escape")])])


for _kind, _name in ((exp.Like, "LIKE"), (exp.ILike, "ILIKE")):
    NODES[_kind] = _like_parts(_name)
NODES[exp.Escape] = lambda found: (
    "ILIKE" if isinstance(found.this, exp.ILike) else "LIKE",
    [found.this.this, found.this.expression, found.expression],
)

# ---- regular expressions -------------------------------------------------------------------------------------------


def _search(template: str) -> Translation:
    """A search that returns whether there is a match or its text: {0} is the text, {p} the pattern, {g} the group."""

    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        text, pattern, *group = arguments
        regex = Regex(str(pattern.literal))
        number = int(group[0].literal) if group else 1
        if "{g}" in template and not 0 <= number <= regex.groups:
            raise BindProblem(f"{pattern.text} has no group {number}", fix="put parentheses around what you want")
        if "_all" in template:
            regex.refuse_empty()
        searched = template.format(text.sql, p=duckdb_text(regex.text), g=number)
        return regex.guard_search(text.sql, searched)

    return translate


def _match(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    text, pattern = arguments
    regex = Regex(str(pattern.literal), only_matched=True)
    return regex.guard_search(text.sql, f"regexp_matches({text.sql}, {duckdb_text(regex.text)})")


def _replace(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    text, pattern, fresh = arguments
    regex = Regex(str(pattern.literal))
    regex.refuse_empty()
    written = duckdb_text(replacement(str(fresh.literal), regex.groups))
    return regex.guard_search(text.sql, f"regexp_replace({text.sql}, {duckdb_text(regex.text)}, {written}, 'g')")


def _split_text(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    text, pattern = arguments
    if pattern.literal == "":
        return f"CASE WHEN {text.sql} = '' THEN [''] ELSE string_split({text.sql}, '') END"
    regex = Regex(str(pattern.literal))
    regex.refuse_empty()
    return regex.guard_search(text.sql, f"string_split_regex({text.sql}, {duckdb_text(regex.text)})")


#: Patterns that tests try: classes, anchors, groups, dots, ends of lines, cases.
_TEST_PATTERNS = (
    "'[a-z]+'",
    "'^h.*d'",
    r"r'(\w)(\d?)'",
    "'b$'",
    "'(?i)HELLO'",
    r"r'\s'",
    "'a|b|(x+)'",
    "'日.'",
    r"r'[^\d,]+'",
    "'.'",
    "'l{2}'",
)


def _register_regex(
    *names: str, gives: Gives, duckdb: Translation, group: bool = False, form: str | None = None
) -> None:
    edges = [_WORD] * (not group) + [
        ("?", pattern) for pattern in _TEST_PATTERNS if not group or "(" in pattern.replace("(?", "")
    ]
    function(*names, takes=[TEXT, CONSTANT], gives=gives, duckdb=duckdb, form=form, edges=edges)
    if group:
        numbered = [
            ("?", _TEST_PATTERNS[2], "1"),
            ("?", _TEST_PATTERNS[2], "2"),
            *(("?", pattern, "0") for pattern in _TEST_PATTERNS),
        ]
        function(*names, takes=[TEXT, CONSTANT, CONSTANT_WHOLE], gives=gives, duckdb=duckdb, edges=numbered)


#: A group that took no part in a match is empty.
_EACH = "list_transform(regexp_extract_all({0}, {p}, {g}), lambda found: coalesce(found, ''))"
#: In Java words end at other places around letters beyond ASCII; such texts fail.
_WORD = ("'  padded  pad'", r"r'\bpad\b'")


_register_regex("RLIKE", "REGEXP", gives=BOOLEAN, duckdb=_match, form="({0} RLIKE {1})")
_register_regex("REGEXP_LIKE", gives=BOOLEAN, duckdb=_match)
_register_regex("REGEXP_EXTRACT", gives=STRING, duckdb=_search("regexp_extract({0}, {p}, {g})"), group=True)
_register_regex("REGEXP_EXTRACT_ALL", gives=pa.list_(STRING), duckdb=_search(_EACH), group=True)
_register_regex("REGEXP_COUNT", gives=INT, duckdb=_search("len(regexp_extract_all({0}, {p}))"))
_register_regex(
    "REGEXP_SUBSTR",
    gives=STRING,
    duckdb=_search("CASE WHEN regexp_matches({0}, {p}) THEN regexp_extract({0}, {p}) END"),
)
function(
    "REGEXP_REPLACE",
    takes=[TEXT, CONSTANT, CONSTANT],
    gives=STRING,
    duckdb=_replace,
    edges=[("?", pattern, "'<$0>'") for pattern in _TEST_PATTERNS] + [("?", _TEST_PATTERNS[2], r"r'$2\$x$1'")],
)
function(
    "SPLIT",
    takes=[TEXT, CONSTANT],
    gives=pa.list_(STRING),
    duckdb=_split_text,
    edges=[("?", pattern) for pattern in (*_TEST_PATTERNS, "','", "''")],
)
NODES[exp.RegexpLike] = lambda found: ("RLIKE", [found.this, found.expression])
suggest_instead("use REGEXP_EXTRACT and LENGTH", "REGEXP_INSTR")
