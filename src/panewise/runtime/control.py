"""The control log of a pipeline: commands by which queries join and leave while it runs.

A folder of numbered JSON files. A file is written whole or not at all, never changed, and never numbered twice, so that
several processes may write and any number may read. *Requests* come from any process; the pipeline turns each into a
*command*, which its shards apply, or into a *refusal*.
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

from panewise.core.errors import StateProblem
from panewise.runtime.atomic_files import clear_drafts, create_atomic, private_folder
from panewise.runtime.dead_letters import DeadLetter

log = logging.getLogger("panewise.control")

#: The names of files that are read.
ENTRY_PATTERN = "[0-9]" * 8 + ".json"
#: The fields that each command must have, all of them text.
_REQUIRED_FIELDS = {
    "register": ("name", "text", "start"),
    "revoke": ("name",),
    "suspend": ("name", "reason"),
    "resume": ("name",),
    "finish": (),
}


def command_fault(command: Any) -> str | None:
    """What is wrong with a command or a request, from any writer."""
    if not isinstance(command, dict):
        return "it is no object with an op"
    if command.get("op") not in _REQUIRED_FIELDS:
        return f"op {command.get('op')!r} is unknown; use one of {', '.join(_REQUIRED_FIELDS)}"
    lacking = [name for name in _REQUIRED_FIELDS[command["op"]] if not isinstance(command.get(name), str)]
    return f"{command['op']} needs {' and '.join(lacking)}, as text" if lacking else None


@dataclass(frozen=True)
class QueryRecord:
    """A query according to the log: its text, whether it started from now, whether it comes from the script, its own
    sink."""

    text: str
    start: str
    scripted: bool
    into: str | None = None
    #: Why it is suspended now.
    suspension: DeadLetter | None = None
    #: Whether it was revoked by someone other than the script.
    revoked: bool = False

    @property
    def is_active(self) -> bool:
        return self.suspension is None and not self.revoked

    def register_command(self, name: str) -> dict[str, Any]:
        """The command by which the query joins again."""
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
        """Remove half-written files of killed processes; the newest stay, because another process may be writing
        them."""
        for folder in self._folders:
            clear_drafts(folder, patience=3600)

    @property
    def _folders(self) -> tuple[Path, ...]:
        return self.requests, self.commands, self.refusals

    def request(self, op: str, **arguments: Any) -> str:
        """Write a request and return its identity, by which its status can be found."""
        identity = uuid.uuid4().hex
        _append(self.requests, {"id": identity, "op": op, **arguments})
        return identity

    def append_commands(self, commands: Sequence[Mapping[str, Any]]) -> int:
        """Append commands that take effect together; returns the number of the file that holds them."""
        try:
            return _append(self.commands, {"commands": list(commands)})
        except OSError as problem:
            raise StateProblem(
                f"the control log in '{self.commands}' cannot be written: {problem.strerror}",
                fix="check space and permissions",
            ) from None

    def refuse(self, identity: str, reason: str) -> None:
        create_atomic(self.refusals / f"{identity}.json", _json_bytes({"id": identity, "reason": reason}))

    def pending_requests(self) -> list[dict[str, Any]]:
        """Requests that have been neither applied nor refused, in their order."""
        done = {c.get("id") for _, some in self.history() for c in some} | self._refused_ids()
        found = []
        for path, request in self._read(self.requests, lenient=True):
            if not isinstance(request, dict) or not _is_usable_id(request.get("id")):
                self._warn_once(path, "it has no id by which it could be answered")
            elif request["id"] not in done:
                found.append(request)
        return found

    def request_status(self, identity: str) -> str | None:
        """The status of a request: an empty text when it was applied, the reason when it was refused."""
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
            for fault in (fault for fault in map(command_fault, listed) if fault is not None):
                self._warn_once(path, fault)
            found.append((int(path.stem), [command for command in listed if command_fault(command) is None]))
        return found

    def active_queries(self) -> dict[str, QueryRecord]:
        """The queries that are active after all commands."""
        return {name: query for name, query in self.known_queries().items() if query.is_active}

    def known_queries(self) -> dict[str, QueryRecord]:
        """The active queries, and those that are suspended or revoked and can be resumed."""
        found: dict[str, QueryRecord] = {}
        for _, commands in self.history():
            for command in commands:
                _apply_command(found, command)
        return found

    def suspensions(self) -> dict[str, float]:
        """For each query, the number of the command that last suspended it."""
        return {
            command["name"]: command_number(number, place)
            for number, commands in self.history()
            for place, command in enumerate(commands)
            if command["op"] == "suspend"
        }

    @property
    def finished(self) -> bool:
        return any(command["op"] == "finish" for _, commands in self.history() for command in commands)

    def _read(self, folder: Path, lenient: bool = False) -> list[tuple[Path, Any]]:
        """All files of a folder in their order, without those whose name is not a number."""
        for path in folder.glob("*.json"):
            if not _is_numbered(path):
                self._warn_once(path, "its name is no number of eight digits")
        paths = sorted(filter(_is_numbered, folder.glob("*.json")))
        for path in [path for path in paths if path not in self._known]:
            try:
                self._known[path] = _read_entry(path)
            except StateProblem as problem:
                if not lenient:
                    raise
                self._warn_once(path, str(problem))
        return [(path, self._known[path]) for path in paths if path in self._known]

    def _warn_once(self, path: Path, fault: str) -> None:
        """Warn once that a file is skipped."""
        if path not in self._complained:
            self._complained.add(path)
            log.warning("'%s' is passed over: %s", path, fault)

    def _refused_ids(self) -> set[str]:
        return {path.stem for path in self.refusals.glob("*.json")}


def _apply_command(found: dict[str, QueryRecord], command: Mapping[str, Any]) -> None:
    """Apply one more command to what is known of queries."""
    name = command.get("name", "")
    before = found.get(name)
    match command["op"]:
        case "register" if before is None or not before.is_active:
            found[name] = QueryRecord(
                command["text"], command["start"], bool(command.get("scripted")), command.get("into")
            )
        case "revoke" if before is not None and command.get("scripted"):
            del found[name]
        case "revoke" if before is not None:
            found[name] = replace(before, suspension=None, revoked=True)
        case "suspend" if before is not None:
            letter = DeadLetter(
                name, command["reason"], command.get("row") or {}, command.get("batch"), command.get("at", "")
            )
            found[name] = replace(before, suspension=letter)


def command_number(number: int, place: int) -> float:
    """The number of a command, from its place among those that take effect together."""
    return number + place / 2**20


def script_changes(known: Mapping[str, QueryRecord], scripted: Mapping[str, str]) -> Iterator[tuple[str, list[Any]]]:
    """How the log is brought up to a script: a sentence for each changed query, and the commands that do it."""
    for name, query in known.items():
        text = scripted.get(name)
        gone = {"op": "revoke", "name": name, "scripted": True}
        if text is None and query.scripted:
            yield f"{name!r} leaves: the script has it no more; the state of {name!r} is dropped", [gone]
        elif text is not None and text != query.text:
            dropped = f"{name!r} begins anew; the state of {name!r} is dropped: the script has changed"
            yield dropped, [gone, QueryRecord(text, "backfill", True).register_command(name)]
        elif query.revoked and text is not None:
            yield f"{name!r} stays revoked, although the script has it; 'panewise resume' brings it back", []
        elif query.suspension is not None:
            yield f"{name!r} stays suspended: {query.suspension}; 'panewise resume' tries it again", []
        elif text is None and query.is_active:
            yield f"{name!r} stays: it was registered beside the script; 'panewise revoke' lets it go", []
    for name, text in scripted.items():
        if name not in known:
            yield f"{name!r} joins: the script has it", [QueryRecord(text, "backfill", True).register_command(name)]


def _append(folder: Path, entry: Mapping[str, Any]) -> int:
    """Write the next numbered file; another process that writes at the same moment gets another number."""
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        number = max((int(path.stem) for path in folder.glob("*.json") if _is_numbered(path)), default=0) + 1
        if create_atomic(folder / f"{number:08d}.json", _json_bytes({"number": number, **entry})):
            return number


def _json_bytes(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry).encode()


def _is_numbered(path: Path) -> bool:
    return fnmatch(path.name, ENTRY_PATTERN)


def _is_usable_id(identity: Any) -> bool:
    """Whether the identity of a request can be the name of a file, so that the request can be answered."""
    return isinstance(identity, str) and identity.isalnum()


def _read_entry(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise StateProblem(
            f"the control log is damaged: '{path}' cannot be read ({problem})",
            fix="restore that file from a copy of the checkpoint, or start with an empty checkpoint",
        ) from None
