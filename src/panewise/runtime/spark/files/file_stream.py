"""A stream that is a folder of files, and which of its files are there."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from panewise.core.schema import StreamSchema

#: A folder that changed within so many nanoseconds is listed again: a file that came in the same tick of the clock of
#: the file system would otherwise never be seen.
_RECENT = 2_000_000_000


@dataclass(frozen=True)
class FileStream:
    """Files of one format below a folder, or those that match a pattern, as a stream with the declared columns.

    A batch takes at most `max_files` new files, and as many as have at most `max_bytes` together, but at least one.
    """

    format: str
    path: str
    schema: StreamSchema
    max_files: int | None = None
    max_bytes: int | None = None

    @property
    def exists(self) -> bool:
        """Whether there is something at the path; a pattern may match later."""
        return glob.has_magic(self.path) or Path(self.path).exists()


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file, ordered by the time at which it came."""

    time: int
    path: str
    size: int


class FolderListing:
    """The files below a path. Folders that have not changed are not listed again."""

    def __init__(self, path: str) -> None:
        self.path = path
        #: For each folder the time of its last change, its files and its folders.
        self._known: dict[str, tuple[int, list[SourceFile], list[str]]] = {}

    def files(self) -> Iterator[SourceFile]:
        """All files, in no order. Names that start with a dot or an underscore belong to the writer of the folder."""
        for root in glob.glob(self.path) if glob.has_magic(self.path) else [self.path]:
            if os.path.isfile(root):
                yield _source_file(root, os.stat(root))
            else:
                yield from self._below(root)

    def _below(self, folder: str) -> Iterator[SourceFile]:
        try:
            changed = os.stat(folder).st_mtime_ns
            known = self._known.get(folder)
            if known is None or known[0] != changed:
                known = (changed, *_list_folder(folder))
            if time.time_ns() - changed > _RECENT:
                self._known[folder] = known
        except FileNotFoundError:
            self._known.pop(folder, None)
            return
        yield from known[1]
        for inner in known[2]:
            yield from self._below(inner)


def _list_folder(folder: str) -> tuple[list[SourceFile], list[str]]:
    files, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith((".", "_")):
                continue
            if entry.is_dir():
                folders.append(entry.path)
            else:
                files.append(_source_file(entry.path, entry.stat()))
    return files, folders


def _source_file(path: str, found: os.stat_result) -> SourceFile:
    return SourceFile(found.st_mtime_ns, path, found.st_size)
