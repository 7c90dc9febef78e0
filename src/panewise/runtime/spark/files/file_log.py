"""Which files each batch of a file stream reads.

That is written before Spark plans the batch, so that a batch that is done again reads exactly the same files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from panewise.core.errors import StateProblem
from panewise.engine.state.snapshot import fingerprint
from panewise.runtime.atomic_files import clear_drafts, create_atomic
from panewise.runtime.spark.files.file_stream import SourceFile

#: After so many entries the names of their files are put together in one file.
_ENTRIES_APART = 64


@dataclass(frozen=True)
class FileEntry:
    """The files that are read together, and the wall clock in microseconds when they were found."""

    at: int
    files: tuple[SourceFile, ...]


class FileLog:
    """Entries, numbered from 1. An entry is never changed; those that Spark has done with become part of a summary."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        clear_drafts(folder, patience=3600)
        #: The last entry of the newest summary.
        self.summarized = max((int(path.stem[4:]) for path in folder.glob("all-*.json")), default=0)
        numbers = [int(path.stem) for path in folder.glob("[0-9]*.json")]
        self.newest = max([*numbers, self.summarized])

    def paths(self) -> set[str]:
        """The paths of all files that some entry has."""
        found = set(self._read(self._summary_path)["paths"]) if self.summarized else set()
        for number in range(self.summarized + 1, self.newest + 1):
            found.update(file.path for file in self.entry(number).files)
        return found

    def entry(self, number: int) -> FileEntry:
        saved = self._read(self._entry_path(number))
        return FileEntry(saved["at"], tuple(SourceFile(*file) for file in saved["files"]))

    def append(self, at: int, files: Sequence[SourceFile]) -> bool:
        """Write the next entry; False if another process has written one."""
        entry = {"at": at, "files": [list(astuple(file)) for file in files]}
        fresh = create_atomic(self._entry_path(self.newest + 1), _seal_entry(entry))
        self.newest += 1
        return fresh

    def summarize(self, done: int) -> None:
        """Put entries together that no batch can need any more."""
        if done - self.summarized < _ENTRIES_APART:
            return
        paths = set(self._read(self._summary_path)["paths"]) if self.summarized else set()
        old = range(self.summarized + 1, done + 1)
        for number in old:
            paths.update(file.path for file in self.entry(number).files)
        before, self.summarized = self._summary_path, done
        create_atomic(self._summary_path, _seal_entry({"paths": sorted(paths)}))
        before.unlink(missing_ok=True)
        for number in old:
            self._entry_path(number).unlink(missing_ok=True)

    @property
    def _summary_path(self) -> Path:
        return self.folder / f"all-{self.summarized:012d}.json"

    def _entry_path(self, number: int) -> Path:
        return self.folder / f"{number:012d}.json"

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            saved: dict[str, Any] = json.loads(path.read_bytes())
            sealed = saved.pop("fingerprint")
        except (OSError, ValueError, KeyError, AttributeError):
            sealed, saved = None, {}
        if sealed != fingerprint(saved):
            raise StateProblem(
                f"the list of files in '{path}' is damaged or missing",
                fix="restore the checkpoint from a copy, or start with an empty one",
            )
        return saved


def _seal_entry(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry | {"fingerprint": fingerprint(entry)}).encode()
