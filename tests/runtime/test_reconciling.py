"""The log of commands and the script are reconciled aloud: revoked and suspended queries stay so until resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from panewise.runtime.control import ControlLog, script_changes
from panewise.runtime.dead_letters import DeadLetter, DeadLetterFolder


def register(name: str, text: str, scripted: bool = True) -> dict[str, Any]:
    return {"op": "register", "name": name, "text": text, "start": "backfill", "scripted": scripted}


def suspend(name: str) -> dict[str, Any]:
    return {"op": "suspend", "name": name, "reason": "'x' is no INT", "row": {"k": "'x'"}, "batch": 3, "at": "now"}


def reconciled(log: ControlLog, script: dict[str, str]) -> list[str]:
    """Follow what a start with this script would follow; the sentences it says."""
    found = list(script_changes(log.known_queries(), script))
    commands = [command for _, some in found for command in some]
    if commands:
        log.append_commands(commands)
    return [sentence for sentence, _ in found]


def test_a_revoked_query_stays_revoked_after_a_restart_although_the_script_has_it(tmp_path: Path) -> None:
    log, script = ControlLog(tmp_path), {"a": "A", "b": "B"}
    reconciled(log, script)
    log.append_commands([{"op": "revoke", "name": "b"}])
    assert reconciled(log, script) == [
        "'b' stays revoked, although the script has it; 'panewise resume' brings it back"
    ]
    assert set(log.active_queries()) == {"a"}
    log.append_commands([log.known_queries()["b"].register_command("b")])
    assert reconciled(log, script) == []
    assert set(log.active_queries()) == {"a", "b"}


def test_a_suspended_query_stays_suspended_until_it_is_resumed_or_its_text_changes(tmp_path: Path) -> None:
    log = ControlLog(tmp_path)
    reconciled(log, {"a": "A", "b": "B"})
    number = log.append_commands([suspend("a"), suspend("b")])
    said = reconciled(log, {"a": "A", "b": "other"})
    assert said[0] == "'a' stays suspended: 'x' is no INT (on k='x'); 'panewise resume' tries it again"
    assert said[1].startswith("'b' begins anew")
    assert {name: query.text for name, query in log.active_queries().items()} == {"b": "other"}
    assert log.suspensions() == {"a": number, "b": number + 2**-20}
    log.append_commands([log.known_queries()["a"].register_command("a")])
    assert set(log.active_queries()) == {"a", "b"}
    assert log.suspensions()["a"] == number, "a shard that is not as far yet must still leave it out"


def test_what_the_script_says_no_more_leaves_and_what_joined_beside_it_stays(tmp_path: Path) -> None:
    log = ControlLog(tmp_path)
    reconciled(log, {"a": "A", "b": "B"})
    log.append_commands([register("peak", "P", scripted=False)])
    assert reconciled(log, {"a": "A"}) == [
        "'b' leaves: the script has it no more; the state of 'b' is dropped",
        "'peak' stays: it was registered beside the script; 'panewise revoke' lets it go",
    ]
    assert set(log.active_queries()) == {"a", "peak"}
    assert "'b' joins: the script has it" in reconciled(log, {"a": "A", "b": "B"}), "the script itself had revoked it"


def test_dead_letters_are_numbered_and_sinks_are_suspended_until_they_are_resumed(tmp_path: Path) -> None:
    letters, letter = DeadLetterFolder(tmp_path / "dead"), DeadLetter("a/b", "no", {"k": "'x'"}, batch=3)
    assert [letters.write(letter, "SELECT").name for _ in range(2)] == ["000001.json", "000002.json"]
    assert letters.sink_suspension("a/b") is None
    letters.suspend_sink(letter)
    assert letters.sink_suspensions() == {"a/b": letter}
    letters.resume_sink("a/b")
    assert letters.sink_suspensions() == {}
