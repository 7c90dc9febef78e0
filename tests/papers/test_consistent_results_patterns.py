"""Paper "Consistent results", table 1 and propositions 6 to 9: update patterns, as declared and as observed.

What a query tree is said to do is compared with the table; what its results really do is observed in signed changes.
"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.algebra import pattern
from panewise.core.schema import StreamSchema
from panewise.core.time import Boundary
from panewise.cql import bind_query
from panewise.window import Pattern

SCHEMA = pa.schema([("t", pa.int64()), ("i", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
STREAMS = {name: StreamSchema(SCHEMA, "t") for name in "ST"}

#: One clause or more for each row of table 1. Counted windows slide by default (section 3.3).
VARIANTS: dict[str, tuple[str, ...]] = {
    "sliding": ("RANGE 5", "RANGE 6 SLIDE 2", "RANGE 3 LAG 2", "NOW", "ROWS 4", "ROWS 3 LAG 2"),
    "tumbling": ("RANGE 4 SLIDE 4",),
    "partitioned": ("PARTITION BY k ROWS 2",),
    "landmark": ("UNBOUNDED", "UNBOUNDED START AT 5", "UNTIL 20", "FROM 5 UNTIL 20"),
}
#: The columns of table 1. Items are told apart by their number, so that equal values do not hide a change.
OPERATORS: dict[str, str] = {
    "selection": "SELECT {emit} * FROM S [{left}] WHERE v >= 2",
    "projection": "SELECT {emit} i, k FROM S [{left}]",
    "union": "SELECT {emit} 'S' AS side, i FROM S [{left}] UNION ALL SELECT 'T' AS side, i FROM T [{right}]",
    "distinct": "SELECT {emit} DISTINCT k, v FROM S [{left}]",
    "join": "SELECT {emit} S.i AS a, T.i AS b FROM S [{left}], T [{right}] WHERE S.k = T.k",
    "aggregation": "SELECT {emit} k, COUNT(*) AS c, MAX(i) AS newest FROM S [{left}] GROUP BY k",
    "difference": "SELECT {emit} k FROM S [{left}] EXCEPT ALL SELECT k FROM T [{right}]",
}
NEUTRAL, INTERFERING = ("selection", "projection", "union"), ("distinct", "join", "aggregation")
M, WEAKEST, WEAK, NON = Pattern.MONOTONIC, Pattern.WEAKEST, Pattern.WEAK, Pattern.NON_MONOTONIC
TABLE_1: dict[str, tuple[Pattern, Pattern, Pattern]] = {  # neutral, interfering, inflexible
    "sliding": (WEAKEST, WEAK, NON),
    "tumbling": (WEAK, WEAK, NON),
    "partitioned": (WEAK, WEAK, NON),
    "landmark": (M, M, NON),
}
CLAUSES = [(variant, clause) for variant, clauses in VARIANTS.items() for clause in clauses]


def declared(operator: str, left: str, right: str | None = None) -> Pattern:
    text = OPERATORS[operator].format(emit="", left=left, right=right or left)
    return pattern(bind_query(text, STREAMS).root)


def expected(variant: str, operator: str) -> Pattern:
    neutral, interfering, inflexible = TABLE_1[variant]
    return neutral if operator in NEUTRAL else interfering if operator in INTERFERING else inflexible


@pytest.mark.parametrize(("variant", "clause"), CLAUSES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_table_1(variant: str, clause: str, operator: str) -> None:
    """Table 1, every cell: 4 window variants (here with several signatures each) and 7 operators.

    Aggregation over a landmark window is monotonic in the table and in proposition 7, although new values replace
    old ones for the same group (section 4.2 calls it weak for that reason). We follow the table: no group vanishes.
    """
    assert declared(operator, clause) is expected(variant, operator)


@pytest.mark.parametrize(("variant", "clause"), CLAUSES)
def test_proposition_6_neutral_operators_inherit_the_pattern_of_their_window(variant: str, clause: str) -> None:
    """Section 4.1, proposition 6."""
    own = pattern(bind_query(f"SELECT * FROM S [{clause}]", STREAMS).windows[0])
    assert {declared(operator, clause) for operator in NEUTRAL} == {own}


@pytest.mark.parametrize(
    ("left", "right"), list(product(["UNBOUNDED", "RANGE 5", "RANGE 4 SLIDE 4", "PARTITION BY k ROWS 2"], repeat=2))
)
def test_proposition_9_the_stronger_window_dominates(left: str, right: str) -> None:
    """Section 4.4, proposition 9: a binary operator takes after its more strongly non-monotonic input."""
    strongest = max(declared("selection", left), declared("selection", right))
    assert declared("union", left, right) is strongest
    assert declared("join", left, right) is (strongest if strongest is M else WEAK)
    assert declared("difference", left, right) is NON


def test_proposition_9_query_3_is_weak() -> None:
    """Section 4.4: a join of a landmark and a sliding window, then aggregated, is weak non-monotonic."""
    text = "SELECT S.k, MAX(S.v) FROM S [UNBOUNDED], T [RANGE 6 SLIDE 1] WHERE S.k = T.k GROUP BY S.k"
    assert pattern(bind_query(text, STREAMS).root) is WEAK


# ---- what results do ------------------------------------------------------------------------------------------------

Row = dict[str, Any]


def random_table(random: Random, size: int) -> pa.Table:
    times = sorted(random.randint(0, 30) for _ in range(size))
    keys, values = [random.choice("abc") for _ in times], [random.randint(1, 3) for _ in times]
    return pa.table([times, list(range(size)), keys, values], schema=SCHEMA)


@pytest.fixture(scope="module", params=[1, 2, 3])
def streams(request: pytest.FixtureRequest) -> dict[str, pa.Table]:
    random = Random(request.param)
    return {"S": random_table(random, 25), "T": random_table(random, 25)}


def came_and_went(operator: str, clause: str, streams: dict[str, pa.Table]) -> tuple[list[Row], list[Row]]:
    """Insertions, with the expiry they announce, and deletions, both in the order in which they happen."""
    texts = (OPERATORS[operator].format(emit=emit, left=clause, right=clause) for emit in ("ISTREAM", "DSTREAM"))
    came, went = (pw.run(text, streams, time="t").to_pylist() for text in texts)
    return came, went


def values(row: Row) -> tuple[Any, ...]:
    return tuple(v for name, v in row.items() if name not in ("ts", "expires_at", "expires_order"))


def announced(row: Row, clause: str, streams: dict[str, pa.Table]) -> int | None:
    """The instant a result said it would leave; None if that many tuples are never admitted."""
    if row.get("expires_at") is not None:
        return int(row["expires_at"])
    orders = row["expires_order"] if isinstance(row["expires_order"], list) else [row["expires_order"]]
    sides = ["S", "T"] if len(orders) == 2 else [row.get("side", "S")]
    found: list[int] = []
    for side, order in zip(sides, orders, strict=True):
        arrived = streams[side].to_pylist()
        if clause.startswith("PARTITION"):
            own = row["a" if side == "S" else "b"] if len(orders) == 2 else row.get("i", row.get("newest"))
            arrived = [item for item in arrived if item["k"] == (row.get("k") or streams[side].to_pylist()[own]["k"])]
        if order <= len(arrived):
            found.append(arrived[order - 1]["t"])
    return min(found, default=None)


@pytest.mark.parametrize("clause", VARIANTS["landmark"])
@pytest.mark.parametrize("operator", [*NEUTRAL, "distinct", "join"])
def test_monotonic_queries_never_delete(operator: str, clause: str, streams: dict[str, pa.Table]) -> None:
    """Sections 3.2 and 4, propositions 4, 6 and 7: over landmark windows results only accumulate."""
    came, went = came_and_went(operator, clause, streams)
    assert came
    assert not went
    assert not {"expires_at", "expires_order"} & set(came[0])


@pytest.mark.parametrize("clause", VARIANTS["landmark"])
def test_aggregates_over_landmark_windows_are_only_replaced(clause: str, streams: dict[str, pa.Table]) -> None:
    """Section 4.2: over landmark windows a group gets new values, but never vanishes."""
    came, went = came_and_went("aggregation", clause, streams)
    assert {(row["k"], row["ts"]) for row in went} <= {(row["k"], row["ts"]) for row in came}


@pytest.mark.parametrize("clause", VARIANTS["sliding"])
@pytest.mark.parametrize("operator", NEUTRAL)
def test_weakest_queries_delete_first_in_first_out_as_announced(
    operator: str, clause: str, streams: dict[str, pa.Table]
) -> None:
    """Propositions 2, 5 and 6: results leave in the order in which they came, when they said they would."""
    came, went = came_and_went(operator, clause, streams)
    leaving = {values(row): announced(row, clause, streams) for row in came}
    assert {values(row): row["ts"] for row in went} == {key: at for key, at in leaving.items() if at is not None}
    sides = {row.get("side") for row in came}  # counted windows of two streams are first in, first out each by itself
    for side in sides if "ROWS" in clause else {None}:
        entered = {values(row): row["ts"] for row in came if side is None or row.get("side") == side}
        order = [entered[values(row)] for row in went if values(row) in entered]
        assert order == sorted(order)


@pytest.mark.parametrize("clause", [*VARIANTS["tumbling"], *VARIANTS["partitioned"]])
@pytest.mark.parametrize("operator", NEUTRAL)
def test_neutral_operators_over_weak_windows_delete_as_announced(
    operator: str, clause: str, streams: dict[str, pa.Table]
) -> None:
    """Section 3 and proposition 6: a tumbling state leaves as a whole, a partition one by one, both as announced."""
    came, went = came_and_went(operator, clause, streams)
    leaving = {values(row): announced(row, clause, streams) for row in came}
    assert {values(row): row["ts"] for row in went} == {key: at for key, at in leaving.items() if at is not None}


@pytest.mark.parametrize(("variant", "clause"), [c for c in CLAUSES if c[0] != "landmark"])
def test_joins_delete_as_announced(variant: str, clause: str, streams: dict[str, pa.Table]) -> None:
    """Section 4.2, proposition 7: a joined result leaves with its first part, by time or by either order."""
    came, went = came_and_went("join", clause, streams)
    leaving = {values(row): announced(row, clause, streams) for row in came}
    assert {values(row): row["ts"] for row in went} == {key: at for key, at in leaving.items() if at is not None}


@pytest.mark.parametrize("clause", ["RANGE 5", "ROWS 4"])
def test_joins_are_not_first_in_first_out(clause: str, streams: dict[str, pa.Table]) -> None:
    """Section 4.2: a fresh pair with an old part leaves before pairs that came earlier: weak, not weakest."""
    came, went = came_and_went("join", clause, streams)
    entered = {values(row): row["ts"] for row in came}
    order = [entered[values(row)] for row in went]
    assert order != sorted(order)


@pytest.mark.parametrize(("variant", "clause"), [c for c in CLAUSES if c[0] != "landmark"])
def test_aggregates_delete_as_announced_unless_replaced(
    variant: str, clause: str, streams: dict[str, pa.Table]
) -> None:
    """Section 4.2, proposition 7: a group's value goes when a new one replaces it, or when the group vanishes."""
    came, went = came_and_went("aggregation", clause, streams)
    replaced = {(row["k"], row["ts"]) for row in came}
    last = {values(row): announced(row, clause, streams) for row in came}
    for row in went:
        assert (row["k"], row["ts"]) in replaced or row["ts"] == last[values(row)]
    for key, at in last.items():
        if at is not None:  # never kept beyond the announcement, because every change of a group changes this row
            assert any(values(row) == key and row["ts"] <= at for row in went)


@pytest.mark.parametrize("clause", ["RANGE 5", "NOW", "RANGE 4 SLIDE 4", "RANGE 6 SLIDE 2"])
def test_distinct_values_delete_when_their_youngest_appearance_expires(
    clause: str, streams: dict[str, pa.Table]
) -> None:
    """Section 4.2, proposition 7: known beforehand, and never earlier than announced.

    The announcement is that of the appearance that brought the value in. A younger duplicate takes its place without
    a change of the answer, so the value may stay longer than it was announced.
    """
    came, went = came_and_went("distinct", clause, streams)
    window = bind_query(f"SELECT * FROM S [{clause}]", STREAMS).windows[0].window
    times: dict[tuple[Any, ...], list[int]] = {}
    for item in streams["S"].to_pylist():
        times.setdefault((item["k"], item["v"]), []).append(item["t"])
    for key, appearances in times.items():
        expires = window.expires_at(pa.array(appearances).to_numpy(), Boundary.RIGHT)
        assert expires is not None
        assert {row["ts"] for row in went if values(row) == key} <= set(expires.tolist())
    for row in came:
        later = [gone["ts"] for gone in went if values(gone) == values(row) and gone["ts"] > row["ts"]]
        assert min(later) >= row["expires_at"]


def test_distinct_is_not_first_in_first_out() -> None:
    """Section 4.2: a value renewed by duplicates outlives one that came after it, even over a sliding window."""
    table = pa.table([[1, 2, 3], [0, 1, 2], ["a", "b", "a"], [1, 1, 1]], schema=SCHEMA)
    _, went = came_and_went("distinct", "RANGE 5", {"S": table})
    assert [row["k"] for row in went] == ["b", "a"]


@pytest.mark.parametrize(("variant", "clause"), CLAUSES)
def test_proposition_8_difference_deletes_unannounced(variant: str, clause: str, streams: dict[str, pa.Table]) -> None:
    """Section 4.3, proposition 8: results announce no expiry, and even over landmark windows some are taken back."""
    came, went = came_and_went("difference", clause, streams)
    assert not any({"expires_at", "expires_order"} & set(row) for row in came)
    assert went


def test_aggregates_over_joins_of_counted_windows_announce_both_orders() -> None:
    """Section 4.2: orders of two streams cannot be compared, so a group announces its first departure on each side."""
    left = pa.table([[1, 2], [0, 1], ["a", "a"], [1, 2]], schema=SCHEMA)
    right = pa.table([[1, 2], [0, 1], ["a", "a"], [2, 1]], schema=SCHEMA)
    query = "SELECT ISTREAM S.k, COUNT(*) AS c FROM S [ROWS 5], T [ROWS 2] WHERE S.k = T.k AND S.v = T.v GROUP BY S.k"
    came = pw.run(query, {"S": left, "T": right}, time="t").to_pylist()
    # The first of S meets the second of T, and the other way round: number 6 of S or number 3 of T breaks the pair.
    assert [(row["c"], row["expires_order"]) for row in came] == [(2, [1 + 5, 1 + 2])]


@pytest.mark.parametrize("operator", INTERFERING)
def test_proposition_7_interfering_operators_are_monotonic_or_weak(operator: str) -> None:
    """Section 4.2, proposition 7: monotonic over landmark windows, weak non-monotonic over any other."""
    found = {variant: {declared(operator, clause) for clause in clauses} for variant, clauses in VARIANTS.items()}
    assert found == {"sliding": {WEAK}, "tumbling": {WEAK}, "partitioned": {WEAK}, "landmark": {M}}
