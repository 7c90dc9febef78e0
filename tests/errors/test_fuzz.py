"""Whatever text is given, it is read and bound, or refused in our own words: never anybody else's exception."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.core.errors import PanewiseError
from panewise.cql import bind_query, bind_script
from panewise.runtime.local import run
from tests.errors.inputs import STREAMS

#: Warnings are words of our own, too.
pytestmark = pytest.mark.filterwarnings("ignore::panewise.PanewiseWarning")

QUERIES = (
    "SELECT k, COUNT(*), AVG(v) + 1 AS m FROM S [RANGE 3 SLIDE 2] WHERE v > 1 GROUP BY k HAVING COUNT(*) > 0",
    "SELECT ISTREAM DISTINCT k, UPPER(k) || 'x' FROM S AS x [PARTITION BY k ROWS 2 LAG 1]",
    "SELECT x.v, y.w FROM S AS x [NOW], T y [UNBOUNDED START AT 3] WHERE x.k = y.k AND x.v + 0 >= y.w",
    "SELECT QUANTILE(v, 0.5) q, REGR_SLOPE(v) FROM S [RANGES 4, 2 SLIDES 2, 1 START AT 1] GROUP BY k, 1 EMIT EMPTY",
    "RSTREAM(SELECT v FROM (SELECT v FROM S WHERE v > 10) z [ROWS 1])",
    "SELECT SUM(v) FROM S [RANGE (CASE WHEN now < 3 THEN 1 ELSE 3 END) SLIDE 1] LATE REVISE 5",
    "SELECT k FROM S [WHERE v > 10 AND k LIKE 'a%'] EXCEPT ALL (SELECT k FROM T [SESSION 3] UNION ALL SELECT k FROM S)",
    "SELECT COUNT(DISTINCT k) FROM E [CUMULATE 1 DAY STEP 1 HOUR] -- a comment\nLATE DROP",
    "SELECT S.*, T.w FROM S [FROM 1 UNTIL 9 SLIDE 2] JOIN T [UNTIL 5] ON S.k = T.k JOIN E [NOW] USING (k)",
    "SELECT k, SUM(v) FROM S [FRAME WHILE v > 1 FOR AT LEAST 2 ROWS PARTITION BY k FRAGMENTS EVERY 5 EXTENT LIBERAL]",
    "SELECT * FROM S [FRAME WHILE price < 4.5 WITH SOME v > 5 FOR AT MOST 9 EVERY 1 MISSING FAILS DUPLICATES LAST]",
    "SELECT AVG(v) FROM S [FRAME EVERY 0.5 OF price COVER DRAINED] WHERE v > 1 GROUP BY tags[0] HAVING COUNT(*) > 0",
    "SELECT MAX(v) FROM S [FRAME DELTA v >= 2 ADJACENT 3 AS INTERVALS]",
    "SELECT ISTREAM COUNT(*) FROM S [FRAME SUM(v) >= 30 MINIMAL ADVANCING PARTITION BY k, price]",
    "SELECT COUNT(v) FROM S [FRAME FLAT v WITHIN 0.5 MAXIMUM DUPLICATES AVG]",
    "SELECT * FROM E [FRAME START WHEN k = 'a' END WHEN v > 1 ON START CONTINUE FOR AT LEAST 5 SECONDS]",
    "SELECT COUNT(*) FROM E [FRAME DENSITY 2 PER 2 MINUTES CHANCE 0.05 EXPECTED 1.5]",
    "SELECT MIN(v) FROM S [FRAME AT (-1, 0, 2.5) OF v UNCONSTRAINED SATURATED], T",
    "SELECT `v`, CAST(price AS BIGINT), tags[0] FROM S [RANGE INTERVAL '5' SECONDS]",
)
SCRIPT = """
CREATE STREAM s (ts TIMESTAMP, k STRING, v DECIMAL(10, 2)) TIME ts DELAY 5 SECONDS FROM 'parquet:s/';
CREATE VIEW big AS SELECT ts, v FROM s WHERE v > 3;
CREATE QUERY q AS SELECT k, MAX(v) AS top FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY k INTO 'parquet:out/';
SELECT COUNT(*) FROM big [RANGE 1 HOUR];
"""
TOKEN = re.compile(r"\w+|'[^']*'|\s+|.", re.DOTALL)
WORDS = sorted({token for text in (*QUERIES, SCRIPT) for token in TOKEN.findall(text)})
SCHEMAS = {name: stream.schema for name, stream in STREAMS.items()}
SPICE = [
    "'",
    '"',
    "`",
    "(",
    ")",
    "[",
    "]",
    "[]",
    "/*",
    "--",
    ";",
    ",",
    ".",
    "*",
    "\\",
    "{{",
    "\x00",
    "é",
    "1e999",
    "$$",
]
noise = st.sampled_from(WORDS) | st.sampled_from(SPICE) | st.text(max_size=3)


@st.composite
def mutated(draw: st.DrawFn, texts: tuple[str, ...]) -> str:
    """A valid text in which a few tokens were deleted, doubled, exchanged or replaced."""
    tokens = TOKEN.findall(draw(st.sampled_from(texts)))
    for _ in range(draw(st.integers(1, 4))):
        at, other = (draw(st.integers(0, len(tokens) - 1)) for _ in range(2))
        match draw(st.sampled_from(("delete", "double", "exchange", "replace", "insert", "cut"))):
            case "delete" if len(tokens) > 1:
                del tokens[at]
            case "double":
                tokens.insert(at, tokens[at])
            case "exchange":
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case "replace":
                tokens[at] = draw(noise)
            case "cut" if at:
                del tokens[at:]
            case _:
                tokens.insert(at, f" {draw(noise)} ")
    return "".join(tokens)


def check(problem: PanewiseError) -> None:
    assert "\n" not in problem.message.replace(repr("\n"), "")
    assert problem.place is None or (problem.place.line > 0 and problem.place.column > 0)


@pytest.mark.slow
@settings(max_examples=2500, deadline=None)
@given(mutated(QUERIES))
def test_a_query_is_bound_or_refused(text: str) -> None:
    try:
        bind_query(text, SCHEMAS)
    except PanewiseError as problem:
        check(problem)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(mutated(QUERIES))
def test_a_query_is_answered_or_refused(text: str) -> None:
    try:
        run(text, STREAMS)
    except PanewiseError as problem:
        check(problem)


@settings(max_examples=700, deadline=None)
@given(mutated((SCRIPT,)))
def test_a_script_is_bound_or_refused(text: str) -> None:
    try:
        bind_script(text)
    except PanewiseError as problem:
        check(problem)


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=40) | st.lists(noise, max_size=12).map(" ".join))
def test_noise_is_refused(text: str) -> None:
    try:
        bind_script(text)
    except PanewiseError as problem:
        check(problem)
