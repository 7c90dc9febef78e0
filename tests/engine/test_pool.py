"""Pools: what they say about themselves, and windows that join and leave a running engine."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.engine.panes.time_family import TimeFamily
from panewise.plan.rules.group_windows import WindowRole

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
EXPLAINED = Path(__file__).parent / "explained.txt"


def text(extent: str, what: str = "SUM(v) AS s, MAX(v) AS m") -> str:
    return f"SELECT k, {what} FROM S [{extent}] GROUP BY k"


def pool(*extents: str, policy: str = "cost", delay: int | None = None) -> pw.Pool:
    made = pw.Pool({"S": pw.StreamSchema(SCHEMA, time="t", delay=delay)}, policy=policy)
    for number, extent in enumerate(extents):
        made.register(f"q{number}", text(extent))
    return made


def rows(first: int, last: int) -> pa.Table:
    """Three groups, one item each at every tick."""
    times = np.repeat(np.arange(first, last), 3)
    return pa.table({"t": times, "k": np.tile([0, 1, 2], last - first), "v": times % 17}, schema=SCHEMA)


def plain(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_explain_names_families_groups_stairs_and_stores() -> None:
    one = pool("RANGE 4 SLIDE 2", "RANGE 12 SLIDE 4", "RANGE 12 SLIDE 8", "RANGE 24 SLIDE 8", policy="paper")
    one.register("lagged", text("RANGE 4 SLIDE 2 LAG 3"))
    one.register("ever", text("UNBOUNDED SLIDE 5"))
    one.register("mean", "SELECT AVG(v * 1.5D) AS a, MEDIAN(v) AS m FROM S [RANGE 7 SLIDE 3]")
    one.register("counted", "SELECT k, MAX(v) AS m FROM S [PARTITION BY k ROWS 10] GROUP BY k ALLOW UNBOUNDED")
    one.register("session", "SELECT COUNT(*) AS n FROM S [SESSION 4]")
    one.register("revised", "SELECT COUNT(*) AS n FROM S [RANGE 4 SLIDE 2] LATE REVISE 3")
    if os.environ.get("REGENERATE"):
        EXPLAINED.write_text(one.explain() + "\n", encoding="utf-8")
    assert one.explain() + "\n" == EXPLAINED.read_text(encoding="utf-8")


def test_explain_tells_what_frames_wait_for() -> None:
    one = pool(delay=3)
    one.register("low", "SELECT SUM(v) AS s FROM S [FRAME WHILE v < 4 FOR AT LEAST 5 PARTITION BY k] WHERE v > 1")
    one.register("regular", "SELECT * FROM S [FRAME WHILE v < 4 EVERY 1]")
    assert one.explain().splitlines() == [
        "low: frames [FRAME WHILE S.v < 4 FOR AT LEAST 5 PARTITION BY S.k], group by S.k",
        "  SUM(S.v) in running total: a frame only grows",
        "  a frame is known with the first item that is not in it, and certain when it has lasted 5",
        "  rows wait for the watermark, and are taken in the order of time",
        "  on shards: S by k",
        "regular: frames [FRAME WHILE S.v < 4 EVERY 1 MISSING FAILS], aggregate",
        "  a frame is known with the first item that is not in it, and certain with its first item",
        "  reports on schedule are taken at once, those after a gap wait for the watermark",
        "  on shards: all rows meet in one",
    ]


def test_windows_and_groups_say_the_same_as_data() -> None:
    one = pool("RANGE 4 SLIDE 2", "RANGE 12 SLIDE 4", "RANGE 12 SLIDE 8", policy="paper")
    roles = {window.query: (window.role, window.quotient) for window in one.windows()}
    assert roles == {"q0": (WindowRole.SEED, 1), "q1": (WindowRole.ENCLOSING, 1), "q2": (WindowRole.PIGGYBACKED, 2)}
    (group,) = one.groups()
    assert (group.base_slide, group.ranges, group.granules) == (2, (4, 12), (2, 4))


def test_a_picture_for_each_set_of_windows_that_may_slide_together() -> None:
    pictures = pool("RANGE 4 SLIDE 2", "RANGE 12 SLIDE 4", "RANGE 4 SLIDE 2 LAG 1").pictures()
    assert len(pictures) == 2
    for drawing in pictures:
        assert ElementTree.fromstring(drawing).tag.endswith("svg")


def test_families_are_queries_that_differ_only_in_their_windows() -> None:
    one = pool("RANGE 4 SLIDE 2", "RANGE 5 SLIDE 1")
    one.register("filtered", "SELECT k, SUM(v) AS s, MAX(v) AS m FROM S [RANGE 4 SLIDE 2] WHERE v > 3 GROUP BY k")
    one.register("other", text("RANGE 4 SLIDE 2", "SUM(v) AS s"))
    one.register("having", text("RANGE 9 SLIDE 3") + " HAVING SUM(v) > 10")
    assert [list(family.members) for family in one.families()] == [["q0", "q1", "having"], ["filtered"], ["other"]]


def test_a_window_whose_panes_are_there_answers_as_if_it_had_always_been_there() -> None:
    one = pool("RANGE 40 SLIDE 1")
    engine = pw.Engine(one)
    engine.feed("S", rows(0, 60))
    engine.advance(50)
    one.register("late", text("RANGE 21 SLIDE 3"))
    engine.feed("S", rows(60, 90))
    found = plain(engine.finish()["late"])
    whole = pw.run(text("RANGE 21 SLIDE 3"), {"S": rows(0, 90)}, time="t")
    assert found == plain(whole.filter(pa.compute.field("w_end") > 50))


def test_a_window_whose_panes_are_too_coarse_starts_half_filled() -> None:
    one = pool("RANGE 40 SLIDE 10")
    engine = pw.Engine(one)
    engine.feed("S", rows(0, 55))
    engine.advance(52)
    one.register("fine", text("RANGE 21 SLIDE 3", "COUNT(*) AS n"))
    one.register("q1", text("RANGE 21 SLIDE 3"))
    engine.feed("S", rows(55, 120))
    found = engine.finish()["q1"]
    whole = plain(pw.run(text("RANGE 21 SLIDE 3"), {"S": rows(0, 120)}, time="t"))
    later = plain(pw.run(text("RANGE 21 SLIDE 3"), {"S": rows(61, 120)}, time="t"))
    assert found.num_rows
    for row in found.to_pylist():
        assert repr(row) in (whole if row["w_start"] >= 60 else later)
    assert len([row for row in found.to_pylist() if row["w_start"] >= 60]) == len(
        [row for row in whole if int(row.split("'w_start': ")[1].split(",")[0]) >= 60]
    )


def test_what_joins_and_leaves_has_degraded_is_grouped_anew_without_a_gap() -> None:
    extents = [f"RANGE {3 * n} SLIDE 3" for n in range(1, 9)]
    one = pool(*extents, "RANGE 30 SLIDE 1")
    engine = pw.Engine(one)
    said: dict[str, list[pa.Table]] = {}
    for start in range(0, 200, 5):
        engine.feed("S", rows(start, start + 5))
        for name, table in engine.advance(start + 3).items():
            said.setdefault(name, []).append(table)
        if start == 50:
            one.revoke("q8")  # nobody needs single ticks any more
            for number in range(9, 16):
                one.register(f"q{number}", text(f"RANGE {6 * number} SLIDE 6"))
    for name, table in engine.finish().items():
        said[name].append(table)
    for number, extent in enumerate(extents):
        alone = pw.run(text(extent), {"S": rows(0, 200)}, time="t")
        assert plain(pa.concat_tables(said[f"q{number}"])) == plain(alone), extent


def test_keys_that_no_window_sees_are_forgotten() -> None:
    one = pool("RANGE 10 SLIDE 5")
    engine = pw.Engine(one)
    found = []
    for start in range(0, 100, 5):
        times = np.arange(5_000) // 1_000 + start
        engine.feed("S", pa.table({"t": times, "k": np.arange(5_000) + 1_000 * start, "v": times}, schema=SCHEMA))
        found.append(engine.advance(start + 4)["q0"].num_rows)
    (family,) = engine._families.values()
    assert isinstance(family, TimeFamily)
    assert len(family.keys) < 60_000, "of 100,000 keys, 15,000 are in some window"
    assert sum(found) == 187_000


def test_the_pool_of_a_running_engine_tells_how_windows_are_grouped_now() -> None:
    one = pool("RANGE 24 SLIDE 8", policy="paper")
    engine = pw.Engine(one)
    engine.feed("S", rows(0, 30))
    one.register("z", text("RANGE 32 SLIDE 4"))
    assert [group.seed.slide for group in one.groups()] == [8, 4]
    one.revoke("q0")
    assert [group.seed.slide for group in one.groups()] == [4]
    assert engine.advance(20)["z"].schema.names == ["k", "s", "m", "w_start", "w_end"]


@pytest.mark.parametrize("policy", ["cost", "paper"])
def test_both_policies_answer_alike(policy: str) -> None:
    extents = [f"RANGE {length} SLIDE {slide}" for length in (7, 12, 24, 30) for slide in (2, 3, 8)]
    engine = pw.Engine(pool(*extents, policy=policy))
    engine.feed("S", rows(0, 80))
    results = engine.finish()
    for number, extent in enumerate(extents):
        assert plain(results[f"q{number}"]) == plain(pw.run(text(extent), {"S": rows(0, 80)}, time="t")), extent


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS n FROM S [PARTITION BY k SESSION 2] GROUP BY k",
        "SELECT ISTREAM k, COUNT(*) AS n FROM S [PARTITION BY k SESSION 2] GROUP BY k",
        "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM S [ROWS 50] GROUP BY k",
        "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM S [RANGE 5] GROUP BY k",
        "SELECT RSTREAM k, MAX(v) AS m FROM S [ROWS 30] GROUP BY k",
    ],
)
def test_forgetting_keys_changes_no_answer(query: str) -> None:
    one = pw.Pool({"S": pw.StreamSchema(SCHEMA, time="t", delay=0)})
    one.register("q", query)
    engine = pw.Engine(one)
    parts, said = [], []
    for start in range(0, 60, 2):
        times = np.repeat([start, start + 1], 120)
        parts.append(pa.table({"t": times, "k": 100 * start + np.arange(240) // 2, "v": times}, schema=SCHEMA))
        engine.feed("S", parts[-1])
        said.append(engine.advance()["q"])
    (family,) = engine._families.values()
    assert len(family.keys) < 2_500, "3,600 keys came by"
    said.append(engine.finish()["q"])
    alone = pw.run(query, {"S": pw.Stream(pa.concat_tables(parts), time="t")})
    assert plain(pa.concat_tables(said)) == plain(alone)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(["cost", "paper"]))
def test_windows_that_come_and_go_between_rows_see_all_rows_after_some_instant(random: Random, policy: str) -> None:
    """Many join and leave a running engine at once; with the paper's groups, others may have to move."""
    made = pw.Pool({"S": pw.StreamSchema(pa.schema([("t", pa.int64()), ("v", pa.int64())]), time="t")}, policy=policy)
    engine, values = pw.Engine(made), [0]
    for turn in range(10):
        for number in range(random.randint(0, 6)):
            if made.queries and random.random() < 0.4:
                made.revoke(random.choice(list(made.queries)))
            else:
                slide = random.choice([1, 2, 3, 4, 6, 8])
                text = f"SELECT SUM(v) AS s FROM S [RANGE {random.randint(slide, 5 * slide)} SLIDE {slide}]"
                made.register(f"q{turn}.{number}", text, since=len(values) - 1 if random.random() < 0.2 else None)
        fresh = [random.randint(1, 99) for _ in range(random.randint(1, 8))]
        engine.feed("S", pa.table({"t": range(len(values), len(values) + len(fresh)), "v": fresh}))
        values += fresh
        for found in engine.advance(len(values) - 1).values():
            for row in found.to_pylist():
                seen = values[max(row["w_start"] + 1, 0) : row["w_end"] + 1]
                assert row["s"] in {sum(seen[first:]) for first in range(len(seen))}


def test_windows_that_change_at_the_same_instant_report_apart() -> None:
    """The last instant of the first window is the first of the second."""
    schema = pa.schema([("t", pa.int64()), ("v", pa.int64())])
    pool = pw.Pool({"S": pw.StreamSchema(schema, "t")})
    for count in (1, 2):
        pool.register(f"last {count}", f"SELECT SUM(v) AS s FROM S [ROWS {count}]")
    engine = pw.Engine(pool)
    engine.feed("S", pa.table([[1, 1], [1, 2]], schema))
    engine.advance(1)
    engine.feed("S", pa.table([[2], [5]], schema))
    found = engine.finish()
    assert [(row["s"], row["sign"]) for row in found["last 1"].to_pylist()] == [(5, 1), (2, -1)]
    assert [(row["s"], row["sign"]) for row in found["last 2"].to_pylist()] == [(7, 1), (3, -1)]
