"""Words of other systems that people write, and the CQL to write instead. One table, which is checked before a text is
parsed.

Words stand for themselves, whatever their case; `a|b` is one of both, `a?` may be missing, and `a!` must come before
the words that are replaced. Words in angle brackets match the patterns in `_BLANKS`, and the matched text is used in
the suggestion.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from sqlglot import Token, TokenType

from panewise.aggregate import AGGREGATES
from panewise.core.errors import PanewiseError, Place, SyntaxProblem, did_you_mean
from panewise.core.time import UNIT_SPELLINGS, Duration
from panewise.cql.tokens import ScriptText, word

_NESTING = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1, TokenType.L_BRACKET: 1, TokenType.R_BRACKET: -1}
_NAME = r"[^\s()\[\],;]+"
_UNIT = f"(?:{'|'.join(UNIT_SPELLINGS)}|MONTHS?|YEARS?)"
_COUNT = rf"(?:INTERVAL )?(?:'[^']*'|[\d.]+{_UNIT}?)"
_BLANKS = {
    **dict.fromkeys(("size", "slide", "gap", "step", "start"), f"{_COUNT}(?: {_UNIT})?"),
    "length": rf"(?:{_COUNT} {_UNIT}|[\d.]+{_UNIT})",
    "count": r"\d+",
    "stream": _NAME,
    "key": _NAME,
    "column": rf"{_NAME}(?: \. {_NAME})*",
    "window": r"(?:RANGE|RANGES|ROWS|SESSION|CUMULATE|UNBOUNDED|PARTITION|FRAME) [^()\[\]]*",
}


@dataclass(frozen=True)
class Habit:
    """Words of another system, the name of that system, and what to write instead."""

    words: str
    whose: str
    meant: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        parts = []
        for each in self.words.split():
            name = each.rstrip("?!").strip("<>")
            either = "|".join(map(re.escape, name.split("|")))
            part = f" (?P<{name}>{_BLANKS[name]})" if each[0] == "<" else f" (?:{either})"
            parts.append({"?": f"(?:{part})?", "!": f"(?P<before>{part})"}.get(each[-1], part))
        return re.compile("".join(parts) + "(?= |$)", re.IGNORECASE)


_TUMBLING, _HOPPING = "[RANGE <size> SLIDE <size>]", "[RANGE <size> SLIDE <slide>]"
_AFTER = " after the stream instead"
_SPARK, _FLINK, _KSQL, _NONE = "a window of Spark", "a window of Flink", "a window of ksqlDB", "no window"
_ESPER, _EVERY = "a window of Esper", ",|BY|EVERY|SLIDE|STEP|HOP|ADVANCE"
_STREAM = "TABLE? <stream> , DESCRIPTOR ( <column> ) ,"

#: The first one that occurs in a text is reported.
HABITS = (
    Habit("WINDOW ( <column> , <size> )", _SPARK, _TUMBLING + _AFTER),
    Habit("WINDOW ( <column> , <size> , <slide> )", _SPARK, _HOPPING + _AFTER),
    Habit("WINDOW ( <column> , <size> , <slide> , <start> )", _SPARK, _HOPPING + _AFTER + ", with START AT"),
    Habit("SESSION_WINDOW ( <column> , <gap> )", _SPARK, "[SESSION <gap>]" + _AFTER),
    Habit(f"TABLE ( TUMBLE ( {_STREAM} <size> ) )", _FLINK, f"<stream> {_TUMBLING}"),
    Habit(f"TABLE ( HOP ( {_STREAM} <slide> , <size> ) )", _FLINK, f"<stream> {_HOPPING}"),
    Habit(f"TABLE ( CUMULATE ( {_STREAM} <step> , <size> ) )", _FLINK, "<stream> [CUMULATE <size> STEP <step>]"),
    Habit(f"TABLE ( SESSION ( {_STREAM} <gap> ) )", _FLINK, "<stream> [SESSION <gap>]"),
    Habit(
        "TABLE ( SESSION ( TABLE <stream> PARTITION BY <key> , DESCRIPTOR ( <column> ) , <gap> ) )",
        _FLINK,
        "<stream> [PARTITION BY <key> SESSION <gap>]",
    ),
    Habit(f"TUMBLE ( {_STREAM} <size> )", _FLINK, f"<stream> {_TUMBLING}"),
    Habit(f"HOP ( {_STREAM} <slide> , <size> )", _FLINK, f"<stream> {_HOPPING}"),
    Habit(f"CUMULATE ( {_STREAM} <step> , <size> )", _FLINK, "<stream> [CUMULATE <size> STEP <step>]"),
    Habit("TUMBLE ( <column> , <size> )", _FLINK, _TUMBLING + _AFTER),
    Habit("HOP ( <column> , <slide> , <size> )", _FLINK, _HOPPING + _AFTER),
    Habit("SESSION ( <column> , <gap> )", _FLINK, "[SESSION <gap>]" + _AFTER),
    Habit("TUMBLE ( <stream> , <column> , <size> )", "a window of RisingWave", f"<stream> {_TUMBLING}"),
    Habit("HOP ( <stream> , <column> , <slide> , <size> )", "a window of RisingWave", f"<stream> {_HOPPING}"),
    Habit("TIME_BUCKET ( <size> , <column> )", "a window of Timescale", _TUMBLING + _AFTER),
    Habit("<stream> # TIME ( <size> )", _ESPER, "<stream> [RANGE <size>]"),
    Habit("<stream> # TIME_BATCH ( <size> )", _ESPER, f"<stream> {_TUMBLING}"),
    Habit("<stream> # LENGTH ( <count> )", _ESPER, "<stream> [ROWS <count>]"),
    Habit("<stream> # LENGTH_BATCH ( <count> )", _ESPER, "<stream> [ROWS <count> SLIDE <count>]"),
    Habit("WINDOW TUMBLING ( SIZE? <size>", _KSQL, _TUMBLING + _AFTER),
    Habit("WINDOW HOPPING ( SIZE <size> , ADVANCE BY <slide>", _KSQL, _HOPPING + _AFTER),
    Habit("WINDOW SESSION ( <gap>", _KSQL, "[SESSION <gap>]" + _AFTER),
    Habit("[ TUMBLE|TUMBLING SIZE? <size> ]", _NONE, _TUMBLING),
    Habit(f"[ HOP|HOPPING|SLIDING|SLIDE|LAST|PAST|WINDOW|SIZE SIZE? <size> {_EVERY}? BY? <slide> ]", _NONE, _HOPPING),
    Habit("[ HOP|HOPPING SIZE? <size> ]", _NONE, "[RANGE <size> SLIDE ...]"),
    Habit("[ LAST|SLIDING|ROWS|RANGE <count> ROW|ROWS|EVENTS|ITEMS|TUPLES ]", _NONE, "[ROWS <count>]"),
    Habit("[ LAST|SLIDING|SLIDE|PAST|SIZE|WINDOW <size> ]", _NONE, "[RANGE <size>]"),
    Habit(f"[ RANGE <size> {_EVERY} BY <slide>", _NONE, _HOPPING),
    Habit("[ RANGE <size> ,|BY|EVERY|STEP|HOP|ADVANCE|SLIDES|SLIDING <slide>", _NONE, _HOPPING),
    Habit("[ RANGE <size> PRECEDING", _NONE, "[RANGE <size>]"),
    Habit("[ ROWS <count> PRECEDING", _NONE, "[ROWS <count>]"),
    Habit("[ <length> ]", _NONE, "[RANGE <length>]"),
    Habit("[ SESSION GAP|TIMEOUT <gap>", _NONE, "[SESSION <gap>]"),
    Habit("[ SESSION <gap> PARTITION BY <key>", _NONE, "[PARTITION BY <key> SESSION <gap>]"),
    Habit("[ ROWS <count> PARTITION BY <key>", _NONE, "[PARTITION BY <key> ROWS <count>]"),
    Habit("FROM|JOIN|,! <stream> RANGE <size> SLIDE <slide>", _NONE, f"<stream> {_HOPPING}"),
    Habit("FROM|JOIN|,! <stream> RANGE <length>", _NONE, "<stream> [RANGE <length>]"),
    Habit("FROM|JOIN|,! <stream> ( <window> )", _NONE, "<stream> [<window>]"),
    Habit("WITH BOUNDARY", "no part of a query", "WITH BOUNDARY '[)'; as a statement before all others"),
    Habit("EMIT CHANGES|FINAL", "of ksqlDB", "nothing, windows with a SLIDE report results and others changes"),
    Habit("FOR <length>", "no length of frames", "FOR AT LEAST <length>"),
    Habit("FOR <count> ROWS|ROW", "no length of frames", "FOR AT LEAST <count> ROWS"),
    Habit("FOR <count> ]", "no length of frames", "FOR AT LEAST <count>"),
)

#: Functions that other systems have, and ours.
FUNCTIONS = {
    **dict.fromkeys(("AVERAGE",), "AVG(column)"),
    **dict.fromkeys(("CNT", "COUNT_ALL"), "COUNT(*)"),
    **dict.fromkeys(("COUNT_DISTINCT", "COUNTDISTINCT", "UNIQ", "NUNIQUE"), "COUNT(DISTINCT column)"),
    **dict.fromkeys(("PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC", "QUANTILE_CONT"), "QUANTILE(column, phi)"),
    **dict.fromkeys(("PERCENTILE_APPROX", "APPROX_PERCENTILE", "APPROX_QUANTILE"), "QUANTILE(column, phi)"),
    **dict.fromkeys(("COUNT_IF", "COUNTIF"), "SUM(CASE WHEN condition THEN 1 ELSE 0 END)"),
    **dict.fromkeys(("EARLIEST", "EARLIEST_BY_OFFSET", "ANY_VALUE", "ARBITRARY"), "FIRST(column)"),
    **dict.fromkeys(("LATEST", "LATEST_BY_OFFSET"), "LAST(column)"),
    **dict.fromkeys(("TOPK", "APPROX_TOP_K", "MODE"), "TOP_K(column, k)"),
    **dict.fromkeys(("APPROX_COUNT_DISTINCT_HLL", "HLL_COUNT", "COUNT_APPROX"), "APPROX_DISTINCT(column)"),
}
_STARTS = ("WINDOW_START", "WINDOWSTART", "TUMBLE_START", "HOP_START", "SESSION_START")
_ENDS = ("WINDOW_END", "WINDOWEND", "TUMBLE_END", "HOP_END", "SESSION_END")
#: The columns that every result has anyway, by their names here and elsewhere.
ADDED_COLUMNS = {
    **{name: name.lower() for name in ("W_START", "W_END", "W_LEVEL", "FRAME_ID", "EXPIRES_AT", "EXPIRES_ORDER")},
    **dict.fromkeys(_STARTS, "w_start"),
    **dict.fromkeys(_ENDS, "w_end"),
}


def refuse_habits(source: ScriptText, tokens: Sequence[Token]) -> None:
    """Refuse a query in the words of another system, with the CQL to write instead."""
    text = _WordSequence(source, tokens)
    for habit in HABITS:
        if found := habit.pattern.search(text.joined):
            place, written = text.locate_match(found)
            try:
                fix = f"write {_fill_blanks(habit.meant, found)}"
            except PanewiseError as problem:  # of a duration
                raise problem.at(place) from None
            raise SyntaxProblem(f"{written} is {habit.whose}", fix=fix, place=place)
    for at, after in enumerate(tokens[1:]):
        if after.token_type is TokenType.L_PAREN:
            of_all = tokens[at + 2 : at + 3]
            _refuse_function(source, tokens[at], any(t.token_type is TokenType.STAR for t in of_all))


def _refuse_function(source: ScriptText, token: Token, of_all: bool) -> None:
    name, place = word(token), source.place(token.start)
    if name in ADDED_COLUMNS:
        raise SyntaxProblem(f"{name} is not needed", fix=added_column_hint(name), place=place)
    fix = f"write {FUNCTIONS[name]}" if name in FUNCTIONS else ""
    if of_all and token.token_type is TokenType.VAR and name not in AGGREGATES:
        fix = fix or did_you_mean(name, AGGREGATES, "write COUNT(*)")
    if fix:
        raise SyntaxProblem(f"there is no function {name}", fix=fix, place=place)


def added_column_hint(name: str) -> str | None:
    """The suggestion for a query that selects a column which every result has anyway."""
    found = ADDED_COLUMNS.get(name.upper())
    return found and f"leave it out, {found} is added to results by itself"


class _WordSequence:
    """The words of a text with one space before each, and the place of each word."""

    def __init__(self, source: ScriptText, tokens: Sequence[Token]) -> None:
        self.source = source
        #: One token a place: sqlglot makes three of `5d`.
        self.tokens = list({token.start: token for token in tokens}.values())
        words = [source.text[t.start : t.end + 1] for t in self.tokens]
        # A space inside a word would look like its end.
        self.words = [w.replace(" ", "\x01") if w[:1] in "'\"`" else " ".join(w.split()) for w in words]
        self.joined = "".join(f" {w}" for w in self.words)
        self.starts = list(accumulate((len(w) + 1 for w in self.words), initial=0))

    def locate_match(self, found: re.Match[str]) -> tuple[Place, str]:
        """The place of a match, and its text on one line, shortened if long."""
        begin = found.end("before") if found.groupdict().get("before") else found.start()
        first, last = (bisect_right(self.starts, at) - 1 for at in (begin, found.end() - 1))
        end, depth = first, 0
        while end < len(self.tokens) and (end <= last or depth):  # until the opened brackets are closed
            depth += _NESTING.get(self.tokens[end].token_type, 0)
            if depth < 0:
                break
            end += 1
        start = self.tokens[first].start
        plain = " ".join(self.source.text[start : self.tokens[end - 1].end + 1].split())
        return self.source.place(start), plain if len(plain) <= 80 else f"{plain[:77]}..."


def _fill_blanks(meant: str, found: re.Match[str]) -> str:
    """The suggestion with the matched texts in it, durations in our units."""

    def blank(name: re.Match[str]) -> str:
        text = found[name[1]].replace("\x01", " ")
        return text if name[1] in ("stream", "key", "count", "window") else _length(text)

    return re.sub(r"<(\w+)>", blank, meant)


def _length(text: str) -> str:
    return str(Duration.parse(re.sub("INTERVAL |'", "", text, flags=re.IGNORECASE)))
