"""Paper "Consistent results", section 4: every windowed operator, by its definition over multisets.

States and operators are recomputed here in plain Python, literally, and compared with `pw.run` at every instant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import panewise as pw

HORIZON = 40
ADDED = {"w_start", "w_end", "ts", "sign", "expires_at", "expires_order"}


class Item(NamedTuple):
    t: int
    i: int
    k: str
    v: int


Items = list[Item]
Bag = Counter[tuple[Any, ...]]
State = Callable[[Items, int], Items]


def last_of_each(stream: Items, at: int, size: int) -> Items:
    seen = [s for s in stream if s.t <= at]
    return [s for key in sorted({s.k for s in seen}) for s in [x for x in seen if x.k == key][-size:]]


#: Window signatures and their states, as section 3 defines them.
STATES: dict[str, State] = {
    "RANGE 5": lambda stream, at: [s for s in stream if at - 5 < s.t <= at],
    "NOW": lambda stream, at: [s for s in stream if s.t == at],
    "RANGE 6 SLIDE 2": lambda stream, at: [s for s in stream if at // 2 * 2 - 6 < s.t <= at // 2 * 2],
    "RANGE 4 SLIDE 4": lambda stream, at: [s for s in stream if at // 4 * 4 - 4 < s.t <= at // 4 * 4],
    "RANGE 3 LAG 2": lambda stream, at: [s for s in stream if at - 5 < s.t <= at - 2],
    "ROWS 4": lambda stream, at: [s for s in stream if s.t <= at][-4:],
    "PARTITION BY k ROWS 2": lambda stream, at: last_of_each(stream, at, 2),
    "UNBOUNDED": lambda stream, at: [s for s in stream if s.t <= at],
    "UNBOUNDED START AT 9": lambda stream, at: [s for s in stream if 9 <= s.t <= at],
}


def random_stream(random: Random, size: int = 20) -> Items:
    times = sorted(random.randint(0, 25) for _ in range(size))
    return [Item(t, i, random.choice("abc"), random.randint(1, 3)) for i, t in enumerate(times)]


def table(stream: Items) -> pa.Table:
    columns = {"t": pa.int64(), "i": pa.int64(), "k": pa.string(), "v": pa.int64()}
    return pa.table({name: pa.array([getattr(s, name) for s in stream], kind) for name, kind in columns.items()})


def relations(cql: str, streams: dict[str, Items]) -> dict[int, Bag]:
    """The relation at every instant that the result speaks of, from whole states or from accumulated changes."""
    result = pw.run(cql, {name: table(stream) for name, stream in streams.items()}, time="t")
    names = [name for name in result.column_names if name not in ADDED]
    rows = [(row, tuple(row[name] for name in names)) for row in result.to_pylist()]
    if "w_end" in result.column_names:
        found: dict[int, Bag] = {}
        for row, values in rows:
            found.setdefault(row["w_end"], Counter())[values] += 1
        return found
    bag: Bag = Counter()
    accumulated = {}
    for at in range(-1, HORIZON):
        for row, values in rows:
            if row["ts"] == at:
                bag[values] += row["sign"]
        assert min(bag.values(), default=0) >= 0, "something was taken back that was never there"
        accumulated[at] = +bag
    return accumulated


def check(cql: str, streams: dict[str, Items], expected: Callable[[int], Bag], step: int) -> None:
    found = relations(cql, streams)
    for at in range(-step, HORIZON, step):
        assert found.get(at, Counter()) == expected(at), f"{cql} at {at}"


def step_of(clause: str) -> int:
    return int(clause.rpartition("SLIDE")[2]) if "SLIDE" in clause else 1


every_window = pytest.mark.parametrize("clause", STATES)
both_seeds = pytest.mark.parametrize("seed", [1, 2])


@every_window
@both_seeds
def test_windowed_projection_keeps_duplicates(clause: str, seed: int) -> None:
    """Section 4.1, projection: only chosen attributes remain, once for every tuple of the state."""
    stream = random_stream(Random(seed))
    state = STATES[clause]
    check(
        f"SELECT k FROM S [{clause}]",
        {"S": stream},
        lambda at: Counter((s.k,) for s in state(stream, at)),
        step_of(clause),
    )


@every_window
@both_seeds
def test_windowed_selection_keeps_the_schema(clause: str, seed: int) -> None:
    """Section 4.1, selection: the tuples of the state that satisfy the condition, unchanged."""
    stream = random_stream(Random(seed))
    state = STATES[clause]
    check(
        f"SELECT * FROM S [{clause}] WHERE v >= 2 AND k <> 'c'",
        {"S": stream},
        lambda at: Counter(tuple(s) for s in state(stream, at) if s.v >= 2 and s.k != "c"),
        step_of(clause),
    )


@every_window
@both_seeds
def test_windowed_union_adds_multiplicities(clause: str, seed: int) -> None:
    """Section 4.1, union: k1 identical tuples here and k2 there make k1 + k2."""
    random, state = Random(seed), STATES[clause]
    left, right = random_stream(random), random_stream(random)

    def expected(at: int) -> Bag:
        ones, others = (Counter((s.k, s.v) for s in state(side, at)) for side in (left, right))
        return Counter({key: ones[key] + others[key] for key in ones | others})

    query = f"SELECT k, v FROM S [{clause}] UNION ALL SELECT k, v FROM T [{clause}]"
    check(query, {"S": left, "T": right}, expected, step_of(clause))


@every_window
@both_seeds
def test_windowed_duplicate_elimination(clause: str, seed: int) -> None:
    """Section 4.2, duplicate elimination: of identical tuples only one remains."""
    stream, state = random_stream(Random(seed)), STATES[clause]

    def expected(at: int) -> Bag:
        held = state(stream, at)
        # The paper asks for no younger identical tuple; among equally young ones the last to arrive stands for all.
        youngest = [s for s in held if not any((x.k, x.v) == (s.k, s.v) and (x.t, x.i) > (s.t, s.i) for x in held)]
        return Counter((s.k, s.v) for s in youngest)

    check(f"SELECT DISTINCT k, v FROM S [{clause}]", {"S": stream}, expected, step_of(clause))


def test_duplicate_elimination_reports_the_most_recent_appearance() -> None:
    """Section 4.2, duplicate elimination: of two appearances that come in together the younger one stands."""
    stream = [Item(1, 0, "a", 1), Item(2, 1, "a", 1)]
    query = "SELECT {emit} DISTINCT k FROM S [RANGE 5 SLIDE 2]"
    (came,) = pw.run(query.format(emit="ISTREAM"), {"S": table(stream)}, time="t").to_pylist()
    (went,) = pw.run(query.format(emit="DSTREAM"), {"S": table(stream)}, time="t").to_pylist()
    assert (came["ts"], came["expires_at"], went["ts"]) == (2, 8, 8)  # the older one alone would leave at 6


@both_seeds
def test_value_based_windows_are_selections_without_end(seed: int) -> None:
    """Section 3.1: the condition of a window may look at other attributes than time."""
    stream = random_stream(Random(seed))
    check(
        "SELECT * FROM S [WHERE v >= 2]",
        {"S": stream},
        lambda at: Counter(tuple(s) for s in stream if s.t <= at and s.v >= 2),
        1,
    )


@every_window
@both_seeds
def test_windowed_aggregation(clause: str, seed: int) -> None:
    """Section 4.2, aggregation: one row for each group that has tuples in the state, and none for any other."""
    stream, state = random_stream(Random(seed)), STATES[clause]

    def expected(at: int) -> Bag:
        groups: dict[str, list[int]] = {}
        for s in state(stream, at):
            groups.setdefault(s.k, []).append(s.v)
        return Counter(
            (key, len(values), sum(values), min(values), max(values), sum(values) / len(values))
            for key, values in groups.items()
        )

    calls = "COUNT(*) AS c, SUM(v) AS s, MIN(v) AS low, MAX(v) AS high, AVG(v) AS mean"
    check(f"SELECT k, {calls} FROM S [{clause}] GROUP BY k", {"S": stream}, expected, step_of(clause))


@every_window
def test_windowed_aggregation_without_grouping(clause: str) -> None:
    """Section 4.2, aggregation: without grouping attributes the whole state is one group."""
    stream, state = random_stream(Random(3)), STATES[clause]

    def expected(at: int) -> Bag:
        held = state(stream, at)
        return Counter([(len(held), sum(s.v for s in held))] if held else [])

    check(f"SELECT COUNT(*) AS c, SUM(v) AS s FROM S [{clause}]", {"S": stream}, expected, step_of(clause))


@every_window
@both_seeds
def test_windowed_join(clause: str, seed: int) -> None:
    """Section 4.2, join: every pair of tuples of both states that matches."""
    random, state = Random(seed), STATES[clause]
    left, right = random_stream(random, 14), random_stream(random, 14)
    check(
        f"SELECT S.i AS a, T.i AS b FROM S [{clause}], T [{clause}] WHERE S.k = T.k AND S.v <= T.v",
        {"S": left, "T": right},
        lambda at: Counter((a.i, b.i) for a in state(left, at) for b in state(right, at) if a.k == b.k and a.v <= b.v),
        step_of(clause),
    )


@every_window
@both_seeds
def test_windowed_difference(clause: str, seed: int) -> None:
    """Section 4.3, difference: k1 identical tuples here and k2 there leave max(0, k1 - k2)."""
    random, state = Random(seed), STATES[clause]
    left, right = random_stream(random), random_stream(random, 12)

    def expected(at: int) -> Bag:
        ones, others = (Counter((s.k, s.v) for s in state(side, at)) for side in (left, right))
        return Counter({key: k for key in ones if (k := max(0, ones[key] - others[key]))})

    query = f"SELECT k, v FROM S [{clause}] EXCEPT ALL SELECT k, v FROM T [{clause}]"
    check(query, {"S": left, "T": right}, expected, step_of(clause))


@pytest.mark.parametrize(
    "pair", [("RANGE 5", "ROWS 4"), ("UNBOUNDED START AT 9", "RANGE 5"), ("NOW", "PARTITION BY k ROWS 2")]
)
def test_diverse_windows_over_binary_operators(pair: tuple[str, str]) -> None:
    """Section 4.4: union, join and difference hold for two different windows as well."""
    random, (one, other) = Random(5), pair
    left, right = random_stream(random), random_stream(random)
    streams = {"S": left, "T": right}

    def bags(at: int) -> tuple[Bag, Bag]:
        return Counter((s.k,) for s in STATES[one](left, at)), Counter((s.k,) for s in STATES[other](right, at))

    sides = f"SELECT k FROM S [{one}]", f"SELECT k FROM T [{other}]"
    check(" UNION ALL ".join(sides), streams, lambda at: bags(at)[0] + bags(at)[1], 1)
    check(" EXCEPT ALL ".join(sides), streams, lambda at: bags(at)[0] - bags(at)[1], 1)
    check(
        f"SELECT S.i AS a, T.i AS b FROM S [{one}], T [{other}] WHERE S.k = T.k",
        streams,
        lambda at: Counter((a.i, b.i) for a in STATES[one](left, at) for b in STATES[other](right, at) if a.k == b.k),
        1,
    )


# ---- worked examples ------------------------------------------------------------------------------------------------


def rows(cql: str, **streams: list[str] | list[int]) -> list[dict[str, Any]]:
    """Results over streams of one value an instant, from instant 1; an empty string is an instant without a tuple."""
    tables = {}
    for name, values in streams.items():
        present = [(t, v) for t, v in enumerate(values, 1) if v != ""]
        tables[name] = pa.table({"t": [t for t, _ in present], "v": [v for _, v in present]})
    return list(pw.run(cql, tables, time="t").to_pylist())


def test_figure_4a_a_distinct_value_expires_with_the_42nd_tuple() -> None:
    """Section 4.2, figure 4a: of 17 counted tuples after 24 expired ones, value 4 leaves with number 24 + 17 + 1."""
    values = [1 + number % 3 for number in range(24)] + [4] + [1 + number % 3 for number in range(16)]
    assert len(values) == 24 + 17
    found = rows("SELECT ISTREAM DISTINCT v FROM S [ROWS 17]", S=values)
    assert [(row["ts"], row["expires_order"]) for row in found if row["v"] == 4] == [(25, 42)]
    still = rows("SELECT DISTINCT v FROM S [ROWS 17]", S=values)
    assert not [row for row in still if row["v"] == 4 and row["sign"] == -1]
    after = rows("SELECT DISTINCT v FROM S [ROWS 17]", S=[*values, 1])
    assert [row["ts"] for row in after if row["v"] == 4 and row["sign"] == -1] == [42]


def test_figure_4a_an_expired_distinct_value_is_replaced_by_its_youngest_duplicate() -> None:
    """Section 4.2, figure 4a: the value stays in the answer as long as one of its duplicates is in the state."""
    found = rows("SELECT DISTINCT v FROM S [ROWS 3]", S=["a", "b", "a", "b", "b", "b"])
    assert [(row["v"], row["ts"], row["sign"]) for row in found] == [("a", 1, 1), ("b", 2, 1), ("a", 6, -1)]


def test_figure_4b_an_expired_maximum_is_replaced_from_the_rest_of_the_state() -> None:
    """Section 4.2, figure 4b: when the maximum 9 expires, the whole state says what follows it."""
    found = rows("SELECT MAX(v) AS high FROM S [ROWS 4]", S=[5, 9, 3, 7, 2, 1])
    shown = [(row["high"], row["ts"]) for row in found if row["sign"] == 1]
    assert shown == [(5, 1), (9, 2), (7, 6)]


def test_algorithm_1_a_group_without_tuples_vanishes() -> None:
    """Section 4.2, algorithm 1, lines 7 to 11: a count of zero removes the group, with nothing in its place."""
    found = rows("SELECT v, COUNT(*) AS c FROM S [RANGE 3] GROUP BY v", S=["a", "a", "b", "", "", ""])
    assert [(row["v"], row["c"], row["ts"], row["sign"]) for row in found] == [
        ("a", 1, 1, 1),
        ("a", 2, 2, 1),
        ("a", 1, 2, -1),
        ("b", 1, 3, 1),
        ("a", 1, 4, 1),
        ("a", 2, 4, -1),
        ("a", 1, 5, -1),
        ("b", 1, 6, -1),
    ]


@pytest.mark.parametrize(("function", "after"), [("SUM", 30), ("AVG", 15.0), ("COUNT", 2), ("MIN", 10), ("MAX", 20)])
def test_algorithm_1_each_function_forgets_the_expired_value(function: str, after: float) -> None:
    """Section 4.2, algorithm 1, lines 12 to 19: progressive functions subtract, retrospective ones look again."""
    found = rows(f"SELECT {function}(v) AS a FROM S [RANGE 3 SLIDE 1]", S=[90, 10, 20])
    assert next(row["a"] for row in found if row["w_end"] == 4) == after


def test_join_results_leave_with_their_first_part() -> None:
    """Section 4.2, join: the expiration of a pair is the earlier one of its two tuples."""
    found = rows("SELECT S.t AS a, T.t AS b FROM S [RANGE 5], T [RANGE 2] WHERE S.v = T.v", S=["x"], T=["", "x", "x"])
    assert [(row["a"], row["b"], row["ts"], row["sign"], row["expires_at"]) for row in found] == [
        (1, 2, 2, 1, 4),
        (1, 3, 3, 1, 5),
        (1, 2, 4, -1, None),
        (1, 3, 5, -1, None),
    ]


def test_figure_5a_a_later_join_result_over_counted_windows_expires_earlier() -> None:
    """Section 4.2, figure 5a: windows of 8 and 10 tuples; g is emitted after b and gone before it.

    Each result carries both expiration orders, because the counts of two streams cannot be compared.
    """
    p = ["", "", "", "", "", "", "p1", "b", "p2", "g", "p3", "p4", "p5", "p6", "p7", "p8", "p9"]
    s = ["g", "s1", "s2", "s3", "s4", "s5", "s6", "b", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15"]
    found = rows("SELECT P.v FROM P [ROWS 8], S [ROWS 10] WHERE P.v = S.v", P=p, S=s)
    emitted = [(row["v"], row["ts"], row["expires_order"]) for row in found if row["sign"] == 1]
    assert emitted == [("b", 8, [2 + 8, 8 + 10]), ("g", 10, [4 + 8, 1 + 10])]
    gone = [(row["v"], row["ts"]) for row in found if row["sign"] == -1]
    assert gone == [("g", 11), ("b", 16)]


def test_figure_5b_difference_of_landmark_windows_cancels_in_any_order() -> None:
    """Section 4.3, figure 5b: c, emitted first, is cancelled after the later m, once it is seen on the other stream."""
    found = rows(
        "SELECT v FROM P [UNBOUNDED] EXCEPT ALL SELECT v FROM S [UNBOUNDED]", P=["c", "m"], S=["", "", "m", "c"]
    )
    assert [(row["v"], row["ts"], row["sign"]) for row in found] == [
        ("c", 1, 1),
        ("m", 2, 1),
        ("m", 3, -1),
        ("c", 4, -1),
    ]


def test_difference_gives_back_what_expires_on_the_other_side() -> None:
    """Section 4.3: a tuple that expires from the second state raises the multiplicity again."""
    found = rows("SELECT v FROM P [UNBOUNDED] EXCEPT ALL SELECT v FROM S [RANGE 2]", P=["c"], S=["c"])
    assert [(row["v"], row["ts"], row["sign"]) for row in found] == [("c", 3, 1)]


def test_relation_to_stream_operators() -> None:
    """Section 4: ISTREAM, DSTREAM and RSTREAM turn a relation into a stream of what came, what went and what is."""
    stream = ["a", "b"]
    came = rows("SELECT ISTREAM v FROM S [RANGE 2]", S=stream)
    went = rows("DSTREAM(SELECT v FROM S [RANGE 2])", S=stream)
    there = rows("SELECT RSTREAM v FROM S [RANGE 2]", S=stream)
    assert [(row["v"], row["ts"]) for row in came] == [("a", 1), ("b", 2)]
    assert [(row["v"], row["ts"]) for row in went] == [("a", 3), ("b", 4)]
    assert [(row["v"], row["ts"]) for row in there] == [("a", 1), ("a", 2), ("b", 2), ("b", 3)]
