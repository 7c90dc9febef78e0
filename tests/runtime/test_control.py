"""The control log: what nobody can follow is passed over aloud, and stops nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from panewise.core.errors import StateProblem
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.control import ControlLog, command_fault
from panewise.runtime.spark.shard import order_messages
from panewise.runtime.spark_log import check_log

REGISTER = {"op": "register", "name": "q", "text": "SELECT 1", "start": "backfill"}


@pytest.fixture
def control(tmp_path: Path) -> ControlLog:
    log = ControlLog(tmp_path)
    log.prepare()
    return log


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ({"op": "register", "name": "q", "start": "now"}, "register needs text, as text"),
        ({"op": "register", "name": 7, "text": "x"}, "register needs name and start, as text"),
        ({"op": "revoke"}, "revoke needs name, as text"),
        ({"op": "dance"}, "op 'dance' is unknown"),
        ({"name": "q"}, "op None is unknown"),
        ([1, 2], "it is no object with an op"),
        (REGISTER, None),
    ],
)
def test_a_command_that_cannot_be_followed_is_told(command: object, fault: str | None) -> None:
    found = command_fault(command)
    assert found is None if fault is None else fault in str(found)


def test_foreign_commands_are_passed_over_aloud(control: ControlLog, caplog: pytest.LogCaptureFixture) -> None:
    control.append_commands([REGISTER])
    (control.commands / "1x.json").write_text(json.dumps({"number": 1, "commands": [REGISTER]}))
    (control.commands / "00000002.json").write_text(json.dumps({"number": 2, "commands": [{"op": "register"}]}))
    (control.commands / "00000003.json").write_text("[1, 2]")
    for _ in range(3):
        assert list(control.active_queries()) == ["q"]
        assert not control.finished
    assert control.append_commands([{"op": "revoke", "name": "q"}]) == 4
    assert not control.active_queries()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 3
    assert any("1x.json' is passed over: its name is no number" in each for each in told)
    assert any("00000002.json' is passed over: register needs name and text and start" in each for each in told)


def test_shards_pass_over_what_the_driver_passes_over() -> None:
    entries = [
        {"number": 1, "commands": [REGISTER, {"op": "register"}, 7]},
        [1],
        {"number": 3},
        {"commands": [REGISTER]},
    ]
    found = order_messages([(-1, json.dumps(entry).encode()) for entry in entries])
    assert found == [REGISTER | {"number": 1.0}]
    with pytest.raises(StateProblem, match="the control log is damaged: a command cannot be read"):
        order_messages([(-1, b'{"number": 1, "comm')])


def test_requests_without_an_identity_are_passed_over_aloud(
    control: ControlLog, caplog: pytest.LogCaptureFixture
) -> None:
    for number, text in enumerate(
        ('[{"op": "revoke"}]', '{"op": "revoke", "name": "q"}', '{"id": "../../x"}', '{"id'), 1
    ):
        (control.requests / f"{number:08d}.json").write_text(text)
    identity = control.request("revoke", name="q")
    for _ in range(3):
        assert [request["id"] for request in control.pending_requests()] == [identity]
    assert len(caplog.records) == 4


def test_a_command_that_was_cut_off_is_refused_by_name(control: ControlLog) -> None:
    control.append_commands([REGISTER])
    path = control.commands / "00000001.json"
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(StateProblem, match=r"the control log is damaged: '.*00000001.json' cannot be read"):
        ControlLog(control.checkpoint).active_queries()


# ---- Spark's own checkpoint --------------------------------------------------------------------------------------

FILES = {
    "metadata": '{"id":"5bf96e1b-98b4-49f8-b4a5-7f648a2eee97"}',
    "offsets/0": 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":17}\n{"logOffset":0}\n-',
    "offsets/1": 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":18}\n7\n{"logOffset":1}',
    "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    "sources/0/0": 'v1\n{"path":"file:///a","timestamp":1,"batchId":0}\n{"path":"file:///b","timestamp":1,"batchId":0}',
    "sources/0/9.compact": 'v1\n{"path":"file:///a","timestamp":1,"batchId":0}',
    "sources/1/0": '\0v1\n{"topic":{"0":0}}',
}


@pytest.fixture
def spark_log(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "spark" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "spark"


def test_a_whole_log_of_spark_is_read(spark_log: Path) -> None:
    check_log(spark_log)
    (spark_log / "offsets" / ".1.crc").write_bytes(b"\xff")
    (spark_log / "offsets" / "notes.txt").write_text("mine")
    check_log(spark_log)
    check_log(spark_log / "nowhere")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["cut", "empty", "foreign"])
def test_a_damaged_file_of_spark_is_refused_by_name(spark_log: Path, name: str, damage: str) -> None:
    path = spark_log / name
    data = path.read_bytes()
    path.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "foreign": b"\xff\xfe\x00hello"}[damage])
    with pytest.raises(StateProblem, match=rf"/{name}' is damaged: it is cut off, or .*; restore it from a copy"):
        check_log(spark_log)


def test_a_file_that_could_not_be_read_may_be_removed(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    assert not checkpoint.is_known_unreadable("/in/a b.parquet")
    checkpoint.record_unreadable("/in/a b.parquet")
    checkpoint.record_unreadable("/in/a b.parquet")
    assert checkpoint.is_known_unreadable("/in/a b.parquet")
    assert not checkpoint.is_known_unreadable("/in/b.parquet")
