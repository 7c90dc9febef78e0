"""Results come and go as `explain` predicts, for every operator and window of table 1 of "Consistent results".

All pairs stand in one pool over the same random streams, so that one run of the engine shows what each of them does:
monotonic results stay, weakest ones leave first in, first out, weak ones when they said they would.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.plan import explain, plan_query
from panewise.window import Pattern
from tests.laws.test_relations import pieces
from tests.papers.test_consistent_results_patterns import CLAUSES, OPERATORS, SCHEMA, announced, expected, values

Row = dict[str, Any]
Streams = dict[str, pa.Table]
PAIRS = [(operator, clause) for operator in OPERATORS for _, clause in CLAUSES]
TITLES = {pattern.title: pattern for pattern in Pattern}
#: Queries that speak at instants of their own say changes only if asked to, and then one kind at a time.
EMITS = {False: [""], True: ["ISTREAM", "DSTREAM"]}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Items in the order of time, numbered, so that equal values do not hide a change."""
    times = sorted(draw(st.lists(st.integers(0, 30), min_size=3, max_size=14)))
    keys, numbers = (
        draw(st.lists(st.sampled_from(some), min_size=len(times), max_size=len(times))) for some in ("abc", [1, 2, 3])
    )
    return pa.table([times, list(range(len(times))), keys, numbers], SCHEMA)


@cache
def standing() -> pw.Pool:
    """Every pair, under its operator, its window and what it emits."""
    found = pw.Pool({name: pw.StreamSchema(SCHEMA, "t", 0) for name in "ST"})
    for operator, clause in PAIRS:
        for emit in EMITS["SLIDE" in clause]:
            text = OPERATORS[operator].format(emit=emit, left=clause, right=clause)
            found.register(f"{operator} {clause} {emit}", f"{text} ALLOW UNBOUNDED")
    return found


@cache
def predictions() -> dict[str, Pattern]:
    """What `explain` says of every query."""
    queries = {name: known.plan.query for name, known in standing().queries.items()}
    heads = {name: explain(name, query, plan_query(query)).partition("\n")[0] for name, query in queries.items()}
    return {name: TITLES[head.rpartition("; ")[2]] for name, head in heads.items()}


@dataclass(frozen=True)
class Observed:
    """What came, with the end it announced, and what went, each in the order in which it was said."""

    operator: str
    clause: str
    streams: Streams
    came: list[Row]
    went: list[Row]

    @property
    def announced(self) -> Counter[tuple[Any, ...]]:
        """The departures that were told beforehand: what, and at which instant."""
        ends = ((values(row), announced(row, self.clause, self.streams)) for row in self.came)
        return Counter((what, end) for what, end in ends if end is not None)

    @property
    def departures(self) -> Counter[tuple[Any, ...]]:
        return Counter((values(row), row["ts"]) for row in self.went)

    @property
    def replaced(self) -> set[tuple[Any, ...]]:
        """Groups with a new value, and when they got it."""
        return {(row["k"], row["ts"]) for row in self.came}

    def obeys(self, predicted: Pattern, appearances: Observed) -> None:
        """Only what was there has left, and as predicted; `appearances` are the items themselves."""
        there = Counter(map(values, self.came))
        assert not Counter(map(values, self.went)) - there, "something has left that never came"
        match predicted:
            case Pattern.MONOTONIC:
                self.stays()
            case Pattern.WEAKEST:
                self.leaves_as_announced()
                self.leaves_first_in_first_out()
            case Pattern.WEAK if self.operator == "distinct":
                self.leaves_with_its_last_appearance(appearances)
            case Pattern.WEAK if self.operator == "aggregation":
                self.leaves_as_announced_or_is_replaced()
            case Pattern.WEAK:
                self.leaves_as_announced()
            case Pattern.NON_MONOTONIC:
                self.announces_nothing()

    def announces_nothing(self) -> None:
        assert not any({"expires_at", "expires_order"} & set(row) for row in self.came)

    def stays(self) -> None:
        """The table calls aggregates monotonic too: their groups never vanish, although their values change."""
        self.announces_nothing()
        gone = [
            row for row in self.went if self.operator != "aggregation" or (row["k"], row["ts"]) not in self.replaced
        ]
        assert not gone

    def leaves_as_announced(self) -> None:
        assert self.departures == self.announced

    def leaves_first_in_first_out(self) -> None:
        """In the order of arrival; windows that count are each a queue of its own: their streams are not in step."""
        for side in ("S", "T") if "ROWS" in self.clause else (None,):
            arrived = {values(row): row["ts"] for row in self.came if side in (None, row.get("side", "S"))}
            order = [arrived[values(row)] for row in self.went if values(row) in arrived]
            assert order == sorted(order)

    def leaves_as_announced_or_is_replaced(self) -> None:
        """Every change of a group changes its row, so a value is replaced, or goes with the group when it said."""
        assert all((what[0], at) in self.replaced for what, at in self.departures - self.announced)
        left = {values(row): row["ts"] for row in self.went}
        assert all(left[what] <= end for what, end in self.announced)

    def leaves_with_its_last_appearance(self, appearances: Observed) -> None:
        """Known from what its appearances announced: a younger equal takes over unseen, so it may stay longer."""
        lives: dict[tuple[Any, ...], list[tuple[int, float]]] = defaultdict(list)
        for row in appearances.came:
            end = announced(row, self.clause, self.streams)
            number = self.streams["S"].column("v")[row["i"]].as_py()
            lives[row["k"], number].append((row["ts"], float("inf") if end is None else end))
        ends = {(what, end) for what, some in lives.items() for _, end in merged(some) if end < float("inf")}
        assert self.departures == Counter(ends)
        for what, end in self.announced:
            assert end in {at for _, at in lives[what]}


def merged(lives: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """Lifetimes that overlap or meet as one."""
    found: list[tuple[int, float]] = []
    for enter, leave in sorted(lives):
        if found and enter <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], leave))
        else:
            found.append((enter, leave))
    return found


def said(streams: Streams, cut: int) -> dict[str, list[Row]]:
    """What every query says, batch by batch: an end is announced before anybody has seen what follows."""
    pool = pw.Pool(standing().streams)
    for known in standing().queries.values():
        pool.add_query(known)
    engine = pw.Engine(pool)
    emissions = []
    for batch in zip(*(pieces(table, [cut]) for table in streams.values()), strict=True):
        for stream, rows in zip(streams, batch, strict=True):
            engine.feed(stream, rows)
        emissions.append(engine.advance())
    emissions.append(engine.finish())
    return {name: [row for each in emissions for row in each[name].to_pylist()] for name in pool.queries}


def observed(operator: str, clause: str, streams: Streams, told: dict[str, list[Row]]) -> Observed:
    signed = [
        {"sign": -1 if emit == "DSTREAM" else 1} | row
        for emit in EMITS["SLIDE" in clause]
        for row in told[f"{operator} {clause} {emit}"]
    ]
    came, went = (
        [{n: v for n, v in row.items() if n != "sign"} for row in signed if row["sign"] == s] for s in (1, -1)
    )
    return Observed(operator, clause, streams, came, went)


@pytest.mark.slow
@settings(max_examples=15)
@given(tables(), tables(), st.integers(0, 14))
def test_observed_updates_obey_the_predicted_class(s: pa.Table, t: pa.Table, cut: int) -> None:
    streams = {"S": s, "T": t}
    told = said(streams, cut)
    for variant, clause in CLAUSES:
        appearances = observed("projection", clause, streams, told)
        for operator in OPERATORS:
            emits = EMITS["SLIDE" in clause]
            (predicted,) = {predictions()[f"{operator} {clause} {emit}"] for emit in emits}
            assert predicted is expected(variant, operator)
            observed(operator, clause, streams, told).obeys(predicted, appearances)
