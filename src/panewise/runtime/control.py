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
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from panewise.errors import StateProblem
from panewise.runtime.dead_letters import Letter
from panewise.runtime.whole import clear_drafts, create_whole, private_folder

log = logging.getLogger("panewise.control")

#: The names of files that are read.
NUMBERED = "[0-9]" * 8 + ".json"
#: What each command must say, all of it as text.
_SAID = {
    "register": ("name", "text", "start"),
    "revoke": ("name",),
    "suspend": ("name", "reason"),
    "resume": ("name",),
    "finish": (),
}


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
    """A query according to the log: its text, whether it started now, whether the script wrote it, its own sink."""

    text: str
    start: str
    scripted: bool
    into: str | None = None
    #: Why it does not stand for now.
    suspension: Letter | None = None
    #: Whether somebody has revoked it, who was not the script.
    revoked: bool = False

    @property
    def stands(self) -> bool:
        return self.suspension is None and not self.revoked

    def command(self, name: str) -> dict[str, Any]:
        """The command that lets it join again."""
        return {
            "op": "register",
            "name": name,
            "text": self.text,
            "start": self.start,
            "scripted": self.scripted,
            "into": self.into,
        }


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
        return {name: query for name, query in self.known().items() if query.stands}

    def known(self) -> dict[str, Registered]:
        """The same, with those that are suspended or revoked and can be resumed."""
        found: dict[str, Registered] = {}
        for _, commands in self.history():
            for command in commands:
                _follow(found, command)
        return found

    def suspensions(self) -> dict[str, float]:
        """When each query was last suspended: the number of that command."""
        return {
            command["name"]: placed(number, place)
            for number, commands in self.history()
            for place, command in enumerate(commands)
            if command["op"] == "suspend"
        }

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


def _follow(found: dict[str, Registered], command: Mapping[str, Any]) -> None:
    """What is known of queries after one command more."""
    name = command.get("name", "")
    before = found.get(name)
    match command["op"]:
        case "register" if before is None or not before.stands:
            found[name] = Registered(
                command["text"], command["start"], bool(command.get("scripted")), command.get("into")
            )
        case "revoke" if before is not None and command.get("scripted"):
            del found[name]
        case "revoke" if before is not None:
            found[name] = replace(before, suspension=None, revoked=True)
        case "suspend" if before is not None:
            letter = Letter(
                name, command["reason"], command.get("row") or {}, command.get("batch"), command.get("at", "")
            )
            found[name] = replace(before, suspension=letter)


def placed(number: int, place: int) -> float:
    """The number of a command that stands at some place among those that take effect together."""
    return number + place / 2**20


def amendments(known: Mapping[str, Registered], scripted: Mapping[str, str]) -> Iterator[tuple[str, list[Any]]]:
    """How the log is brought up to a script: a sentence for each query, and the commands it takes."""
    for name, query in known.items():
        text = scripted.get(name)
        gone = {"op": "revoke", "name": name, "scripted": True}
        if text is None and query.scripted:
            yield f"{name!r} leaves: the script has it no more; the state of {name!r} is dropped", [gone]
        elif text is not None and text != query.text:
            dropped = f"{name!r} begins anew; the state of {name!r} is dropped: the script has changed"
            yield dropped, [gone, Registered(text, "backfill", True).command(name)]
        elif query.revoked and text is not None:
            yield f"{name!r} stays revoked, although the script has it; 'panewise resume' brings it back", []
        elif query.suspension is not None:
            yield f"{name!r} stays suspended: {query.suspension}; 'panewise resume' tries it again", []
        elif text is None and query.stands:
            yield f"{name!r} stays: it was registered beside the script; 'panewise revoke' lets it go", []
    for name, text in scripted.items():
        if name not in known:
            yield f"{name!r} joins: the script has it", [Registered(text, "backfill", True).command(name)]


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
