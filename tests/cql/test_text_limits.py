"""Texts that would keep a reader busy for minutes are refused at once, in a sentence."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import PanewiseError
from panewise.cql import bind_query, bind_script, parse_query, parse_script
from panewise.cql.limits import MAX_CHARACTERS, MAX_DEPTH, MAX_OPERATORS, MAX_SELECTS, MAX_WORDS

STREAMS = {"S": pw.StreamSchema(pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())]), "t", 0)}
FROM = "FROM S [RANGE 20 SLIDE 5] GROUP BY k"

#: Texts with something in them so many times.
TEXTS: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: f"SELECT k, {'(' * n}SUM(v){')' * n} AS s {FROM}",
    "open parentheses": lambda n: f"SELECT k, {'(' * n}",
    "functions": lambda n: f"SELECT k, {'ABS(' * n}SUM(v){')' * n} AS s {FROM}",
    "brackets": lambda n: f"SELECT k, SUM(v) AS s {FROM} HAVING {'[' * n}1{']' * n} = SUM(v)",
    "cases": lambda n: f"SELECT k, {'CASE WHEN SUM(v) > 1 THEN ' * n}1{' END' * n} AS s {FROM}",
    "additions": lambda n: f"SELECT k, SUM(v){' + 1' * n} AS s {FROM}",
    "negations": lambda n: f"SELECT k, SUM(v) AS s {FROM} HAVING {'NOT ' * n}SUM(v) > 1",
    "minus signs": lambda n: f"SELECT k, {'- ' * n}SUM(v) AS s {FROM}",
    "conditions": lambda n: f"SELECT k, SUM(v) AS s {FROM} HAVING {' AND '.join(['SUM(v) > 1'] * n)}",
    "unions": lambda n: " UNION ALL ".join(["SELECT v FROM S [RANGE 5]"] * n),
    "sub-queries": lambda n: "SELECT v FROM (" * n + "SELECT v FROM S [RANGE 5]" + ")" * n,
    "columns": lambda n: f"SELECT k, {', '.join(f'SUM(v) + {i} AS s{i}' for i in range(n))} {FROM}",
    "streams": lambda n: f"SELECT a0.v FROM {', '.join(f'S [RANGE 5] AS a{i}' for i in range(n))}",
    "blanks": lambda n: " " * 100 * n + f"SELECT k {FROM}",
}


@pytest.mark.timed
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_ten_thousand_of_anything_are_refused_at_once(text: Callable[[int], str]) -> None:
    written = text(10_001)
    start = time.process_time()
    with pytest.raises(PanewiseError) as caught:
        bind_query(written, STREAMS)
    assert time.process_time() - start < 2
    assert caught.value.fix
    assert caught.value.place is not None
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (f"nested more than {MAX_DEPTH} deep", TEXTS["parentheses"](MAX_DEPTH + 1)),
        (f"more than {MAX_OPERATORS} operators in a row", TEXTS["additions"](MAX_OPERATORS + 1)),
        (f"more than {MAX_SELECTS} SELECTs", TEXTS["unions"](MAX_SELECTS + 1)),
        (f"more than {MAX_WORDS:,} words", TEXTS["columns"](MAX_WORDS // 7)),
        (f"more than {MAX_CHARACTERS:,} characters", " " * (MAX_CHARACTERS + 1)),
        ("FROM has more than 100 streams", TEXTS["streams"](101)),
    ],
)
def test_a_statement_beyond_a_bound_is_refused_by_it(message: str, text: str) -> None:
    with pytest.raises(PanewiseError, match=message):
        bind_query(text, STREAMS)


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("parentheses", MAX_DEPTH - 1),
        ("functions", MAX_DEPTH - 1),
        ("cases", MAX_DEPTH - 1),
        ("additions", 60),
        ("unions", 60),
    ],
)
def test_a_statement_within_the_bounds_is_read(kind: str, count: int) -> None:
    bind_query(TEXTS[kind](count), STREAMS)


def test_a_long_list_and_many_statements_are_no_long_row() -> None:
    listed = ", ".join(str(number) for number in range(5000))
    parse_query(f"SELECT k, SUM(v) AS s {FROM} HAVING SUM(v) IN ({listed})")
    statement = f"CREATE QUERY q{{}} AS {TEXTS['additions'](100)};"
    assert len(parse_script("".join(statement.format(n) for n in range(20))).statements) == 20


#: Views of which each reads the one before it twice, or once.
DOUBLED = "CREATE VIEW v{} AS SELECT a.v FROM v{} a, v{} b WHERE a.v = b.v;\n"
UNITED = "CREATE VIEW v{} AS SELECT v FROM v{} UNION ALL SELECT v FROM v{};\n"
CHAINED = "CREATE VIEW v{} AS SELECT v FROM v{};\n"


def views_over(view: str, count: int) -> str:
    """A script whose views read each other."""
    first = "CREATE STREAM S (t BIGINT, v BIGINT) TIME t; CREATE VIEW v0 AS SELECT v FROM S [RANGE 5];\n"
    return first + "".join(view.format(n, n - 1, n - 1) for n in range(1, count))


@pytest.mark.timed
@pytest.mark.parametrize("view", [DOUBLED, UNITED, CHAINED], ids=["joined", "united", "chained"])
def test_views_that_read_each_other_are_refused_before_they_are_written_out(view: str) -> None:
    start = time.process_time()
    with pytest.raises(
        PanewiseError, match=f"views written out the query has more than {MAX_SELECTS} SELECTs"
    ) as caught:
        bind_script(views_over(view, 150))
    assert time.process_time() - start < 10
    assert caught.value.place is not None


def test_views_within_the_bounds_are_read() -> None:
    script = views_over(DOUBLED, 5) + "CREATE QUERY q AS SELECT v FROM V4;"
    assert bind_script(script).queries["q"].alone.count("SELECT") == 32
