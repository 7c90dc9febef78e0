"""Digests, and other encodings of bytes and text."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from panewise.core.errors import BindProblem
from panewise.cql.data_types import BINARY, STRING
from panewise.cql.functions.catalogue import TypedSql, error_call, function, macro, suggest_instead
from panewise.cql.functions.kinds import BYTES, CONSTANT, CONSTANT_WHOLE, TEXT, TEXT_ONLY

for _kind in (BYTES, TEXT_ONLY):
    function("MD5", takes=[_kind], gives=STRING, duckdb="md5({0})")
    function("SHA1", "SHA", takes=[_kind], gives=STRING, duckdb="sha1({0})")


def _digest(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    value, bits = arguments
    if bits.literal not in (0, 256):
        raise BindProblem(f"SHA2 is here with 256 bits, not {bits.text}", fix="write SHA2(x, 256)")
    return f"sha256({value.sql})"


for _kind in (BYTES, TEXT_ONLY):
    function("SHA2", takes=[_kind, CONSTANT_WHOLE], gives=STRING, duckdb=_digest, edges=[("?", "256"), ("?", "0")])
#: Lines of 76 characters, as in a mail.
macro(
    "pw_base64(b)",
    r"rtrim(regexp_replace(to_base64(b), '(.{76})', '\1' || chr(13) || chr(10), 'g'), chr(13) || chr(10))",
)
function("BASE64", takes=[BYTES], gives=STRING, duckdb="pw_base64({0})")
function("BASE64", takes=[TEXT_ONLY], gives=STRING, duckdb="pw_base64(encode({0}))")
function(
    "UNBASE64", takes=[TEXT_ONLY], gives=BINARY, duckdb="from_base64({0})", made_up=False, edges=[("'YWJj'",), ("''",)]
)
#: Java writes a space as a plus, keeps stars and encodes tildes.
function(
    "URL_ENCODE",
    takes=[TEXT],
    gives=STRING,
    duckdb="replace(replace(replace(url_encode({0}), '%20', '+'), '%2A', '*'), '~', '%7E')",
    edges=[("'a b*~-_.!()/ä'",)],
)
_UNSPELT = error_call("a text has a percent sign that is not followed by two digits", "use TRY_URL_DECODE")
_SPELT = "url_decode(replace({0}, '+', ' '))"
_ODD = "contains(regexp_replace({0}, '%[0-9a-fA-F][0-9a-fA-F]', '', 'g'), '%')"
_URLS = [("'a+b%20c%C3%A4'",), ("'%zz'",), ("'100%'",)]
function(
    "URL_DECODE", takes=[TEXT], gives=STRING, duckdb=f"CASE WHEN {_ODD} THEN {_UNSPELT} ELSE {_SPELT} END", edges=_URLS
)
function("TRY_URL_DECODE", takes=[TEXT], gives=STRING, duckdb=f"CASE WHEN NOT {_ODD} THEN {_SPELT} END", edges=_URLS)


def _require_utf8(arguments: Sequence[TypedSql]) -> None:
    if str(arguments[1].literal).upper() not in ("UTF-8", "UTF8"):
        raise BindProblem(f"{arguments[1].text} is no character set we know", fix="write 'UTF-8'")


def _encode(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    _require_utf8(arguments)
    return f"encode({arguments[0].sql})"


def _decode(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    _require_utf8(arguments)
    return f"decode({arguments[0].sql})"


function("ENCODE", takes=[TEXT, CONSTANT], gives=BINARY, duckdb=_encode, edges=[("?", "'UTF-8'")])
function("DECODE", takes=[BYTES, CONSTANT], gives=STRING, duckdb=_decode, edges=[("?", "'UTF-8'")])
suggest_instead("use MD5 or SHA2(x, 256)", "HASH", "XXHASH64", "CRC32")
