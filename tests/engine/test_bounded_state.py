"""An hour of event time with queries and keys that come and go: state stays within its bound."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import panewise as pw
from panewise.engine.panes.time_family import TimeFamily

RATE, HOUR = 200, 3600
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
CONTROL = "SELECT k % 10 AS d, SUM(v) AS s, MAX(v) AS m FROM S [RANGES 300, 60 SLIDES 60, 20] GROUP BY k % 10"


def second(at: int, rng: np.random.Generator) -> pa.Table:
    """One second: keys live for a minute, so that every minute brings new ones and forgets old ones."""
    keys = at // 60 * 50 + rng.integers(0, 50, RATE)
    times = np.maximum(at - rng.integers(0, 4, RATE), 0)
    return pa.table({"t": times, "k": keys, "v": rng.integers(0, 1000, RATE)}, schema=SCHEMA)


def family(engine: pw.Engine) -> TimeFamily:
    found = [f for f in engine._families.values() if f.plan.group.keys == ("S.k",)]
    assert isinstance(found[0], TimeFamily)
    return found[0]


def within_bound(one: TimeFamily) -> None:
    """Every chain holds no more panes than its stairs have granules, one astride each edge and one buffer each."""
    for chain in one.chains.evaluators:
        chain.chain.check()
        for stair in chain.chain.stairs:
            assert len(stair.panes) <= -(-(stair.level.range - stair.near) // stair.level.step) + 2
        assert len(chain.waiting) <= 10
    assert len(one.open.ends) <= 10


@pytest.mark.slow
def test_an_hour_of_joining_and_leaving() -> None:
    rng, choice = np.random.default_rng(7), random.Random(7)
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, time="t", delay=5)})
    pool.register("control", CONTROL)
    pool.register("first", "SELECT k, COUNT(*) AS n FROM S [RANGE 60 SLIDE 10] GROUP BY k")
    engine = pw.Engine(pool)
    seconds, said = [], []
    for at in range(HOUR):
        seconds.append(second(at, rng))
        engine.feed("S", seconds[-1])
        if at % 7 == 0:
            said.append(engine.advance()["control"])
        if at % 20 == 0:
            slide = choice.choice([5, 10, 15, 20, 30])
            text = f"SELECT k, COUNT(*) AS n FROM S [RANGE {slide * choice.randint(1, 8)} SLIDE {slide}] GROUP BY k"
            pool.register(f"q{at}", text)
            if len(pool.queries) > 12:
                pool.revoke(choice.choice([name for name in pool.queries if name.startswith("q")]))
        if at % 100 == 99:
            one = family(engine)
            within_bound(one)
            assert len(one.keys) <= 4 * 50 * (240 // 60 + 2) + 2048, "groups that no window sees are forgotten"
            assert engine.nbytes < 20_000_000
    said.append(engine.finish()["control"])
    order = [("w_level", "ascending"), ("w_end", "ascending"), ("d", "ascending")]
    alone = pw.run(CONTROL, {"S": pw.Stream(pa.concat_tables(seconds), time="t", delay=5)})
    assert pa.concat_tables(said).sort_by(order).equals(alone.sort_by(order))
