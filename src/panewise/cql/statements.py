"""Parses statements: CREATE STREAM, VIEW and QUERY, and the clauses around a SELECT."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sqlglot import Token, TokenType

from panewise.core.errors import Place, SyntaxProblem, TimeProblem
from panewise.core.time import Boundary, Duration
from panewise.cql.habits import refuse_habits
from panewise.cql.limits import refuse_large, refuse_long
from panewise.cql.select import EMITS, parse_select
from panewise.cql.syntax import (
    CreateQuery,
    CreateStream,
    CreateView,
    QuerySyntax,
    ScriptSyntax,
    SetBoundary,
    Statement,
)
from panewise.cql.tokens import Cursor, ScriptText, word

_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)


def parse_query(text: str) -> QuerySyntax:
    """Parse one SELECT."""
    refuse_long(text)
    script = parse_script(text)
    if len(script.statements) != 1 or not isinstance(script.statements[0], QuerySyntax):
        last = script.statements[-1]
        found = f"{len(script.statements)} statements" if len(script.statements) > 1 else "a CREATE statement"
        raise SyntaxProblem(
            f"expected one SELECT, but found {found}",
            fix="give one SELECT, or run the text as a script",
            place=last.place or Place(1, 1),
        )
    return script.statements[0]


def parse_script(text: str) -> ScriptSyntax:
    """Parse all statements of a `.cql` text; a semicolon ends each, after the last one it may be missing."""
    source = ScriptText(text)
    statements = [_statement(source, tokens) for tokens in _split_statements(source.tokens)]
    if not statements:
        raise SyntaxProblem("the text is empty", fix="write a SELECT or a CREATE statement", place=Place(1, 1))
    return ScriptSyntax(tuple(statements))


def _split_statements(tokens: list[Token]) -> list[list[Token]]:
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            groups.append([])
        else:
            groups[-1].append(token)
    return [group for group in groups if group]


def _statement(source: ScriptText, tokens: list[Token]) -> Statement:
    refuse_large(source, tokens)
    cursor = Cursor(source, tokens, tokens[-1].end + 1, "CREATE")
    place = source.place(tokens[0].start)
    if boundary := _boundary(cursor):
        return SetBoundary(boundary, place)
    if not cursor.take("CREATE"):
        return _query(source, tokens, place)
    if cursor.take("STREAM"):
        return _create_stream(cursor, place)
    if cursor.take("VIEW"):
        name = _name_before_as(cursor, "a view name")
        return CreateView(name, _query(source, tokens[cursor.at :], place), place)
    if cursor.take("QUERY"):
        name = _name_before_as(cursor, "a query name")
        body, targets = _targets(source, tokens[cursor.at :])
        return CreateQuery(name, _query(source, body, place), targets.into, targets.panes, place, targets.place)
    raise cursor.problem("expected STREAM, VIEW or QUERY after CREATE", "write CREATE STREAM, VIEW or QUERY")


def _boundary(cursor: Cursor) -> Boundary | None:
    """The boundary of `WITH BOUNDARY '[)'` or `WINDOWS INCLUDE START`; None for any other statement."""
    found = None
    if cursor.take("WITH", "BOUNDARY"):
        cursor.clause = "BOUNDARY"
        place = cursor.place()
        try:
            found = Boundary.of(cursor.string("a boundary such as '[)'"))
        except TimeProblem as problem:
            raise problem.at(place) from None
    elif cursor.take("WINDOWS", "INCLUDE"):
        cursor.clause = "WINDOWS"
        found = Boundary.LEFT if cursor.take("START") else Boundary.RIGHT
        if found is Boundary.RIGHT and not cursor.take("END"):
            raise cursor.problem("expected START or END", "write WINDOWS INCLUDE START or WINDOWS INCLUDE END")
    if found:
        cursor.expect_end("end the statement before it with ;")
    return found


def _name_before_as(cursor: Cursor, what: str) -> str:
    name = cursor.name(what)
    cursor.expect("AS")
    if cursor.token is None:
        raise cursor.problem("expected a SELECT", "write one after AS")
    return name


def _create_stream(cursor: Cursor, place: Place) -> CreateStream:
    cursor.clause = "CREATE STREAM"
    name = cursor.name("a stream name")
    columns = [] if cursor.peek("TIME") else _column_list(cursor)
    cursor.expect("TIME")
    time = cursor.name("the time column")
    delay = cursor.duration() if cursor.take("DELAY") else None
    uri = None
    if cursor.take("FROM"):
        cursor.places["#source"] = cursor.place()
        uri = cursor.string("a source such as 'parquet:trades/'")
    cursor.expect_end("end the statement before it with ;")
    if not columns and uri is None:
        problem = f"stream {name!r} has neither columns nor files from which to read them"
        raise SyntaxProblem(problem, fix="list them in parentheses, or add FROM 'kind:path'", place=cursor.place())
    return CreateStream(name, tuple(columns), time, delay, uri, place, cursor.places)


def _column_list(cursor: Cursor) -> list[tuple[str, str]]:
    """Columns between parentheses."""
    cursor.expect("(")
    columns = [_column(cursor, [])]
    while cursor.take(","):
        columns.append(_column(cursor, [name for name, _ in columns]))
    cursor.expect(")")
    return columns


def _column(cursor: Cursor, taken: list[str]) -> tuple[str, str]:
    place, name, depth, words = cursor.place(), cursor.name("a column name"), 0, []
    if name in taken:
        cursor.places[f"{name} again"] = place
    place = cursor.place()
    while cursor.token and (depth or cursor.token.token_type not in (TokenType.COMMA, TokenType.R_PAREN)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(cursor.token.token_type, 0)
        words.append(cursor.next("a type", "").text.upper())
    if not words:
        raise cursor.problem(f"expected the type of column {name!r}", "write one such as BIGINT")
    kind = re.sub(r" ?([(),<>]) ?", r"\1", " ".join(words))
    cursor.places.setdefault(kind, place)
    return name, kind


@dataclass
class _Targets:
    """The targets of results and panes, and the place of PANES INTO."""

    into: str | None = None
    panes: str | None = None
    place: Place | None = None


def _targets(source: ScriptText, tokens: list[Token]) -> tuple[list[Token], _Targets]:
    """The tokens without INTO and PANES INTO at their end, and the targets that these name."""
    targets = _Targets()
    cut = next((at for at, depth in _depths(tokens) if not depth and _begins_target(tokens, at)), len(tokens))
    cursor = Cursor(source, tokens[cut:], tokens[-1].end + 1, "INTO")
    while cursor.token is not None:
        place = cursor.place()
        if targets.into is None and cursor.take("INTO"):
            targets.into = cursor.string("a target such as 'parquet:out/'")
        elif targets.panes is None and cursor.take("PANES", "INTO"):
            cursor.clause = "PANES INTO"
            targets.panes, targets.place = (
                cursor.string("a target such as 'parquet:panes/'"),
                replace(place, clause="PANES INTO"),
            )
        else:
            cursor.expect_end()
    return tokens[:cut], targets


def _begins_target(tokens: list[Token], at: int) -> bool:
    """Whether INTO or PANES INTO starts here; a stream may be called panes."""
    named = at > 0 and word(tokens[at - 1]) in ("FROM", "JOIN", ",", "AS")
    ahead = word(tokens[at + 1]) if at + 1 < len(tokens) else ""
    return word(tokens[at]) == "INTO" or (word(tokens[at]) == "PANES" and ahead == "INTO" and not named)


def _query(source: ScriptText, tokens: list[Token], place: Place) -> QuerySyntax:
    refuse_habits(source, tokens)
    tokens, suffixes = _suffixes(source, tokens)
    emit = None
    if word(tokens[0]) in EMITS and len(tokens) > 1 and tokens[1].token_type is TokenType.L_PAREN:
        if tokens[-1].token_type is not TokenType.R_PAREN:
            raise SyntaxProblem(f"{word(tokens[0])}( is never closed", fix="add a parenthesis", place=place)
        emit, tokens = word(tokens[0]), tokens[2:-1]
    if not tokens or word(tokens[0]) not in ("SELECT", "("):
        found = repr(tokens[0].text) if tokens else "nothing"
        fix = "use CREATE VIEW or a sub-query" if found == "'WITH'" else "start with SELECT or CREATE"
        raise SyntaxProblem(f"expected a SELECT, but found {found}", fix=fix, place=place)
    if len(tokens) > 1 and word(tokens[0]) == "SELECT" and word(tokens[1]) in EMITS:
        emit = word(tokens[1])
    body = parse_select(source, tokens)
    return QuerySyntax(body, emit, suffixes.empty, suffixes.revise, suffixes.unbounded, place, suffixes.late)


@dataclass
class _Suffixes:
    """The clauses after a SELECT, and the place of LATE REVISE."""

    empty: bool = False
    revise: Duration | None = None
    unbounded: bool = False
    late: Place | None = None


_SUFFIXES = ("EMIT", "LATE", "ALLOW")


def _suffixes(source: ScriptText, tokens: list[Token]) -> tuple[list[Token], _Suffixes]:
    """The tokens without EMIT EMPTY, LATE and ALLOW UNBOUNDED at their end, and the meaning of these."""
    cut, suffixes = len(tokens), _Suffixes()
    for at, depth in _depths(tokens):
        if depth or word(tokens[at]) not in _SUFFIXES or at == 0:
            continue
        cursor = Cursor(source, tokens[at:], tokens[-1].end + 1, word(tokens[at]))
        if cursor.take("EMIT", "EMPTY"):
            suffixes.empty = True
        elif cursor.take("ALLOW", "UNBOUNDED"):
            suffixes.unbounded = True
        elif cursor.take("LATE", "REVISE"):
            suffixes.late, suffixes.revise = source.place(tokens[at].start, "LATE"), cursor.duration()
        elif not cursor.take("LATE", "DROP"):
            if at > 1 and at == len(tokens) - 2 and word(tokens[at - 1]) not in ("FROM", "JOIN", ",", "AS"):
                cursor.at = 1
                raise cursor.problem(
                    "expected EMIT EMPTY, LATE DROP, LATE REVISE or ALLOW UNBOUNDED", "write one of these at the end"
                )
            continue
        cut = min(cut, at)
        if cursor.token and word(cursor.token) not in _SUFFIXES:
            raise cursor.problem("nothing more was expected", "put EMIT EMPTY, LATE and ALLOW at the very end")
    return tokens[:cut], suffixes


def _depths(tokens: list[Token]) -> list[tuple[int, int]]:
    """Each token's index with the number of brackets around it."""
    found, depth = [], 0
    for at, token in enumerate(tokens):
        depth -= token.token_type in _CLOSE
        found.append((at, depth))
        depth += token.token_type in _OPEN
    return found
