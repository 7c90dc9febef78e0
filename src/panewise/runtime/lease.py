"""Who may write to a checkpoint: one process at a time, also among machines that share the folder.

Every owner has an *epoch*, the number of a file in `owners` that is created once and never changed; the next
owner takes the next number, so that an owner has lost the checkpoint as soon as that file exists. Safety rests on this
*fence* alone, which is checked before anything is written. The heartbeat only decides how long to wait for an owner on
another machine.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from panewise.core.errors import StateProblem
from panewise.runtime.atomic_files import create_atomic, private_folder

log = logging.getLogger("panewise.lease")

#: An owner shows that it is alive this often, in seconds.
HEARTBEAT_INTERVAL = 1.0
#: An owner on another machine without a heartbeat for this many seconds is taken as ended.
HEARTBEAT_TIMEOUT = 30.0
#: So many owners are kept on record.
KEPT_OWNERS = 16
#: The content of the heartbeat file of an owner that has ended.
_RELEASED = "gone"


@dataclass(frozen=True)
class Owner:
    """A process that owns a checkpoint, or did."""

    epoch: int
    machine: str
    host: str
    pid: int
    #: When the process started, so that another process with the same number is not taken for it.
    born: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"

    @property
    def has_ended(self) -> bool | None:
        """Whether the process has ended; None where that cannot be seen from here."""
        return None if self.machine != _machine_id() else _process_start(self.pid) != self.born


@dataclass(frozen=True)
class Fence:
    """What a writer needs to check its epoch; it is sent to the workers."""

    folder: str
    epoch: int

    def check(self) -> None:
        """Refuse to continue once another process owns the checkpoint."""
        successor = _owner_path(Path(self.folder), self.epoch + 1)
        if successor.exists() or not _owner_path(Path(self.folder), self.epoch).exists():
            raise StateProblem(
                f"this pipeline has lost its checkpoint to {_read_owner(successor) or 'another process'}",
                fix="it stops here; what it has committed is kept, and the other one goes on from there",
            )


class Lease:
    """The right to write to a checkpoint, which one process has at a time."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint, self.folder = checkpoint, checkpoint / "owners"
        self.fence = Fence(str(self.folder), 0)
        self._lock = threading.Lock()
        self._ended: threading.Event | None = None

    @property
    def held(self) -> bool:
        return self._ended is not None

    def owner(self) -> Owner | None:
        """The process that has the checkpoint now, as far as that can be seen from here."""
        last = max(_epochs(self.folder), default=0)
        found = None if _read_heartbeat(self.folder, last) == _RELEASED else _read_owner(_owner_path(self.folder, last))
        return None if found is None or found.has_ended else found

    def acquire(self) -> None:
        """Become the owner, or stay it; refuses while another process is the owner."""
        with self._lock:
            if self.held:
                self.fence.check()
                return
            try:
                private_folder(self.checkpoint)
                self.folder.mkdir(exist_ok=True)
                self.fence = Fence(str(self.folder), self._claim_epoch())
                self._remove_old_owners()
            except OSError as problem:
                raise StateProblem(
                    f"checkpoint '{self.checkpoint}' cannot be written: {problem.strerror}",
                    fix="check space and permissions",
                ) from None
            self._ended = threading.Event()
            threading.Thread(target=self._write_heartbeats, args=(self._ended, self.fence.epoch), daemon=True).start()

    def release(self) -> None:
        """Give the lease up, so that the next owner need not wait."""
        with self._lock:
            if self._ended is not None:
                self._ended.set()
                self._ended = None
                with suppress(OSError):
                    _heartbeat_path(self.folder, self.fence.epoch).write_text(_RELEASED)

    def _claim_epoch(self) -> int:
        """Claim the next epoch and return it."""
        while True:
            last = max(_epochs(self.folder), default=0)
            if last and not self._is_abandoned(last):
                owner = _read_owner(_owner_path(self.folder, last)) or "another one"
                raise StateProblem(
                    f"checkpoint '{self.checkpoint}' is in use by {owner}",
                    fix="stop that pipeline first, or give this one a checkpoint of its own; "
                    "of a copy remove the folder 'owners'",
                )
            since = datetime.now(UTC).isoformat(timespec="seconds")
            mine = Owner(last + 1, _machine_id(), platform.node(), os.getpid(), str(_process_start(os.getpid())), since)
            if create_atomic(_owner_path(self.folder, mine.epoch), json.dumps(asdict(mine)).encode()):
                return mine.epoch

    def _is_abandoned(self, epoch: int) -> bool:
        """Whether the owner of an epoch has ended. If its process cannot be seen, its heartbeat is watched, by our own
        clock."""
        first = _read_heartbeat(self.folder, epoch)
        if first == _RELEASED:
            return True
        owner = _read_owner(_owner_path(self.folder, epoch))
        if owner is not None and owner.has_ended is not None:
            return owner.has_ended
        log.warning("waiting up to %.0f s for a sign of %s", HEARTBEAT_TIMEOUT, owner or "the owner of the checkpoint")
        ending = time.monotonic() + HEARTBEAT_TIMEOUT
        while time.monotonic() < ending:
            time.sleep(HEARTBEAT_INTERVAL / 4)
            if (now := _read_heartbeat(self.folder, epoch)) != first:
                return now == _RELEASED
        return True

    def _write_heartbeats(self, ended: threading.Event, epoch: int) -> None:
        while not ended.wait(HEARTBEAT_INTERVAL):
            # Under the lock: an owner that ends must write nothing after its last heartbeat.
            with self._lock, suppress(OSError):
                if not ended.is_set():
                    _heartbeat_path(self.folder, epoch).write_text(uuid.uuid4().hex)

    def _remove_old_owners(self) -> None:
        for epoch in sorted(_epochs(self.folder))[:-KEPT_OWNERS]:
            _owner_path(self.folder, epoch).unlink(missing_ok=True)
            _heartbeat_path(self.folder, epoch).unlink(missing_ok=True)


def _owner_path(folder: Path, epoch: int) -> Path:
    return folder / f"{epoch:08d}.json"


def _heartbeat_path(folder: Path, epoch: int) -> Path:
    return folder / f"{epoch:08d}.beat"


def _epochs(folder: Path) -> list[int]:
    return [int(path.stem) for path in folder.glob("*.json") if path.stem.isdecimal()]


def _read_heartbeat(folder: Path, epoch: int) -> str | None:
    try:
        return _heartbeat_path(folder, epoch).read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return None


def _read_owner(path: Path) -> Owner | None:
    """The owner that a file names; None where it names none."""
    try:
        return Owner(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _machine_id() -> str:
    """Identifies the machine since its start, and the space of process numbers in it."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{booted} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return f"{platform.node()} {uuid.getnode()}"


def _process_start(pid: int) -> str | None:
    """When a process started, in units of its machine; None where there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None if Path("/proc/self/stat").exists() else _start_if_alive(pid)
    # A process that has ended and has not been waited for writes nothing any more.
    return None if fields[0] in "ZX" else fields[19]


def _start_if_alive(pid: int) -> str | None:
    """The same on systems that only report whether the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return "unknown"
    return "unknown"
