"""One process at a time owns a checkpoint; whoever has lost it writes nothing more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from panewise.core.errors import StateProblem
from panewise.runtime import lease as module
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.lease import Fence, Lease

OWNING = """
import sys, time
from pathlib import Path
from panewise.runtime.lease import Lease
Lease(Path(sys.argv[1])).acquire()
print("taken", flush=True)
time.sleep(600)
"""


@contextmanager
def owner(checkpoint: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns a checkpoint."""
    command = [sys.executable, "-c", OWNING, str(checkpoint)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def moved(checkpoint: Path, epoch: int = 1) -> None:
    """Let an owner look as if it were on another machine."""
    path = checkpoint / "owners" / f"{epoch:08d}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"machine": "elsewhere", "host": "far"}))


@pytest.mark.timed
def test_a_second_process_is_refused_at_once_and_told_who_owns_it(tmp_path: Path) -> None:
    with owner(tmp_path) as process:
        began = time.monotonic()
        with pytest.raises(StateProblem, match=rf"is in use by process {process.pid} on \S+ since 20.*; stop that"):
            Lease(tmp_path).acquire()
        assert time.monotonic() - began < 1


def test_a_killed_owner_is_followed_without_waiting(tmp_path: Path) -> None:
    with owner(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        # Also as a zombie, whom nobody has waited for.
        ending = time.monotonic() + 10
        while (
            process.returncode is None and module._process_start(process.pid) is not None and time.monotonic() < ending
        ):
            time.sleep(0.01)
        lease = Lease(tmp_path)
        lease.acquire()
        assert lease.fence == Fence(str(tmp_path / "owners"), 2)
        lease.release()


def test_a_number_that_another_process_has_now_is_no_owner(tmp_path: Path) -> None:
    Lease(tmp_path).acquire()
    path = tmp_path / "owners" / "00000001.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"born": "1"}))
    Lease(tmp_path).acquire()


def test_one_process_does_not_own_it_twice_but_may_give_it_on(tmp_path: Path) -> None:
    first, second = Lease(tmp_path), Lease(tmp_path)
    first.acquire()
    first.acquire()
    with pytest.raises(StateProblem, match=rf"in use by process {os.getpid()} "):
        second.acquire()
    first.release()
    second.acquire()
    assert (first.held, second.held, second.fence.epoch) == (False, True, 2)
    second.release()


def test_an_owner_on_another_machine_is_listened_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_INTERVAL", 0.05)
    alive = Lease(tmp_path)
    alive.acquire()
    moved(tmp_path)
    with pytest.raises(StateProblem, match=r"in use by process \d+ on far"):
        Lease(tmp_path).acquire()
    alive.release()
    Lease(tmp_path).acquire()


def test_an_owner_on_another_machine_that_is_silent_is_fenced_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_INTERVAL", 0.05)
    monkeypatch.setattr(module, "HEARTBEAT_TIMEOUT", 0.4)
    stuck = Lease(tmp_path)
    with monkeypatch.context() as paused:
        paused.setattr(Lease, "_write_heartbeats", lambda *_: None)
        stuck.acquire()
    moved(tmp_path)
    # What it says of the time does not matter, only that it says nothing more.
    os.utime(tmp_path / "owners" / "00000001.json", (2**31, 2**31))
    later = Lease(tmp_path)
    later.acquire()
    with pytest.raises(StateProblem, match=rf"has lost its checkpoint to process {os.getpid()} on \S+ since"):
        stuck.fence.check()
    with pytest.raises(StateProblem, match="has lost its checkpoint"):
        stuck.acquire()
    later.fence.check()
    stuck.release()
    with pytest.raises(StateProblem, match="in use"):
        stuck.acquire()
    later.release()


def test_of_many_who_come_at_once_one_gets_it(tmp_path: Path) -> None:
    leases, refused = [Lease(tmp_path) for _ in range(12)], []

    def take(lease: Lease) -> None:
        try:
            lease.acquire()
        except StateProblem as problem:
            refused.append(problem)

    threads = [threading.Thread(target=take, args=(lease,)) for lease in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(lease.held for lease in leases) == 1
    assert len(refused) == 11


def test_an_owner_stays_fenced_off_when_its_successor_is_forgotten(tmp_path: Path) -> None:
    first = Lease(tmp_path)
    first.acquire()
    first.release()
    for _ in range(2 * module.KEPT_OWNERS):
        later = Lease(tmp_path)
        later.acquire()
        later.release()
    assert len(list((tmp_path / "owners").glob("*.json"))) == module.KEPT_OWNERS
    with pytest.raises(StateProblem, match="has lost its checkpoint"):
        first.fence.check()


def test_a_checkpoint_that_cannot_be_written_is_not_said_to_be_damaged(tmp_path: Path) -> None:
    (tmp_path / "owners").write_text("not a folder")
    with pytest.raises(StateProblem, match=r"cannot be written: .*; check space and permissions"):
        Checkpoint(tmp_path).lease.acquire()
