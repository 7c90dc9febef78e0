"""Damaged bytes are refused in one sentence before Arrow sees them; in this process, since nothing may end it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import StateProblem
from panewise.engine import Engine
from panewise.engine.state.parts import StateParts, read_parts
from panewise.engine.state.sealed import seal_table, unseal_table
from panewise.engine.state.snapshot import FORMAT, deserialize_tree, serialize_tree
from panewise.runtime.checkpoint import Checkpoint
from tests.mutations import mutations

from .test_restart import QUERIES, engine, stream

DAMAGED = r"is damaged: (it is cut off|something follows it|its checksum is wrong)|its beginning is damaged"


@pytest.fixture(scope="module")
def worked() -> Engine:
    names = ("sliding", "holistic", "sessions", "rows", "revised")
    found = engine(stream(300), 3, {name: QUERIES[name] for name in names})
    found.feed("S", stream(300))
    found.advance()
    return found


def test_every_damage_to_a_snapshot_is_one_clear_refusal(worked: Engine) -> None:
    data = worked.snapshot()
    Engine.restore(data)
    for damaged in mutations(data, 1000):
        with pytest.raises(StateProblem, match=f"the snapshot .*({DAMAGED}).*; pass what Engine.snapshot"):
            Engine.restore(damaged)


def test_every_damage_to_a_part_or_a_head_of_the_state_is_one_clear_refusal(worked: Engine) -> None:
    change = StateParts().change(worked.state(), {})
    read_parts(change.head, change.fresh.get)
    for damaged in mutations(change.head, 200):
        with pytest.raises(StateProblem, match=f"the state .*({DAMAGED}); start from an older copy"):
            read_parts(damaged, change.fresh.get)
    for name, data in change.fresh.items():
        for damaged in mutations(data, 10):
            with pytest.raises(StateProblem, match=f"part {name} .*({DAMAGED}|is missing or cut off)"):
                read_parts(change.head, (change.fresh | {name: damaged}).get)


def test_every_damage_to_a_message_is_one_clear_refusal() -> None:
    table = stream(50)
    message = serialize_tree({"stream": "S", "rows": [["lane", table]], "seen": [0, 9]}, {"format": FORMAT})
    assert deserialize_tree(message, "a message", "")[0]["rows"][0][1].equals(table)
    for damaged in mutations(message, 200):
        with pytest.raises(StateProblem, match=f"a message .*({DAMAGED}); send it again"):
            deserialize_tree(damaged, "a message", "send it again")
    answer = seal_table(table)
    for damaged in mutations(answer, 200):
        with pytest.raises(StateProblem, match=f"an answer .*({DAMAGED}); ask again"):
            unseal_table(damaged, "an answer", "ask again")


def test_every_damage_to_the_plan_of_a_checkpoint_is_one_clear_refusal(worked: Engine, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    plan, path = checkpoint.create(worked.pool, (0, 1), "files"), tmp_path / "checkpoint" / "plan.json"
    data, refused = path.read_bytes(), 0
    for damaged in mutations(data, 200):
        path.write_bytes(damaged)
        try:
            assert checkpoint.plan() == plan  # a space more or less between words is no damage
        except StateProblem as problem:
            refused += "is damaged" in str(problem) or "has format" in str(problem)
    assert refused > 190


@pytest.mark.parametrize("data", [b"", b"panewise", b"panewise" + bytes(15), bytes(64)])
def test_bytes_too_short_or_foreign_are_no_snapshot(data: bytes) -> None:
    with pytest.raises(StateProblem, match="was not written by Panewise"):
        pw.Engine.restore(data)


def test_a_table_of_no_rows_passes(worked: Engine) -> None:
    empty = pa.table({"a": pa.array([], pa.decimal128(9, 2))})
    assert unseal_table(seal_table(empty), "it", "").equals(empty)
