"""Templates: of texts that differ in numbers only, the first is parsed and bound, and the others are filled in.

A number is *free* where neither names nor types nor operators of the bound query depend on it: in a window, beside a
comparison, and beside arithmetic as long as it has as many digits. A text is bound once with other numbers in these
places, its stand-ins; where they are found in the bound query, the numbers of other texts belong. A number that is not
free is part of the template. What cannot be bound is bound again without a template, so that errors are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from sqlglot import exp

from panewise.algebra import Call, Distinct, Group, Node, Project, Query, Select, Source, Windowed
from panewise.core.errors import PanewiseError
from panewise.core.scalar import Scalar
from panewise.core.schema import StreamSchema
from panewise.core.time import Duration
from panewise.cql.clauses import WindowClause, bind_clause
from panewise.cql.clauses.rows import RowsClause
from panewise.cql.clauses.windows import RangeClause, SessionClause
from panewise.cql.dialect import NUMBERS
from panewise.cql.group_by import aggregate_name
from panewise.cql.scope import Scope
from panewise.cql.script import bind_query, bind_syntax
from panewise.cql.statements import parse_query
from panewise.cql.syntax import Body, Expr, SelectSyntax
from panewise.window import Window

#: Texts with comments or escapes, after which quotes mean something else, or with two brackets have no template.
_UNUSUAL = re.compile(r"--|/\*|\\|''|\[[^\[]*\[")
_LONGEST_TEXT = 2000
#: When there are more templates than this, all are forgotten.
_MOST_TEMPLATES = 2000

_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.Between, exp.In)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_WINDOWS = (RangeClause, RowsClause, SessionClause)

#: The numbers of a text; None in the place of a quoted word.
Numbers: TypeAlias = Sequence[str | None]
#: What a part of a query is, if a text has these numbers.
Filling: TypeAlias = Callable[[Numbers], Any]


class Freedom(Enum):
    """What may stand in the place of a number."""

    NOTHING_ELSE = 0
    #: The result of a comparison of numbers is BOOLEAN, whatever their types are.
    ANY_NUMBER = 1
    #: The type of a sum or a product depends on how many digits a literal has.
    SAME_DIGITS = 2
    #: A duration or a count in a window.
    WHOLE_NUMBER = 3


class Hole(NamedTuple):
    """The place of a free number: how many digits its stand-in has, and which of the numbers equal to it is first.

    Equal expressions are computed once, so that it matters which numbers are equal; not so in a window.
    """

    digits: tuple[int, int]
    first: int | None


class TemplateBinder:
    """Binds texts against declared streams as `bind_query` does, and keeps their templates."""

    def __init__(self, streams: Mapping[str, StreamSchema]) -> None:
        self.streams = streams
        names = [name for schema in streams.values() for name in schema.schema.names]
        # Numbers in names could not be told from those of a text.
        self._usable = not any(NUMBERS.search(name) or "`" in name for name in [*streams, *names])
        self._freedoms: dict[object, tuple[Freedom, ...]] = {}
        self._templates: dict[object, Template | None] = {}

    def query(self, text: str) -> Query:
        """One SELECT over the streams."""
        if not self._usable or len(text) > _LONGEST_TEXT or _UNUSUAL.search(text):
            return bind_query(text, self.streams)
        parts = NUMBERS.split(text)
        numbers, skeleton = parts[2::3], (*parts[::3], *parts[1::3])
        if skeleton not in self._freedoms:
            self._freedoms[skeleton] = _freedoms(text)
        holes = _holes(numbers, self._freedoms[skeleton])
        key = skeleton, *(number if hole is None else hole for number, hole in zip(numbers, holes, strict=True))
        if key not in self._templates:
            self._forget_many()
            self._templates[key] = self._create_template(parts, holes)
        if template := self._templates[key]:
            try:
                return template.query(numbers)
            except PanewiseError:
                pass  # is raised again below, with the places of this text
        return bind_query(text, self.streams)

    def _forget_many(self) -> None:
        if len(self._templates) >= _MOST_TEMPLATES:
            self._templates.clear()
            self._freedoms.clear()

    def _create_template(self, parts: Sequence[str], holes: Sequence[Hole | None]) -> Template | None:
        """The template of a text; None where it has none."""
        stand_ins = _stand_ins(parts, holes)
        if stand_ins is None or not any(holes):
            return None
        words: list[str | None] = list(parts)
        words[2::3] = stand_ins
        text = "".join(filter(None, words))
        try:
            syntax = parse_query(text)
            query = bind_syntax(syntax, self.streams)
        except PanewiseError:
            return None
        places = {str(number): at for at, (number, hole) in enumerate(zip(stand_ins, holes, strict=True)) if hole}
        return _TemplateMaker(places, self.streams).make(query, syntax.body)


@dataclass(frozen=True)
class Template:
    """A bound query with holes: its operators from the stream upwards, with what fills each of their parts."""

    bound: Query
    source: Source
    operators: tuple[tuple[Callable[..., Node], tuple[Filling, ...]], ...]

    def query(self, numbers: Numbers) -> Query:
        """The query of a text with these numbers."""
        node: Node = self.source
        for operator, fillings in self.operators:
            node = operator(node, *[filling(numbers) for filling in fillings])
        return replace(self.bound, root=node)


@dataclass
class _TemplateMaker:
    """Finds stand-ins in a bound query."""

    #: Each stand-in, and which number of the text it stands for.
    places: Mapping[str, int]
    streams: Mapping[str, StreamSchema]
    found: set[int] = field(default_factory=set)

    def make(self, query: Query, body: Body) -> Template | None:
        """The template of a query; None where it reads several streams, or does not show all stand-ins."""
        *operators, source = query.root.walk()
        suited = all(isinstance(node, Windowed | Select | Project | Group | Distinct) for node in operators)
        if not (suited and isinstance(source, Source) and isinstance(body, SelectSyntax)):
            return None
        if any(call.aggregate.positional for node in operators if isinstance(node, Group) for call in node.calls):
            return None
        made = []
        for node in reversed(operators):
            if isinstance(node, Windowed):
                fillings = [self._window(node.window, body.sources[0].window, source)]
            else:
                fillings = [self._part(getattr(node, each.name)) for each in fields(node) if each.name != "child"]
            made.append((type(node), tuple(fillings)))
        return Template(query, source, tuple(made)) if self.found == set(self.places.values()) else None

    def _window(self, window: Window, clause: WindowClause | None, source: Source) -> Filling:
        """A window is bound again, from the clause with other durations and counts."""
        if not isinstance(clause, _WINDOWS):
            return lambda numbers: window
        lengths: list[tuple[str, Duration | int, int]] = []
        for each in fields(clause):
            length = getattr(clause, each.name)
            place = self.places.get(str(length.count if isinstance(length, Duration) else length))
            if place is not None:
                lengths.append((each.name, length, place))
                self.found.add(place)
        scope, schema = Scope(list(source.columns)), self.streams[source.stream]

        def bind(numbers: Numbers) -> object:
            changes: dict[str, Any] = {name: _length_like(was, numbers[place]) for name, was, place in lengths}
            return bind_clause(replace(clause, **changes), scope, schema)

        return bind

    def _part(self, value: Any) -> Filling:
        """A part of an operator: stand-ins are in the texts of expressions, and in names that are made of these."""
        match value:
            case str() if self._places_in(value):
                return self._text(value)
            case tuple() if any(map(self._places_in, value)):
                return _combination(lambda *parts: parts, [self._part(part) for part in value])
            case Scalar() | Call() if self._places_in(value):
                return _combination(type(value), [self._part(getattr(value, part.name)) for part in fields(value)])
        return lambda numbers: value

    def _places_in(self, value: Any) -> set[int]:
        """The numbers of the text for which a part of an operator has stand-ins."""
        match value:
            case str():
                return {self.places[each[2]] for each in NUMBERS.finditer(value) if each[2] in self.places}
            case Scalar() | Call():
                return set().union(*(self._places_in(getattr(value, part.name)) for part in fields(value)))
            case tuple():
                return set().union(*map(self._places_in, value))
        return set()

    def _text(self, text: str) -> Filling:
        self.found |= self._places_in(text)
        words: list[Any] = NUMBERS.split(text)
        words[2::3] = [self.places.get(number, number) for number in words[2::3]]
        pieces = [word for word in words if word is not None]
        return lambda numbers: "".join([str(numbers[each]) if isinstance(each, int) else each for each in pieces])


def _combination(make: Callable[..., Any], parts: Sequence[Filling]) -> Filling:
    return lambda numbers: make(*[part(numbers) for part in parts])


def _length_like(length: Duration | int, number: str | None) -> Duration | int:
    whole = int(str(number))
    return Duration(Fraction(whole), length.unit) if isinstance(length, Duration) else whole


# ---- free numbers --------------------------------------------------------------------------------------------------


def _freedoms(text: str) -> tuple[Freedom, ...]:
    """What may stand in the place of each number or quoted word of a text."""
    words, body = list(NUMBERS.finditer(text)), parse_query(text).body
    free: dict[int | None, Freedom] = {}
    if isinstance(body, SelectSyntax) and len(body.sources) == 1 and isinstance(body.sources[0].source, str):
        if isinstance(body.sources[0].window, _WINDOWS):
            inside = range(text.index("["), text.index("]"))
            free = {word.start(): Freedom.WHOLE_NUMBER for word in words if word.start() in inside}
        for expr in _expressions(body):
            for node in expr.node.find_all(exp.Literal):
                free[node.meta.get("start")] = _freedom(node)
    return tuple(free.get(word.start(), Freedom.NOTHING_ELSE) if word[2] else Freedom.NOTHING_ELSE for word in words)


def _expressions(body: SelectSyntax) -> Iterator[Expr]:
    yield from (item.expr for item in body.items)
    yield from (expr for expr in (body.where, body.having) if expr)
    yield from body.group_by


def _freedom(literal: exp.Literal) -> Freedom:
    around = literal.parent
    while isinstance(around, exp.Paren | exp.Neg):
        around = around.parent
    freedom = Freedom.ANY_NUMBER if isinstance(around, _COMPARISONS) else Freedom.SAME_DIGITS
    if not isinstance(around, _COMPARISONS + _ARITHMETIC):
        return Freedom.NOTHING_ELSE
    while around is not None:
        # Arguments after the first may be parameters of an aggregate, which knows their text.
        if aggregate_name(around) and len(around.expressions) != 1:
            return Freedom.NOTHING_ELSE
        around = around.parent
    return freedom


def _holes(numbers: Numbers, freedoms: Sequence[Freedom]) -> list[Hole | None]:
    """The holes of a text with these numbers; None in the place of a number that is not free, or is equal to one."""
    every = [_stand_in_digits(str(number), freedom) for number, freedom in zip(numbers, freedoms, strict=True)]
    fixed = {number for number, digits in zip(numbers, every, strict=True) if digits is None}
    first: dict[object, int] = {}
    found: list[Hole | None] = []
    for at, (number, digits, freedom) in enumerate(zip(numbers, every, freedoms, strict=True)):
        if digits is not None and freedom is Freedom.WHOLE_NUMBER:
            found.append(Hole(digits, None))
        elif digits is None or number in fixed:
            found.append(None)
        else:
            found.append(Hole(digits, first.setdefault((number, digits), at)))
    return found


def _stand_in_digits(number: str, freedom: Freedom) -> tuple[int, int] | None:
    """How many digits the stand-in of a number has before and after the point; None if it has none."""
    if freedom is Freedom.NOTHING_ELSE or (freedom is Freedom.WHOLE_NUMBER and not number.isdecimal()):
        return None
    if freedom is not Freedom.SAME_DIGITS:
        return 9, 0
    whole, _, part = number.partition(".")
    if not float(number) or (whole[0] == "0" and len(whole) > 1):
        return None
    return 0 if whole == "0" else len(whole), len(part)


def _stand_ins(parts: Sequence[str | None], holes: Sequence[Hole | None]) -> list[str | None] | None:
    """Other numbers in the holes, which stand nowhere else in the text; None where there are not enough of them."""
    found = list(parts[2::3])
    written = re.findall(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+", "".join(filter(None, parts)))
    # The tree of a text may hold 0.5 instead of .5, and 1 instead of 1.0.
    taken = {*written, *(f"0{number}" for number in written), *(str(Fraction(number)) for number in written)}
    for at, hole in enumerate(holes):
        if hole is not None and hole.first in (None, at):
            whole, part = hole.digits
            digits = map(str, range(10 ** (whole + part - 1), 10 ** (whole + part)))
            others = ((each[:whole] or "0") + (f".{each[whole:]}" if part else "") for each in digits)
            found[at] = next((other for other in others if other not in taken), None)
            if found[at] is None:
                return None
            taken.add(str(found[at]))
        elif hole is not None and hole.first is not None:
            found[at] = found[hole.first]
    return found
