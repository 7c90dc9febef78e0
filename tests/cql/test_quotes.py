"""Single quotes are text, double quotes and backquotes are names, and both survive being written again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.cql import inline_columns, parse_query, render, translate_scalar
from panewise.cql.dialect import name_text, string_text

HOSTS = pa.table(
    {
        "ts": [1, 2, 3, 4],
        "id.orig_h": ["10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.3"],
        "Customer Name": ["ann", "bob", "ann", "ann"],
        "it's": [1, 2, 3, 4],
    }
)
#: Texts as they are written, and what they are: the rule of Spark SQL, and the doubled quote of the standard.
TEXTS = {
    "'it''s'": "it's",
    r"'it\'s'": "it's",
    "''''": "'",
    "''": "",
    "'say \"hi\"'": 'say "hi"',
    r"'a\\b'": "a\\b",
    r"'a\nb\tc'": "a\nb\tc",
    r"'\d+'": "d+",
    r"'\\d+'": r"\d+",
    r"r'\d+'": r"\d+",
    r"'\u0041'": "A",
    "'`x`'": "`x`",
    "'-- no comment'": "-- no comment",
    "'[ROWS 1]; '": "[ROWS 1]; ",
}


def ask(text: str) -> Any:
    return pw.run(text, {"S": HOSTS}, time="ts").to_pylist()


@pytest.mark.parametrize("name", ['"id.orig_h"', "`id.orig_h`", 'S."id.orig_h"', '"S"."id.orig_h"'])
def test_a_doubly_quoted_column_is_counted(name: str) -> None:
    (row,) = ask(f"SELECT COUNT(DISTINCT {name}) AS n FROM S [RANGE 4 SLIDE 4]")
    assert row["n"] == 3


def test_a_doubly_quoted_column_groups() -> None:
    rows = ask('SELECT "Customer Name", COUNT(*) AS "how many" FROM S [RANGE 4 SLIDE 4] GROUP BY "Customer Name"')
    assert [(row["Customer Name"], row["how many"]) for row in rows] == [("ann", 3), ("bob", 1)]


@pytest.mark.parametrize("quote", ['"', "`"])
def test_windows_frames_and_streams_take_quoted_names(quote: str) -> None:
    name = f"{quote}Customer Name{quote}"
    rows = ask(f"SELECT ISTREAM ts AS at FROM {quote}S{quote} [PARTITION BY {name} ROWS 1 LAG 1]")
    assert [row["at"] for row in rows] == [1, 3]
    rows = ask(f"SELECT COUNT(*) AS n FROM S [FRAME WHILE {name} = 'ann' PARTITION BY {name}]")
    assert [row["n"] for row in rows] == [3]


@pytest.mark.parametrize(("written", "meant"), TEXTS.items())
def test_text_is_read_by_one_rule(written: str, meant: str) -> None:
    (row,) = ask(f"SELECT {written} AS x, LENGTH({written}) AS n, COUNT(*) AS c FROM S [RANGE 4 SLIDE 4]")
    assert (row["x"], row["n"]) == (meant, len(meant))


@pytest.mark.parametrize("written", TEXTS)
def test_text_survives_being_written_again(written: str) -> None:
    query = parse_query(f"SELECT {written} FROM S WHERE `k` = {written}")
    assert parse_query(render(query)) == query


def test_names_reach_other_engines_in_their_own_quotes() -> None:
    assert inline_columns("\"it's\" || 'it''s'", {"it's": name_text("it's")}) == "`it's` || 'it\\'s'"
    assert "_0 || 'it''s'" in translate_scalar("\"it's\" || 'it''s'", (("it's", pa.string()),)).sql


@pytest.mark.parametrize("text", ["it's", "a\\b", "\\", "'", '"', "\n", "`"])
def test_quoted_text_is_read_back(text: str) -> None:
    (row,) = ask(f"SELECT {string_text(text)} AS x, COUNT(*) AS n FROM S [RANGE 4 SLIDE 4]")
    assert row["x"] == text
