"""Files that are written whole or not at all, and folders that only their owner may read."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from panewise.core.errors import StateProblem

_DRAFT = ".draft-"


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file, or replace it. It is surely on disk once `sync_folder` was called for its folder."""
    with _write_draft(path, data) as draft:
        os.replace(draft, path)


def create_atomic(path: Path, data: bytes) -> bool:
    """Write a file that is never replaced; False when it exists already."""
    with _write_draft(path, data) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
    sync_folder(path.parent)
    return True


def read_number(path: Path) -> int:
    """The number that a file holds."""
    try:
        return int(path.read_bytes())
    except (OSError, ValueError):
        raise StateProblem(
            f"'{path}' is damaged", fix="restore it from a copy of the checkpoint, or start with an empty checkpoint"
        ) from None


def sync_folder(folder: Path) -> None:
    """Make sure that the names of all files of a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def private_folder(path: Path) -> None:
    """Make a folder that only its owner may read; a folder that exists already keeps its rights."""
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise


def draft_path(path: Path) -> Path:
    """A temporary name beside a file or folder, under which it can be made before it takes its place."""
    return path.parent / f"{_DRAFT}{uuid.uuid4().hex}-{path.name}"


def clear_drafts(folder: Path, patience: float = 0) -> None:
    """Remove the drafts of killed processes from a folder, except those younger than `patience`."""
    for draft in (*folder.glob(f"{_DRAFT}*"), *folder.glob(".spark-staging-*")):
        with suppress(OSError):
            if draft.stat().st_mtime <= time.time() - patience:
                shutil.rmtree(draft) if draft.is_dir() else draft.unlink()


@contextmanager
def _write_draft(path: Path, data: bytes) -> Iterator[Path]:
    """Write the data to disk under a temporary name beside the file."""
    draft = draft_path(path)
    try:
        with open(draft, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)
