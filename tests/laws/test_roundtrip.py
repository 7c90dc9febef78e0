"""parse(render(q)) = q, for syntax built at random and for the queries of the papers; both bind to the same algebra."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.core.time import UNITS, Boundary, Duration
from panewise.cql import bind_query, parse_query, parse_script, render
from panewise.cql.clauses import WindowClause
from panewise.cql.clauses.frame import FrameClause
from panewise.cql.clauses.frame_conditions import CHOICES, SCHEMES, SPANS, LengthSyntax
from panewise.cql.clauses.frame_kinds import (
    BetweenSyntax,
    BoundarySyntax,
    CustomSyntax,
    DeltaSyntax,
    DensitySyntax,
    KindSyntax,
    ReachSyntax,
    TrendSyntax,
    WhileSyntax,
)
from panewise.cql.clauses.rows import RowLevelsClause, RowsClause
from panewise.cql.clauses.windows import (
    CumulateClause,
    LandmarkClause,
    LevelsClause,
    NowClause,
    RangeClause,
    SessionClause,
    VaryingClause,
    WhereClause,
)
from panewise.cql.dialect import canonical, parse_scalar
from panewise.cql.syntax import (
    Body,
    CreateQuery,
    CreateStream,
    CreateView,
    Expr,
    FromItem,
    QuerySyntax,
    ScriptSyntax,
    SelectItem,
    SelectSyntax,
    SetBoundary,
    SetSyntax,
    Statement,
)

from .strategies import SCHEMA, WINDOWS, Spec

# ---- a grammar of syntax ---------------------------------------------------------------------------------------------

NAMES = st.one_of(
    st.sampled_from(
        [
            "S",
            "trades",
            "select",
            "FROM",
            "two words",
            "it's",
            'say "hi"',
            "tick`s",
            "a.b",
            "x]y",
            "a;b",
            "--",
            "Ω",
            "1st",
        ]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=6),
)
STRINGS = st.one_of(
    st.sampled_from(["it's", "a\\b", "\\", "'", "", "semi;colon", "[ROWS 1]", 'double "quotes"', "-- no comment"]),
    st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=8),
)
SCALARS = st.sampled_from(
    [
        "v", "S.v", "v + 1", "-v", "v * 2 - x", "(v + 1) * 2", "v > 1 AND NOT k = 'a'", "k IS NULL OR v IN (1, 2)",
        "CASE WHEN v > 0 THEN 'up' ELSE 'down' END", "COALESCE(v, 0)", "k = 'it\\'s'", "`odd name` = 1",
        "v BETWEEN 1 AND 2", "CAST(v AS DOUBLE)", "v % 3 = 0", "k LIKE 'a%'",
        "ABS(v) >= 1.5", "v DIV 2", "1e3", "NULL", "true", "a[0]",
        "load > 1", "`comment` = 'x'", "set + 1",
        "k = '[ROWS 3]'", "k = ';'", "UPPER(k) || 'x'", "v <=> x", "INTERVAL '1' DAY",
    ]
)  # fmt: skip
CALLS = st.sampled_from(
    ["COUNT(*)", "SUM(v)", "AVG(v) + 1", "COUNT(DISTINCT k)", "QUANTILE(v, 0.95)", "MAX(v) - MIN(v)",
     "REGR_SLOPE(v, x)", "FIRST(v)", "LAST(v)", "STDDEV(v)", "VAR_POP(v)", "MEDIAN(x)"]
)  # fmt: skip


def expr(text: str) -> Expr:
    node = parse_scalar(text)
    return Expr(canonical(node), node)


EXPRS = SCALARS.map(expr)
COUNTS = st.one_of(st.integers(1, 10**6).map(Fraction), st.integers(1, 10**6).map(lambda n: Fraction(n, 1000)))
DURATIONS = st.builds(Duration, COUNTS, st.one_of(st.none(), st.sampled_from(sorted(UNITS))))
INSTANTS = st.one_of(st.integers(-(10**6), 10**6), st.sampled_from(["07:00:00", "2026-01-31 07:00:00", "it's"]))
MAYBE_INSTANT = st.one_of(st.none(), INSTANTS)
MAYBE_DURATION = st.one_of(st.none(), DURATIONS)
ROW_COUNTS = st.integers(1, 1000)
COLUMNS = st.lists(NAMES, max_size=2).map(tuple)


@st.composite
def levels(draw: st.DrawFn) -> LevelsClause:
    size = draw(st.integers(1, 3))
    several = st.lists(DURATIONS, min_size=size, max_size=size).map(tuple)
    return LevelsClause(draw(several), draw(several), draw(MAYBE_INSTANT))


@st.composite
def row_levels(draw: st.DrawFn) -> RowLevelsClause:
    size = draw(st.integers(1, 3))
    several = st.lists(ROW_COUNTS, min_size=size, max_size=size).map(tuple)
    return RowLevelsClause(draw(several), draw(several), draw(COLUMNS))


NUMBERS = st.one_of(st.integers(-99, 99).map(str), st.sampled_from(["0.5", "-2.25", "1e3", "100000000000000000001"]))
KINDS: st.SearchStrategy[KindSyntax] = st.one_of(
    st.builds(WhileSyntax, EXPRS),
    st.builds(BoundarySyntax, EXPRS, NUMBERS),
    st.builds(BoundarySyntax, EXPRS, st.none(), st.lists(NUMBERS, min_size=1, max_size=3).map(tuple)),
    st.builds(DeltaSyntax, EXPRS),
    st.builds(ReachSyntax, CALLS.map(lambda call: expr(f"{call} >= 4"))),
    st.builds(TrendSyntax, st.sampled_from(["RISING", "FALLING", "FLAT"]), EXPRS, st.one_of(st.none(), NUMBERS)),
    st.builds(DensitySyntax, st.integers(-9, 99), DURATIONS),
    st.builds(DensitySyntax, st.integers(2, 99), DURATIONS, NUMBERS, NUMBERS),
    st.builds(BetweenSyntax, EXPRS, EXPRS, st.sampled_from([None, "CLOSE", "DROP", "CONTINUE"])),
    st.builds(CustomSyntax, STRINGS, EXPRS),
)
LENGTHS = st.one_of(st.none(), st.builds(LengthSyntax, st.one_of(DURATIONS, st.integers(-9, 999))))


@st.composite
def frames(draw: st.DrawFn) -> FrameClause:
    """Frames of every kind with any conditions, whether they make sense together or not."""

    def maybe(*words: str) -> str | None:
        return draw(st.sampled_from([None, *words]))

    scheme, every = maybe(*SCHEMES), draw(MAYBE_DURATION)
    return FrameClause(
        draw(KINDS),
        draw(COLUMNS),
        draw(st.one_of(st.none(), EXPRS)),
        draw(LENGTHS),
        draw(LENGTHS),
        maybe(*SPANS),
        scheme,
        maybe(*CHOICES),
        draw(DURATIONS) if scheme == "ADJACENT" else None,
        maybe("CONSERVATIVE", "LIBERAL"),
        maybe("POINTS", "INTERVALS"),
        every,
        maybe("FAILS", "QUALIFIES", "NEIGHBOURS") if every else None,
        maybe("KEEP", "ERROR", "FIRST", "LAST", "AVG", "MIN", "MAX", "SUM"),
        draw(LENGTHS),
    )


CLAUSES: st.SearchStrategy[WindowClause] = st.one_of(
    frames(),
    st.just(NowClause()),
    st.builds(RangeClause, DURATIONS, MAYBE_DURATION, MAYBE_DURATION, MAYBE_INSTANT),
    levels(),
    st.builds(VaryingClause, EXPRS, DURATIONS),
    st.builds(LandmarkClause, MAYBE_INSTANT, MAYBE_INSTANT, MAYBE_DURATION),
    st.builds(RowsClause, ROW_COUNTS, st.one_of(st.none(), ROW_COUNTS), st.integers(0, 10), COLUMNS),
    row_levels(),
    st.builds(SessionClause, DURATIONS, COLUMNS),
    st.builds(CumulateClause, DURATIONS, DURATIONS, MAYBE_INSTANT),
    st.builds(WhereClause, EXPRS),
)
EMITS = st.sampled_from([None, "ISTREAM", "DSTREAM", "RSTREAM"])
ITEMS = st.builds(SelectItem, st.one_of(EXPRS, CALLS.map(expr)), st.one_of(st.none(), NAMES))
STARS = st.sampled_from(["*", "S.*"]).map(lambda star: SelectItem(Expr(star, parse_scalar("v"))))


def refs(bodies: st.SearchStrategy[Body] | None) -> st.SearchStrategy[FromItem]:
    window = st.one_of(st.none(), CLAUSES)
    named = st.builds(FromItem, NAMES, st.one_of(st.none(), NAMES), window)
    if bodies is None:
        return named
    nested = st.builds(FromItem, bodies, st.one_of(st.none(), NAMES), window, EMITS)
    return st.one_of(named, nested)


def selects(bodies: st.SearchStrategy[Body] | None) -> st.SearchStrategy[Body]:
    maybe = st.one_of(st.none(), EXPRS)
    return st.builds(
        SelectSyntax,
        st.lists(st.one_of(ITEMS, STARS), min_size=1, max_size=3).map(tuple),
        st.lists(refs(bodies), min_size=1, max_size=2).map(tuple),
        maybe,
        st.lists(EXPRS, max_size=2).map(tuple),
        maybe,
        st.booleans(),
    )


def deeper(bodies: st.SearchStrategy[Body]) -> st.SearchStrategy[Body]:
    chains = st.builds(SetSyntax, st.sampled_from(["UNION ALL", "EXCEPT ALL"]), bodies, bodies)
    return st.one_of(selects(bodies), chains)


BODIES: st.SearchStrategy[Body] = st.recursive(selects(None), deeper, max_leaves=4)
QUERIES = st.builds(QuerySyntax, BODIES, EMITS, st.booleans(), MAYBE_DURATION)
TYPES = st.sampled_from(["BIGINT", "STRING", "DOUBLE", "TIMESTAMP", "DECIMAL(10,2)"])
STATEMENTS: st.SearchStrategy[Statement] = st.one_of(
    st.builds(
        CreateStream,
        NAMES,
        st.lists(st.tuples(NAMES, TYPES), min_size=1, max_size=3, unique_by=lambda c: c[0].lower()).map(tuple),
        NAMES,
        MAYBE_DURATION,
        st.one_of(st.none(), STRINGS.filter(bool)),
    ),
    st.builds(CreateStream, NAMES, st.just(()), NAMES, MAYBE_DURATION, STRINGS.filter(bool)),
    st.builds(SetBoundary, st.sampled_from(Boundary)),
    st.builds(CreateView, NAMES, QUERIES),
    st.builds(CreateQuery, NAMES, QUERIES, *[st.one_of(st.none(), STRINGS.filter(bool))] * 2),
    QUERIES,
)


@settings(max_examples=400)
@given(CLAUSES)
def test_windows_survive(clause: WindowClause) -> None:
    query = QuerySyntax(SelectSyntax((SelectItem(expr("v")),), (FromItem("S", None, clause),)))
    assert parse_query(render(query)) == query


@pytest.mark.slow
@settings(max_examples=600)
@given(frames())
def test_frames_survive(clause: FrameClause) -> None:
    query = QuerySyntax(SelectSyntax((SelectItem(expr("v")),), (FromItem("S", None, clause),)))
    assert parse_query(render(query)) == query


@pytest.mark.slow
@settings(max_examples=300)
@given(QUERIES)
def test_queries_survive(query: QuerySyntax) -> None:
    assert parse_query(render(query)) == query


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(STATEMENTS, min_size=1, max_size=3).map(tuple))
def test_scripts_survive(statements: tuple[Statement, ...]) -> None:
    script = ScriptSyntax(statements)
    assert parse_script(render(script)) == script


# ---- queries as people write them ------------------------------------------------------------------------------------

STREAMS = {name: pw.StreamSchema(SCHEMA, "t") for name in ("S", "T")}

PAPERS = [
    "SELECT * FROM S [RANGE 60 SLIDE 5]",
    "SELECT k, AVG(v) AS mean FROM S [RANGE 60 SLIDE 60] GROUP BY k HAVING AVG(v) > 20",
    "SELECT COUNT(*) FROM S [UNBOUNDED START AT 7]",
    "SELECT MAX(v) FROM S [FROM 10 UNTIL 20]",
    "SELECT MAX(v) FROM S [UNTIL 20 SLIDE 2]",
    "SELECT k, v FROM S [PARTITION BY k ROWS 1000]",
    "SELECT v FROM S [ROWS 500 LAG 100]",
    "SELECT v FROM S [RANGE 120 LAG 60]",
    "SELECT X.v, Y.v FROM S AS X [RANGE 60], T AS Y [NOW] WHERE X.k = Y.k AND X.v > Y.v",
    "SELECT X.v FROM S X [RANGE 60] JOIN T Y [ROWS 10] ON X.k = Y.k WHERE X.v > 1 OR Y.v > 1",
    "SELECT X.v FROM S X [RANGE 60] JOIN T Y [ROWS 10] USING (k)",
    "ISTREAM(SELECT DISTINCT k FROM S [RANGE 60])",
    "SELECT ISTREAM DISTINCT k FROM S [RANGE 60]",
    "SELECT DSTREAM k FROM S [ROWS 10]",
    "SELECT k FROM S [RANGE 5] UNION ALL SELECT k FROM T [RANGE 5] EXCEPT ALL SELECT k FROM S [ROWS 1]",
    "SELECT k FROM S [RANGE 5] UNION ALL (SELECT k FROM T [RANGE 5] EXCEPT ALL SELECT k FROM S [ROWS 1])",
    "(SELECT k FROM S [RANGE 5] EXCEPT ALL SELECT k FROM T [RANGE 5]) UNION ALL SELECT k FROM S [ROWS 1]",
    "ISTREAM(SELECT k FROM S [RANGE 5] UNION ALL SELECT k FROM T [RANGE 5])",
    "SELECT COUNT(*) AS n FROM (SELECT ISTREAM k FROM S [ROWS 1]) AS Z [RANGE 2 SLIDE 1]",
    "SELECT COUNT(*) FROM (SELECT ISTREAM k FROM S [NOW] UNION ALL SELECT k FROM T [RANGE 5]) Z [RANGE 2 SLIDE 1]",
    "SELECT v FROM (SELECT v, k FROM S WHERE v > 10) V [ROWS 10] WHERE k = 'it''s'",
    "SELECT P.k FROM (SELECT k FROM S [RANGE 5 SLIDE 1]) P, (SELECT k FROM T [ROWS 3]) Q WHERE P.k = Q.k",
    "SELECT k, QUANTILE(v, 0.95), REGR_SLOPE(v) FROM S [RANGES 100, 10, 1 SLIDES 10, 5, 1] GROUP BY k",
    "SELECT SUM(v) FROM S [RANGE (CASE WHEN now < 3 THEN 1 ELSE 3 END) SLIDE 1]",
    "SELECT SUM(v) FROM S [PARTITION BY k, i SESSION 20]",
    "SELECT COUNT(*) FROM S [CUMULATE 24 STEP 2 START AT -3] EMIT EMPTY",
    "SELECT SUM(v) FROM S [RANGE 10 SLIDE 5] LATE REVISE 5",
    "SELECT SUM(v) FROM S [RANGE 10 SLIDE 5] EMIT EMPTY LATE REVISE 5",
    "SELECT v FROM S [WHERE v > 10 AND k IN ('a', 'b')]",
    "SELECT k, SUM(v) AS s FROM S [FRAME SUM(v) >= 100 PARTITION BY k]",
    "SELECT * FROM S [FRAME WHILE v < 40 FOR AT LEAST 5 PARTITION BY k FRAGMENTS EVERY 5 EXTENT LIBERAL]",
    "SELECT * FROM S [FRAME WHILE v > 1 AND (k = 'a' OR v < 9) WITH SOME v > 5 FOR AT MOST 9 FOR AT LEAST 3 ROWS]",
    "SELECT COUNT(*) FROM S [FRAME WHILE CASE WHEN v > 1 THEN true ELSE false END EVERY 5 MISSING NEIGHBOURS]",
    "SELECT COUNT(*) FROM S [FRAME WHILE v BETWEEN 1 AND 2 AS INTERVALS DUPLICATES AVG MAXIMUM]",
    "SELECT AVG(v) FROM S [FRAME EVERY 0.5 OF v + 1] WHERE v > 1 GROUP BY i HAVING COUNT(*) > 2",
    "SELECT AVG(v) FROM S [FRAME AT (-1, 0, 2.5) OF v COVER DRAINED]",
    "SELECT AVG(v) FROM S [FRAME DELTA v >= 2 UNCONSTRAINED SATURATED]",
    "SELECT AVG(v) FROM S [FRAME DELTA v > 2 ADJACENT 3]",
    "SELECT ISTREAM AVG(v) FROM S [FRAME COUNT(*) >= 3 MINIMAL ADVANCING]",
    "SELECT AVG(v) FROM S [FRAME AVG(v) <= 3 MAXIMAL]",
    "SELECT AVG(v) FROM S [FRAME RISING v]",
    "SELECT AVG(v) FROM S [FRAME FLAT v WITHIN 0.25 FOR AT LEAST 4 ROWS]",
    "SELECT AVG(v) FROM S [FRAME START WHEN k = 'on' END WHEN k = 'off' ON START DROP PARTITION BY i]",
    "SELECT COUNT(*) FROM S [FRAME DENSITY 5 PER 30 CHANCE 0.05 EXPECTED 1.5]",
    "select sum(v) as s from S [frame while v > 1 for at least 5 partition by k] -- a comment",
    "select sum(v) as `total of v` from S [range 10 slide 5] -- a comment\nwhere v > 0",
]  # fmt: skip


@pytest.mark.parametrize("text", PAPERS)
def test_written_queries_survive(text: str) -> None:
    """Also twice, and bound: the rendered text means the same tree."""
    query = parse_query(text)
    again = render(query)
    assert parse_query(again) == query
    assert render(parse_query(again)) == again
    assert bind_query(again, STREAMS) == bind_query(text, STREAMS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v <=> x, a[0] FROM S",
        "SELECT v IS NOT DISTINCT FROM x, a[0] FROM S [ROWS 2]",
        "SELECT v IS DISTINCT FROM x, a[0] FROM S, T",
        "SELECT k FROM S WHERE k IS NOT DISTINCT FROM a[0] AND a[0] = 1",
        "SELECT k FROM S JOIN T ON S.v IS DISTINCT FROM T.v AND a[0] > 1 GROUP BY v IS DISTINCT FROM x, a[0]",
        "SELECT k FROM S [WHERE k IS NOT DISTINCT FROM x AND a[0] = 1]",
        "SELECT k FROM S [FRAME WHILE k IS NOT DISTINCT FROM x AND a[0] = 1]",
    ],
)
def test_a_comparison_that_says_from_precedes_no_window(text: str) -> None:
    query = parse_query(text)
    assert parse_query(render(query)) == query


@pytest.mark.parametrize("text", [text for text in PAPERS if "[FRAME" in text])
def test_bound_frames_say_what_they_are(text: str) -> None:
    """The clause that a spec writes is read as the same spec."""
    bound = bind_query(text, STREAMS)
    assert bound.framed_node is not None
    shown = bound.framed_node.frame.text(bound.domain).replace("S.", "")
    again = bind_query(f"SELECT * FROM S [{shown}]", STREAMS)
    assert again.framed_node == bound.framed_node


@settings(max_examples=80)
@given(WINDOWS, st.sampled_from(["i", "k", "v + 1", "COUNT(*)", "SUM(v) - MIN(v)"]))
def test_bound_queries_survive(window: Spec, item: str) -> None:
    text = f"SELECT {item} FROM S {window.cql}"
    bound = bind_query(text, STREAMS)
    assert bind_query(render(parse_query(text)), STREAMS) == bound
    (windowed,) = bound.windows
    shown = f"SELECT {item} FROM S [{windowed.window.text(bound.domain)}]"
    if "`" not in shown:
        assert bind_query(shown, STREAMS) == bound


def test_a_script_survives() -> None:
    text = """
        CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE, amount DECIMAL(10, 2))
          TIME ts DELAY 5 SECONDS FROM 'parquet:trades/';
        CREATE VIEW dear AS SELECT * FROM trades WHERE price > 100;
        CREATE QUERY momentum AS SELECT symbol, AVG(price) AS mean
          FROM dear [RANGES 30 MINUTES, 5 MINUTES SLIDES 1 MINUTE, 10 SECONDS] GROUP BY symbol
          INTO 'parquet:out/it\\'s/' PANES INTO 'parquet:panes/momentum';
        SELECT ISTREAM symbol FROM trades [RANGE 1 HOUR START AT '07:00:00'];
    """
    script = parse_script(text)
    assert parse_script(render(script)) == script


def test_rendering_keeps_istream_of_a_nested_union() -> None:
    text = "SELECT k FROM (SELECT ISTREAM k FROM S UNION ALL SELECT k FROM T) AS U [ROWS 1]"
    assert parse_query(render(parse_query(text))) == parse_query(text)
