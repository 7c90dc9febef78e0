"""The table of habits: every row is shown by a case, no row hides what is valid, and what it advises can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from panewise.aggregate import AGGREGATES
from panewise.core.errors import SyntaxProblem
from panewise.cql import parse_query
from panewise.cql.habits import ADDED_COLUMNS, FUNCTIONS, HABITS, Habit

CASES = (Path(__file__).parents[1] / "errors" / "cases" / "habits.query.txt").read_text()
ADVICE = re.findall(r"^.*; write (\w* ?\[[^.\]]*\])", CASES, re.MULTILINE)


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.words)
def test_every_habit_has_a_case(habit: Habit) -> None:
    spaced = re.sub(r"([\[\](),.#])", r" \1 ", CASES)
    assert habit.pattern.search(re.sub(r"\s+", " ", re.sub(r"'(\w+) (\w+)'", "'\\1\x01\\2'", spaced)))


@pytest.mark.parametrize("advice", sorted(set(ADVICE)))
def test_what_is_advised_can_be_read(advice: str) -> None:
    parse_query(f"SELECT COUNT(*) FROM {advice if advice[0] != '[' else 'E ' + advice}")


def test_no_habit_is_a_function_of_ours() -> None:
    assert not set(FUNCTIONS) & set(AGGREGATES)
    assert not set(ADDED_COLUMNS) & set(AGGREGATES)
    for ours in FUNCTIONS.values():
        assert ours.partition("(")[0] in AGGREGATES


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUBSTRING(k FROM 2 FOR 3), a[0] FROM S",
        "SELECT v AS average, percentile, w_end FROM S WHERE window > 1",
        "SELECT 'window(ts, ''5 minutes'')', k FROM S WHERE k = '[TUMBLE 5 MINUTES]'",
        "SELECT `window`, \"FOR 5 MINUTES\" FROM S -- GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE)",
        "SELECT COUNT(*), v * (2) FROM hop [RANGE 5 SLIDE 1]",
        "SELECT COUNT(*) FROM S [FRAME WHILE v > 1 FOR AT LEAST 5 EVERY 5 MISSING FAILS]",
        "SELECT COUNT(*) FROM tumble AS last [CUMULATE 5 STEP 1]",
    ],
)
def test_what_only_looks_like_a_habit_is_read(text: str) -> None:
    parse_query(text)


def test_a_habit_in_any_spelling_is_recognised() -> None:
    with pytest.raises(SyntaxProblem) as told:
        parse_query("select count(*)\nfrom `my stream`\n  ( -- five\n Range 5min  slide 60s )")
    assert str(told.value).endswith("write `my stream` [Range 5min slide 60s]")
    assert (told.value.place.line, told.value.place.column) == (2, 6) if told.value.place else False
