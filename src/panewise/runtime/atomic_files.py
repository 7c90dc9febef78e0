"""Files that are written whole or not at all, and folders for what concerns their owner only."""

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
    """Write a file, or replace it. That it is there is sure once its folder is `sync_folder`."""
    with _write_draft(path, data) as draft:
        os.replace(draft, path)


def create_atomic(path: Path, data: bytes) -> bool:
    """Write a file for good; False when it is there already."""
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
    """Have the names of all files of a folder on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def private_folder(path: Path) -> None:
    """Make a folder that its owner alone sees into; one that is there already keeps the rights it was given."""
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise


def draft_path(path: Path) -> Path:
    """A name beside a file or folder, under which it can be made before it takes its place."""
    return path.parent / f"{_DRAFT}{uuid.uuid4().hex}-{path.name}"


def clear_drafts(folder: Path, patience: float = 0) -> None:
    """Remove what those left in a folder who were killed while they wrote; `patience` spares what is younger."""
    for draft in (*folder.glob(f"{_DRAFT}*"), *folder.glob(".spark-staging-*")):
        with suppress(OSError):
            if draft.stat().st_mtime <= time.time() - patience:
                shutil.rmtree(draft) if draft.is_dir() else draft.unlink()


@contextmanager
def _write_draft(path: Path, data: bytes) -> Iterator[Path]:
    """The data on disk, beside their place."""
    draft = draft_path(path)
    try:
        with open(draft, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)
