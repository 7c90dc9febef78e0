"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, or replace it. That it is there is sure once its folder is `settled`."""
    with _draft(path, data) as draft:
        os.replace(draft, path)


def create_whole(path: Path, data: bytes) -> bool:
    """Write a file for good; False when it is there already."""
    with _draft(path, data) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
    settled(path.parent)
    return True


def settled(folder: Path) -> None:
    """Have the names of all files of a folder on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _draft(path: Path, data: bytes) -> Iterator[Path]:
    """The data on disk, beside their place."""
    draft = path.parent / f".{uuid.uuid4().hex}"
    try:
        with open(draft, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)
