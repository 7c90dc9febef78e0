"""The state of an engine in parts: what has not changed is not written again, and what is damaged is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import StateProblem
from panewise.engine import Engine
from panewise.engine.state.parts import StateChange, StateParts, part_names, read_note, read_parts

SCHEMA = pw.StreamSchema(pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())]), time="t", delay=0)
KEYS = 600
QUERY = "SELECT k, SUM(v) AS s FROM S [RANGE 100 SLIDE 10] GROUP BY k"


def rows(start: int, stop: int) -> pa.Table:
    """Every key at every tick: panes so large that each is written on its own."""
    times = [time for time in range(start, stop) for _ in range(KEYS)]
    keys = [f"k{key}" for _ in range(start, stop) for key in range(KEYS)]
    return pa.table({"t": times, "k": keys, "v": times}, schema=SCHEMA.schema)


def kept(store: dict[str, bytes], parts: StateParts, engine: Engine) -> StateChange:
    change = parts.change(engine.state(), {"version": 1})
    store.update(change.fresh)
    for name in change.gone:
        del store[name]
    return change


@pytest.fixture
def pool() -> pw.Pool:
    pool = pw.Pool({"S": SCHEMA})
    pool.register("q", QUERY)
    return pool


def test_only_what_changed_is_written(pool: pw.Pool) -> None:
    engine, parts = Engine(pool), StateParts()
    store: dict[str, bytes] = {}
    engine.feed("S", rows(0, 200))
    engine.advance()
    first = kept(store, parts, engine)
    engine.feed("S", rows(200, 210))
    engine.advance()
    second = kept(store, parts, engine)
    assert sum(map(len, second.fresh.values())) < sum(map(len, first.fresh.values())) / 4
    assert sorted(store) == sorted(part_names(second.head))
    engine.feed("S", rows(500, 510))
    engine.advance()
    third = kept(store, parts, engine)
    assert third.gone
    assert sorted(store) == sorted(part_names(third.head))
    assert read_note(third.head) == {"version": 1}


def test_an_engine_goes_on_from_its_parts(pool: pw.Pool) -> None:
    whole, engine = Engine(pool), Engine(pool)
    store: dict[str, bytes] = {}
    whole.feed("S", rows(0, 50))
    engine.feed("S", rows(0, 50))
    assert engine.advance()["q"] == whole.advance()["q"]
    change = kept(store, StateParts(), engine)
    tree, parts = read_parts(change.head, store.get)
    other = Engine(pool, tree)
    assert not parts.change(other.state(), {}).fresh
    whole.feed("S", rows(50, 90))
    other.feed("S", rows(50, 90))
    assert other.finish()["q"] == whole.finish()["q"]


def test_damage_is_refused(pool: pw.Pool) -> None:
    engine = Engine(pool)
    store: dict[str, bytes] = {}
    engine.feed("S", rows(0, 50))
    engine.advance()
    head = kept(store, StateParts(), engine).head
    name = max(store, key=lambda name: len(store[name]))
    with pytest.raises(StateProblem, match=f"its part {name} is missing or cut off"):
        read_parts(head, (store | {name: store[name][:-9]}).get)
    with pytest.raises(StateProblem, match=f"its part {name} is missing or cut off"):
        read_parts(head, {n: data for n, data in store.items() if n != name}.get)
    flipped = bytes([head[-1] ^ 1])
    with pytest.raises(StateProblem, match="its checksum is wrong"):
        read_note(head[:-1] + flipped)
