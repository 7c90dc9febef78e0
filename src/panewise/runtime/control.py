"""The control log of a pipeline: commands that let queries join and leave while it runs.

A folder of numbered JSON files. A file is written whole or not at all, never changed, and never numbered twice, so
that several processes may write and any number may read. *Requests* come from anybody; the pipeline turns each into a
*command*, which its shards follow, or into a *refusal*.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from panewise.errors import StateProblem
from panewise.runtime.whole import clear_drafts, create_whole, private_folder

log = logging.getLogger("panewise.control")

#: The names of files that are read.
NUMBERED = "[0-9]" * 8 + ".json"
#: What each command must say, all of it as text.
_SAID = {"register": ("name", "text", "start"), "revoke": ("name",), "finish": ()}


def malformed(command: Any) -> str | None:
    """What is wrong with a command or a request, whoever wrote it."""
    if not isinstance(command, dict):
        return "it is no object with an op"
    if command.get("op") not in _SAID:
        return f"op {command.get('op')!r} is unknown; use one of {', '.join(_SAID)}"
    lacking = [name for name in _SAID[command["op"]] if not isinstance(command.get(name), str)]
    return f"{command['op']} needs {' and '.join(lacking)}, as text" if lacking else None


@dataclass(frozen=True)
class Registered:
    """A query that stands according to the log: its text, whether it started now, and whether the script wrote it."""

    text: str
    start: str
    scripted: bool


class ControlLog:
    """The log in the folder of a checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.requests, self.commands, self.refusals = (checkpoint / n for n in ("requests", "commands", "refusals"))
        #: Files that have been read: they never change.
        self._known: dict[Path, Any] = {}
        self._complained: set[Path] = set()

    def prepare(self) -> None:
        private_folder(self.checkpoint)
        for folder in self._folders:
            folder.mkdir(parents=True, exist_ok=True)

    def clear_drafts(self) -> None:
        """Remove what killed processes left half written; somebody may just be writing, so that the newest stay."""
        for folder in self._folders:
            clear_drafts(folder, patience=3600)

    @property
    def _folders(self) -> tuple[Path, ...]:
        return self.requests, self.commands, self.refusals

    def request(self, op: str, **arguments: Any) -> str:
        """Ask for something; the identity of the request, by which its fate can be found."""
        identity = uuid.uuid4().hex
        _append(self.requests, {"id": identity, "op": op, **arguments})
        return identity

    def command(self, commands: Sequence[Mapping[str, Any]]) -> int:
        """Append commands that take effect together; the number of the file that holds them."""
        try:
            return _append(self.commands, {"commands": list(commands)})
        except OSError as problem:
            raise StateProblem(
                f"the control log in '{self.commands}' cannot be written: {problem.strerror}",
                fix="check space and permissions",
            ) from None

    def refuse(self, identity: str, reason: str) -> None:
        create_whole(self.refusals / f"{identity}.json", _text({"id": identity, "reason": reason}))

    def pending(self) -> list[dict[str, Any]]:
        """Requests that have been neither followed nor refused, in their order."""
        done = {c.get("id") for _, some in self.history() for c in some} | self._refused()
        found = []
        for path, request in self._read(self.requests, lenient=True):
            if not isinstance(request, dict) or not _usable(request.get("id")):
                self._complain(path, "it has no id by which it could be answered")
            elif request["id"] not in done:
                found.append(request)
        return found

    def fate(self, identity: str) -> str | None:
        """What became of a request: an empty text when it was followed, the reason when it was refused."""
        if any(command.get("id") == identity for _, some in self.history() for command in some):
            return ""
        path = self.refusals / f"{identity}.json"
        return str(json.loads(path.read_text())["reason"]) if path.exists() else None

    def history(self) -> list[tuple[int, list[dict[str, Any]]]]:
        """All commands, by the number of their file."""
        found = []
        for path, entry in self._read(self.commands):
            commands = entry.get("commands") if isinstance(entry, dict) else None
            listed: list[Any] = commands if isinstance(commands, list) else [None]
            for fault in (fault for fault in map(malformed, listed) if fault is not None):
                self._complain(path, fault)
            found.append((int(path.stem), [command for command in listed if malformed(command) is None]))
        return found

    def standing(self) -> dict[str, Registered]:
        """The queries that stand when every command has been followed."""
        found: dict[str, Registered] = {}
        for _, commands in self.history():
            for command in commands:
                match command["op"]:
                    case "register":
                        fresh = Registered(command["text"], command["start"], bool(command.get("scripted")))
                        found.setdefault(command["name"], fresh)
                    case "revoke":
                        found.pop(command["name"], None)
        return found

    @property
    def finished(self) -> bool:
        return any(command["op"] == "finish" for _, commands in self.history() for command in commands)

    def _read(self, folder: Path, lenient: bool = False) -> list[tuple[Path, Any]]:
        """All files of a folder in their order. What is not named by a number is none of them."""
        for path in folder.glob("*.json"):
            if not _numbered(path):
                self._complain(path, "its name is no number of eight digits")
        paths = sorted(filter(_numbered, folder.glob("*.json")))
        for path in [path for path in paths if path not in self._known]:
            try:
                self._known[path] = _entry(path)
            except StateProblem as problem:
                if not lenient:
                    raise
                self._complain(path, str(problem))
        return [(path, self._known[path]) for path in paths if path in self._known]

    def _complain(self, path: Path, fault: str) -> None:
        """Say once that a file is passed over."""
        if path not in self._complained:
            self._complained.add(path)
            log.warning("'%s' is passed over: %s", path, fault)

    def _refused(self) -> set[str]:
        return {path.stem for path in self.refusals.glob("*.json")}


def amendments(standing: Mapping[str, Registered], scripted: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The commands that bring what stands up to a script; queries that joined otherwise stay."""
    changed = [name for name, query in standing.items() if query.scripted and scripted.get(name) != query.text]
    for name in changed:
        yield {"op": "revoke", "name": name}
    for name, text in scripted.items():
        if name not in standing or name in changed:
            yield {"op": "register", "name": name, "text": text, "start": "backfill", "scripted": True}


def _append(folder: Path, entry: Mapping[str, Any]) -> int:
    """Write the next numbered file; whoever else writes at the same moment gets another number."""
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        number = max((int(path.stem) for path in folder.glob("*.json") if _numbered(path)), default=0) + 1
        if create_whole(folder / f"{number:08d}.json", _text({"number": number, **entry})):
            return number


def _text(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry).encode()


def _numbered(path: Path) -> bool:
    return fnmatch(path.name, NUMBERED)


def _usable(identity: Any) -> bool:
    """Whether a request can be answered under its identity, which names a file."""
    return isinstance(identity, str) and identity.isalnum()


def _entry(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise StateProblem(
            f"the control log is damaged: '{path}' cannot be read ({problem})",
            fix="restore that file from a copy of the checkpoint, or start with an empty checkpoint",
        ) from None
