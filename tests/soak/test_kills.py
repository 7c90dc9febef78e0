"""Drivers, their JVMs and their workers are killed at random moments; a verifier that shares no code checks the rest.

Each round starts a driver, lets it work while files arrive, and ends it by force in one of the ways of `WAYS`. Now and
then a second driver is started on the same checkpoint. In the end one driver finishes, and every answer must be there
exactly once, every row in the account, and every pane in the log.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from . import verifier
from .supply import LATE, Supply

REPOSITORY = Path(__file__).parents[2]
#: How drivers end: what is killed, and how often each way is drawn.
WAYS = ("all", "all", "driver", "jvm", "workers", "rival", "term")
#: Seconds within which a driver does its first batch on a busy machine.
PATIENCE = 150


def start(folder: Path, state: str, mode: str = "follow") -> subprocess.Popen[bytes]:
    with open(folder / "log", "ab") as log:
        command = [sys.executable, "-m", "tests.soak.driver", str(folder), state, mode]
        return subprocess.Popen(command, cwd=REPOSITORY, stdout=log, stderr=log, start_new_session=True)


def descendants(process: int) -> dict[int, bytes]:
    """The commands of all processes below one; workers have groups of their own, so groups do not tell."""
    parents, commands = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            commands[int(entry.name)] = (entry / "cmdline").read_bytes()
    below, grown = {process}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in below} - below
        grown, below = bool(more), below | more
    return {child: commands.get(child, b"") for child in below - {process}}


def shoot(number: int, how: signal.Signals = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):
        os.kill(number, how)


def end(process: subprocess.Popen[bytes]) -> None:
    """Driver, JVM and workers at once, as when a machine loses power."""
    for number in [process.pid, *descendants(process.pid)]:
        shoot(number)
    process.wait()


def committed(folder: Path) -> int:
    """How many batches are done."""
    return max((int(path.name) + 1 for path in (folder / "checkpoint/spark/commits").glob("[0-9]*")), default=0)


class Round:
    """One driver's life: what arrives meanwhile, and how it ends."""

    def __init__(self, folder: Path, state: str, supplies: list[Supply], choice: random.Random) -> None:
        self.folder, self.state, self.supplies, self.choice = folder, state, supplies, choice

    def live(self, way: str) -> bool:
        """Whether the driver was still there to be ended."""
        process = start(self.folder, self.state)
        try:
            self._wait(process)
            if process.poll() is not None:
                return False
            getattr(self, f"_{way}")(process)
            return True
        finally:
            end(process)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Let files come until the driver has done some batches, or not even begun."""
        before, wanted = committed(self.folder), self.choice.choice([0, 1, 1, 2, 3])
        ending = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < ending:
            if committed(self.folder) >= before + wanted:
                break
            self._supply()
            time.sleep(0.5)
        time.sleep(self.choice.uniform(0, 2 if wanted else 12))

    def _supply(self) -> None:
        late = committed(self.folder) > 0
        if self.supplies[0].files < 12 + 6 * committed(self.folder):
            for supply in self.supplies:
                supply.write(late)

    def _all(self, process: subprocess.Popen[bytes]) -> None:
        """`live` ends everything."""

    def _driver(self, process: subprocess.Popen[bytes]) -> None:
        orphans = descendants(process.pid)
        shoot(process.pid)
        process.wait()
        # The JVM notices by itself, and must not go on writing for long.
        time.sleep(self.choice.uniform(0, 3))
        for orphan in orphans:
            shoot(orphan)

    def _jvm(self, process: subprocess.Popen[bytes]) -> None:
        for number, command in descendants(process.pid).items():
            if b"SparkSubmit" in command:
                shoot(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)

    def _workers(self, process: subprocess.Popen[bytes]) -> None:
        for number, command in descendants(process.pid).items():
            if b"pyspark" in command and b"daemon" in command and self.choice.random() < 0.7:
                shoot(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(self.choice.uniform(1, 15))

    def _rival(self, process: subprocess.Popen[bytes]) -> None:
        """A second driver on the same checkpoint; both are ended while they run, if the second was let in at all."""
        rival = start(self.folder, self.state)
        try:
            for _ in range(40):
                self._supply()
                time.sleep(0.5)
                if rival.poll() is not None:
                    break
        finally:
            end(rival)

    def _term(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)


@pytest.mark.soak
@pytest.mark.parametrize(("state", "kills"), [("rocksdb", 20), ("files", 20)])
def test_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path, state: str, kills: int) -> None:
    choice = random.Random(kills + len(state))
    supplies = [Supply(tmp_path / name, seed) for seed, name in enumerate("ST")]
    two = state == "rocksdb"
    (tmp_path / "app.cql").write_text(verifier.SCRIPT + (verifier.PAIRS if two else ""))
    ways = [WAYS[number % len(WAYS)] for number in range(kills)]
    choice.shuffle(ways)
    done: list[str] = []
    for supply in supplies:
        supply.write(late=False)
    for way in ways:
        killing = Round(tmp_path, state, supplies if two else supplies[:1], choice)
        for _ in range(3):
            if killing.live(way):
                done.append(way)
                break
    for _ in range(3):
        process = start(tmp_path, state, "finish")
        with suppress(subprocess.TimeoutExpired):
            process.wait(300)
        end(process)
        if (tmp_path / "done").exists():
            break
    log = (tmp_path / "log").read_text()[-3000:]
    assert (tmp_path / "done").exists(), log
    assert len(done) == kills, f"only {len(done)} of {kills} were killed: {done}\n{log}"
    s, t = supplies
    wanted = verifier.expected(s.good, t.good)
    for name in wanted if two else set(wanted) - {"pairs"}:
        found = verifier.found(tmp_path, name, LATE)
        missing, extra = wanted[name] - found, found - wanted[name]
        assert not missing, f"{name}: {len(missing)} of {wanted[name].total()} are missing, such as {min(missing)}"
        assert not extra, f"{name}: {len(extra)} are there too often, such as {min(extra)}"
    assert not verifier.miscounted(verifier.panes(tmp_path, LATE), s.good)
    read = supplies if two else supplies[:1]
    account = verifier.account(tmp_path / "checkpoint")
    assert account["rows_in"] == sum(supply.rows for supply in read)
    assert account["rejected"] == sum(supply.poison for supply in read)
    assert account["rows_in"] == account["used"] + account["late"] + account["rejected"]
