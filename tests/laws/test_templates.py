"""Texts that differ in numbers only are bound from a template: to the same query, or with the same error."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, product

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import panewise as pw
from panewise.algebra import Query
from panewise.core.errors import PanewiseError
from panewise.cql import bind_query
from panewise.cql.templates import TemplateBinder

COLUMNS = {
    "t": pa.int64(),
    "k": pa.string(),
    "v": pa.int64(),
    "i": pa.int32(),
    "x": pa.float64(),
    "d": pa.decimal128(9, 2),
    "large": pa.decimal128(38, 10),
}
STREAMS = {
    "S": pw.StreamSchema(pa.schema(COLUMNS), time="t"),
    "T": pw.StreamSchema(pa.schema({**COLUMNS, "t": pa.timestamp("us")}), time="t"),
}

#: Clauses in which ? is a number.
WINDOWS = [
    "S", "S [RANGE ?]", "S [RANGE ? SLIDE ?]", "S [RANGE ? SLIDE ? LAG ?]", "S [RANGE ? START AT ?]", "S [ROWS ?]",
    "S [RANGE ? LAG -?]", "S [PARTITION BY k ROWS ? LAG ?]", "S [SESSION ?]", "S [RANGES ?, ? SLIDES ?, ?]",
    "S [CUMULATE ? STEP ?]", "S [RANGE (? + now % ?) SLIDE ?]", "S [WHERE v > ?]", "T [RANGE ? SECONDS SLIDE ? SECOND]",
    "T [RANGE ?]", "T [RANGE ?s SLIDE ? ms]", "S [RANGE ? SECONDS]", "S [FRAME v > ? FOR AT LEAST ?]",
    "S [UNBOUNDED SLIDE ?]", "S [RANGE ?], T [RANGE ? SECONDS]", "(SELECT v, k FROM S WHERE v > ?) [RANGE ?]",
]  # fmt: skip
CONDITIONS = [
    "v > ?", "x <= -?", "d = ?", "large <> ?", "k = '?'", "k > ?", "v BETWEEN ? AND ?", "i IN (?, ?)", "v % ? = ?",
    "d * ? > ?", "NOT (v > ? OR x < ?)", "ROUND(d, ?) > ?", "v + ? > v * ?", "CAST(v AS DECIMAL(?, 2)) > ?",
    "LENGTH(k) > ?", "v > - (?)", "? < v", "v > ?e3", "v IS NULL", "v > ? AND ?", "SUBSTR(k, ?) = k", "v / ? > ?",
]  # fmt: skip
ITEMS = [
    "k", "SUM(v)", "SUM(v * ?)", "SUM(d * ?) AS a", "SUM(d) + ?", "AVG(v) / ? AS `b`", "COUNT(*) > ?", "QUANTILE(x, ?)",
    "TOP_K(k, ?)", "TOP_K(k, ? + ?)", "?", "MAX(v) - ?", "v % ? AS j", "MAX(CASE WHEN v > ? THEN ? ELSE ? END)",
    "d + ?", "SUM(v * ?) + SUM(v * ?)", "REGR_SLOPE(v, t)", "VAR(v - ?)", "large * ?", "COUNT(DISTINCT v % ?)",
    '"v" + ?', "v", "*",
]  # fmt: skip
GROUPS = ["k", "v % ?", "?", "d + ?", "j", "k, v > ?"]
HAVINGS = ["SUM(v) > ?", "COUNT(*) BETWEEN ? AND ?", "SUM(v * ?) < ?", "a > ?", "MAX(d) * ? > ?"]
SUFFIXES = ["", " EMIT EMPTY", " LATE REVISE ?", " ALLOW UNBOUNDED", " -- ?", ";"]
NUMBERS = st.one_of(
    st.integers(0, 12).map(str),
    st.sampled_from(["1", "2", "10", "60", "3600", "007", "0.5", "1.5", "2.50", "12.25", "0.05", "0.0", "999999999"]),
    st.sampled_from(["2147483648", "12345678901234567890", "1e3", ".5", "5.", "1.2345678901", "100000000", "1_000"]),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    items = draw(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=3))
    text = f"SELECT {', '.join(items)} FROM {draw(st.sampled_from(WINDOWS))}"
    for word, parts in (("WHERE", CONDITIONS), ("GROUP BY", GROUPS), ("HAVING", HAVINGS)):
        if draw(st.booleans()):
            text += f" {word} {draw(st.sampled_from(parts))}"
    return text + draw(st.sampled_from([""] * 5 + SUFFIXES))


def fill(text: str, numbers: list[str]) -> str:
    left = cycle(numbers)
    return "".join(next(left) if c == "?" else c for c in text)


def outcome(bind: Callable[[str], Query], text: str) -> object:
    try:
        query = bind(text)
    except PanewiseError as problem:
        return type(problem), str(problem)
    return query, query.place, repr(query), [(c.name, c.type) for c in query.root.columns]


@given(texts(), st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=2, max_size=5))
@example("SELECT v % ? AS j, SUM(v) FROM S [RANGE ?] GROUP BY v % ?", [["5", "9", "5"], ["7", "9", "6"]])
@example("SELECT SUM(v * ?) FROM T [RANGE ?s SLIDE ? ms]", [["2", "1", "2"], ["3", "1", "2"]])
@example("SELECT SUM(d * ?) FROM T [RANGE ? SECONDS] WHERE x > ?", [["0.2", "1.0", ".1"], ["0.3", "1.0", ".1"]])
def test_texts_are_bound_from_a_template_as_without_one(text: str, numbers: list[list[str]]) -> None:
    binder = TemplateBinder(STREAMS)
    for some in numbers:
        written = fill(text, some)
        assert outcome(binder.query, written) == outcome(lambda t: bind_query(t, STREAMS), written)


@pytest.mark.parametrize("item", ITEMS)
def test_every_clause_is_bound_from_a_template_as_without_one(item: str) -> None:
    texts = [f"SELECT {item} AS a FROM {window} GROUP BY k" for window in WINDOWS]
    texts += [f"SELECT {item} AS a FROM S WHERE {condition} GROUP BY k" for condition in CONDITIONS]
    texts += [
        f"SELECT {item} AS a FROM S [RANGE 9] GROUP BY {key} HAVING {having}" for key in GROUPS for having in HAVINGS
    ]
    binder, numbers = (
        TemplateBinder(STREAMS),
        (["9", "2", "10"], ["8", "3", "60"], ["1.5", "2", "2.50"], ["0", "1", "2"]),
    )
    for text, some in product(texts, numbers):
        written = fill(text, some)
        assert outcome(binder.query, written) == outcome(lambda t: bind_query(t, STREAMS), written)


def test_pools_explain_queries_from_templates_as_others() -> None:
    one, other = pw.Pool(STREAMS), pw.Pool(STREAMS)
    for n in range(1, 30):
        text = (
            f"SELECT k, SUM(v) AS s FROM S [RANGE {6 * n} SLIDE {n}] WHERE v > {n % 3} GROUP BY k HAVING SUM(v) > {n}"
        )
        one.register(f"q{n}", text)
        other.register(f"q{n}", bind_query(text, STREAMS))
    assert one.explain() == other.explain()


def test_a_text_with_other_numbers_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    binder = TemplateBinder(STREAMS)
    text = "SELECT k, SUM(v) AS s FROM S [RANGE {} SLIDE {}] WHERE v > {} GROUP BY k HAVING COUNT(*) > {}"
    binder.query(text.format(60, 10, 5, 7))
    monkeypatch.delattr("panewise.cql.templates.bind_query")
    assert binder.query(text.format(61, 11, 2.5, 8)).windows[0].window.longest == 61
