"""Numbers and other values formatted by a format, which is a literal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from panewise.core.errors import BindProblem
from panewise.core.schema import type_name
from panewise.cql.data_types import BOOLEAN, DOUBLE, FLOAT, INTEGERS, STRING, duckdb_text
from panewise.cql.functions.casts import cast
from panewise.cql.functions.catalogue import TypedSql, error_call, function, macro
from panewise.cql.functions.kinds import CONSTANT, CONSTANT_WHOLE, REAL, ArgumentKind

_TOO_LARGE = error_call(
    "a number has more digits than can be written exactly", "round it, or cast it to DECIMAL and STRING"
)
#: Hosts agree on fifteen digits of a fraction, before and after the point.
_EXACT = "abs({0}) * 1e{d} < 1e15"


def _format_number(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    number, places = arguments
    digits = int(places.literal)
    if digits < 0:
        return "CAST(NULL AS VARCHAR)"
    exact = _EXACT.format(number.sql, d=digits)
    written = f"format('{{:,.{digits}f}}', {number.sql})"
    return (
        f"CASE WHEN isnan({number.sql}) THEN 'NaN' WHEN {number.sql} = 'inf'::DOUBLE THEN '∞' "
        f"WHEN {number.sql} = '-inf'::DOUBLE THEN '-∞' WHEN {exact} THEN {written} "
        f"WHEN {number.sql} IS NOT NULL THEN {_TOO_LARGE} END"
    )


_WRITTEN = ("1234567.895D", "0.125D", "0.375D", "-0.0D", "-12345.678D", "1e9D", "12", "CAST('NaN' AS DOUBLE)", "NULL")
function(
    "FORMAT_NUMBER",
    takes=[REAL, CONSTANT_WHOLE],
    gives=STRING,
    duckdb=_format_number,
    edges=[(number, digits) for number in _WRITTEN for digits in ("0", "2", "-1")],
)

# ---- FORMAT_STRING -------------------------------------------------------------------------------------------------

_DIRECTIVE = re.compile(r"%(?P<flags>[-+ 0,(#]*)(?P<width>\d+)?(?:\.(?P<places>\d+))?(?P<letter>[a-zA-Z%])")
#: Digits of a fraction as Java writes them: those of its shortest decimal number, rounded half up.
macro("pw_fixed(x)", "CAST(CAST(abs(x) AS VARCHAR) AS DECIMAL(38, 17))")
#: Java counts a letter beyond the first 65,536 twice.
macro("pw_width(s)", r"length(s) + length(regexp_replace(s, '[\x{0}-\x{FFFF}]', '', 'g'))")


@dataclass(frozen=True)
class _Directive:
    """One place of a format that is replaced by a value."""

    flags: str
    width: int
    places: int | None
    letter: str

    def format_value(self, value: TypedSql) -> str:
        """The text of a value, padded to its width."""
        wanted = {"s": (STRING, BOOLEAN, FLOAT, DOUBLE, *INTEGERS), "d": INTEGERS, "f": (FLOAT, DOUBLE)}
        if value.type not in wanted[self.letter]:
            raise BindProblem(f"%{self.letter} does not take {type_name(value.type)}", fix="cast it to STRING, use %s")
        text, sign = getattr(self, f"_{self.letter}")(value)
        zeros = "0" in self.flags and self.letter != "s"
        if zeros and self.width:
            text = f"repeat('0', greatest({self.width} - length({sign}) - length({text}), 0)) || {text}"
        text = f"coalesce({sign} || {text}, 'null')"
        if not self.width:
            return text
        missing = f"repeat(' ', greatest({self.width} - pw_width({text}), 0))"
        return f"{text} || {missing}" if "-" in self.flags else f"{missing} || {text}"

    def _s(self, value: TypedSql) -> tuple[str, str]:
        return cast(value, STRING), "''"

    def _d(self, value: TypedSql) -> tuple[str, str]:
        mark = "{:,}" if "," in self.flags else "{}"
        return f"format('{mark}', abs(CAST({value.sql} AS HUGEINT)))", self._sign(f"{value.sql} < 0")

    def _f(self, value: TypedSql) -> tuple[str, str]:
        places = 6 if self.places is None else self.places
        if places > 9:
            raise BindProblem(f"%.{places}f has too many places", fix="write at most nine")
        digits = f"CAST(round(pw_fixed({value.sql}), {places}) AS DECIMAL(38, {places}))"
        text = f"CAST({digits} AS VARCHAR)"
        if "," in self.flags:
            whole = f"format('{{:,}}', CAST(trunc({digits}) AS HUGEINT))"
            text = f"{whole} || regexp_extract({text}, '[.].*')"
        exact = _EXACT.format(value.sql, d=places)
        text = f"CASE WHEN {exact} THEN {text} WHEN {value.sql} IS NOT NULL THEN {_TOO_LARGE} END"
        return text, self._sign(f"{value.sql} < 0 OR CAST({value.sql} AS VARCHAR) = '-0.0'")

    def _sign(self, negative: str) -> str:
        positive = "'+'" if "+" in self.flags else "' '" if " " in self.flags else "''"
        return f"CASE WHEN {negative} THEN '-' ELSE {positive} END"


def _parts(text: str) -> Iterator[str | _Directive]:
    """The parts of a format."""
    place = 0
    for found in _DIRECTIVE.finditer(text):
        yield _text_between(text, place, found.start())
        place = found.end()
        letter, flags = found["letter"], found["flags"]
        if letter in "%n":
            yield {"%": "%", "n": "\n"}[letter]
        elif letter in "sdf" and not set(flags) & set("(#") and (letter == "f" or found["places"] is None):
            places = None if found["places"] is None else int(found["places"])
            yield _Directive(flags, int(found["width"] or 0), places, letter)
        else:
            raise BindProblem(f"{found[0]} is no format we know", fix="use %s, %d or %f")
    yield _text_between(text, place, len(text))


def _text_between(text: str, start: int, end: int) -> str:
    if "%" in text[start:end]:
        raise BindProblem(f"{text!r} has a % that starts no format", fix="write %%")
    return text[start:end]


def _format_string(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    form, *values = arguments
    pieces, given = [], iter(values)
    for part in _parts(str(form.literal)):
        if isinstance(part, str):
            pieces += [duckdb_text(part)] if part else []
            continue
        value = next(given, None)
        if value is None:
            raise BindProblem(f"{form.text} asks for more than {len(values)} values", fix="give a value for each %")
        pieces.append(part.format_value(value))
    return " || ".join(pieces) or "''"


#: Any type that a format can contain; each directive checks its own value.
_VALUE = ArgumentKind("a value", lambda given: given, (STRING,))
function(
    "FORMAT_STRING",
    "PRINTF",
    takes=[CONSTANT, _VALUE],
    least=1,
    rest=True,
    gives=STRING,
    duckdb=_format_string,
    edges=[
        ("'%s|%5s|%-9s'", "'Hello'", "'ab'", "?"),
        ("'%d-%s %% %n'", "1", "'Hello'"),
        ("'%5d|%-5d|%05d|%,d|%+d'", "-3", "3", "-42", "1234567", "7"),
        ("'%.2f|%f|%8.3f|%08.1f|%,.1f'", "0.125D", "1.5D", "-2.0005D", "-3.25D", "1234567.85D"),
        ("'%s %s %s'", "true", "1.5e10D", "12"),
        ("'plain'",),
    ],
)
