"""Every rule of the planner on or off: the answers are the same, in one engine, over shards and for lookups."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.plan.rules.catalogue import RULES
from tests.laws.strategies import BOUNDARIES, Aggregated, aggregated, odd_tables
from tests.laws.test_engine import CUTS, Ask, register, same, split
from tests.laws.test_relations import SCHEMA, known, queries, rows
from tests.spark.shards import Shards

pytestmark = pytest.mark.slow

NAMES = [rule.name for rule in RULES]
#: One rule, several of them, or all at once.
OFF = st.one_of(st.sampled_from(NAMES).map(lambda name: [name]), st.sets(st.sampled_from(NAMES)), st.just(NAMES))


def relational_pool(asked: Collection[str], off: Collection[str], boundary: str, delay: int | None) -> pw.Pool:
    schema = pw.StreamSchema(SCHEMA, "t", delay)
    pool = pw.Pool({"S": schema, "T": schema}, boundary, rules_off=off)
    for number, query in enumerate(asked):
        register(pool, f"q{number}", query)
    return pool


@settings(max_examples=120)
@given(st.lists(queries(), min_size=1, max_size=2), OFF, rows(), rows(), st.sampled_from([None, 0, 2]), BOUNDARIES)
def test_relations_do_not_depend_on_rules(
    asked: list[str], off: Collection[str], s: pa.Table, t: pa.Table, delay: int | None, boundary: str
) -> None:
    engines = [pw.Engine(relational_pool(asked, some, boundary, delay)) for some in ((), off)]
    for engine in engines:
        engine.feed("S", s)
        engine.feed("T", t)
    wanted, found = (engine.finish() for engine in engines)
    for name in wanted:
        same(known(found[name]), known(wanted[name]))


@settings(max_examples=60)
@given(queries(), OFF, rows(ordered=True), rows(ordered=True), st.integers(1, 3), BOUNDARIES)
def test_relations_over_shards_do_not_depend_on_rules(
    query: str, off: Collection[str], s: pa.Table, t: pa.Table, shards: int, boundary: str
) -> None:
    found = [Shards(relational_pool([query], some, boundary, None), shards) for some in ((), off)]
    for each in found:
        each.batch(S=[s], T=[t])
        each.finish()
    same(known(found[1].results("q0")), known(found[0].results("q0")))


@settings(max_examples=120)
@given(odd_tables(12), st.lists(aggregated(), min_size=1, max_size=3), OFF, CUTS, BOUNDARIES)
def test_families_do_not_depend_on_rules(
    s: pa.Table, asked: list[Aggregated], off: Collection[str], cuts: list[tuple[int, bool]], boundary: str
) -> None:
    found = []
    for some in ((), off):
        pool = pw.Pool({"S": pw.StreamSchema(s.schema, "t", 2)}, boundary, rules_off=some)
        for number, query in enumerate(asked):
            register(pool, f"q{number}", query.cql)
        engine, told = pw.Engine(pool), []
        for event in split(s, cuts):
            if isinstance(event, Ask):
                told.append(engine.advance())
            elif isinstance(event, pa.Table):
                engine.feed("S", event)
        told.append(engine.finish())
        found.append({name: pa.concat_tables([each[name] for each in told]) for name in pool.queries})
    for name, wanted in found[0].items():
        same(found[1][name], wanted)


@settings(max_examples=60)
@given(odd_tables(12), aggregated(("sliding", "tumbling", "levels", "cumulate")), OFF, st.integers(1, 3), BOUNDARIES)
def test_families_over_shards_do_not_depend_on_rules(
    s: pa.Table, query: Aggregated, off: Collection[str], shards: int, boundary: str
) -> None:
    found = []
    for some in ((), off):
        pool = pw.Pool({"S": pw.StreamSchema(s.schema, "t")}, boundary, rules_off=some)
        register(pool, "q", query.cql)
        found.append(Shards(pool, shards))
        found[-1].batch(S=[s])
        found[-1].finish()
    same(found[1].results("q"), found[0].results("q"))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc"), st.integers(-5, 5)), max_size=30),
    OFF,
    st.lists(st.integers(0, 45), min_size=1, max_size=12),
    st.integers(-4, 12),
)
def test_lookups_do_not_depend_on_rules(
    items: list[tuple[int, str, int]], off: Collection[str], instants: list[int], limit: int
) -> None:
    s = pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in sorted(items)], SCHEMA)
    query = f"SELECT k, SUM(v) AS total, MAX(v) AS most FROM S [RANGE 8 SLIDE 1] GROUP BY k HAVING SUM(v) > {limit}"
    found = []
    for some in ((), off):
        pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")}, rules_off=some)
        pool.register("q", query)
        engine = pw.Engine(pool, keep=100, grain=1)
        engine.feed("S", s)
        found.append([engine.lookup("q", at=at) for at in instants])
    for ours, wanted in zip(*found, strict=True):
        same(ours, wanted)
