"""What shards log: all panes once, and the same ones when a batch is done again."""

from __future__ import annotations

import json

import pyarrow as pa

import panewise as pw
from panewise.runtime.pane_log import rows_of
from panewise.runtime.spark.run_context import Channel, RunContext
from panewise.runtime.spark.shard import Shard, order_messages, process_messages, restore_shard, state_change
from tests.spark.shards import Shards

from .logs import QUERY, SCHEMA, rows
from .logs import ordered as sorted_rows


def test_a_batch_that_is_done_again_logs_the_same_panes() -> None:
    """Each batch is worked on twice, from the same state, as after a crash; late rows are among them."""
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, time="t", delay=0)})
    pool.register("q", QUERY)
    pipeline = Shards(pool, 2)
    course = RunContext.of("run", pool, 2, [Channel("q", rows_of(pool, "q").schema, panes=True)])
    shards = [Shard(course.build_engine()) for _ in range(2)]
    commands: list[dict[str, object]] = [{"op": "register", "name": "q", "text": QUERY, "start": "backfill"}]
    late = pa.table({"t": [2, 51], "k": ["k0", "k1"], "v": [100, 1]}, schema=SCHEMA)
    logged: list[pa.Table] = []
    stores: list[dict[str, bytes]] = [{}, {}]
    for number, batch in enumerate([rows(0, 25), rows(25, 50), late, None], start=1):
        if batch is None:
            commands = [{"op": "finish"}]
        entry = (-1, json.dumps({"number": number, "commands": commands}).encode())
        sent: list[list[tuple[int, bytes]]] = [[entry], [entry]]
        for shard, place, payload in pipeline._sliced("S", batch) if batch is not None else ():
            sent[shard].append((place, payload))
        for label in range(2):
            change = state_change(shards[label])
            stores[label].update(change.fresh)
            again = [restore_shard(course, change.head, stores[label].get) for _ in range(2)]
            said = [panes(shard, course, sent[label]) for shard in again]
            assert said[0].equals(said[1])
            logged.append(panes(shards[label], course, sent[label]))
            assert logged[-1].equals(said[0])
        commands = []
    whole = pa.concat_tables(logged)
    assert sum(whole["count"].to_pylist()) == 202
    times = [slot for slot in whole.select(["pane_start", "pane_end", "k"]).to_pylist() if slot["pane_end"] == 5]
    assert len(sorted_rows(times)) == len(set(sorted_rows(times))) + 1, "the late row is a second part of its pane"


def panes(shard: Shard, course: RunContext, sent: list[tuple[int, bytes]]) -> pa.Table:
    found = [results.table for results in process_messages(shard, course, order_messages(sent))]
    return pa.concat_tables([course.channels[0].schema.empty_table(), *found])
