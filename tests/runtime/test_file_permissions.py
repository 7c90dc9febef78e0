"""Who may read what is written, and what those leave behind who are killed while they write."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import panewise as pw
from panewise.runtime.atomic_files import clear_drafts, create_atomic, draft_path, private_folder, write_atomic
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.local.files import write


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def rights(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize(("mask", "meant"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
@pytest.mark.parametrize("scheme", ["parquet", "csv", "json"])
def test_result_files_follow_the_umask_of_the_user(tmp_path: Path, scheme: str, mask: int, meant: int) -> None:
    with umask(mask):
        target = write(pa.table({"a": [1]}), f"{scheme}:out", "q", tmp_path)
    assert rights(target) == meant
    assert rights(target.parent) == 0o777 & ~mask
    assert list(target.parent.iterdir()) == [target]


def test_a_result_that_cannot_be_written_leaves_no_draft(tmp_path: Path) -> None:
    with pytest.raises(pw.PanewiseError, match="write it as parquet: or json:"):
        write(pa.table({"a": [[1]]}), "csv:out", "q", tmp_path)
    assert not list((tmp_path / "out").iterdir())


def test_a_new_checkpoint_is_private_and_one_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    pool = pw.Pool({"S": pw.StreamSchema(pa.schema([("t", pa.int64())]), time="t")})
    with umask(0o022):
        Checkpoint(tmp_path / "deep" / "new").create(pool, (0,), "files")
        (tmp_path / "shared").mkdir(mode=0o750)
        Checkpoint(tmp_path / "shared").create(pool, (0,), "files")
    assert rights(tmp_path / "deep" / "new") == 0o700
    assert rights(tmp_path / "deep") == 0o755
    assert rights(tmp_path / "shared") == 0o750


def test_drafts_of_killed_writers_are_cleared_and_nothing_else(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.control.prepare()
    part, request = tmp_path / "state" / "3" / "p1", checkpoint.control.requests / "00000001.json"
    part.parent.mkdir(parents=True)
    for path in (part, request, tmp_path / "plan.json"):
        write_atomic(path, b"whole")
        draft_path(path).write_bytes(b"ha")
    old = draft_path(request)
    old.touch()
    os.utime(old, (time.time() - 7200,) * 2)
    checkpoint.clear_drafts()
    left = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(str(path) for path in left if not path.name.startswith(".draft-")) == [
        "plan.json",
        "requests/00000001.json",
        "state/3/p1",
    ]
    # Somebody may just be writing a request.
    assert [path.parent.name for path in left if path.name.startswith(".draft-")] == ["requests"]


def test_staging_folders_of_spark_are_cleared(tmp_path: Path) -> None:
    (tmp_path / ".spark-staging-1" / "batch=3").mkdir(parents=True)
    (tmp_path / ".spark-staging-1" / "batch=3" / "part.parquet").touch()
    (tmp_path / "batch=2").mkdir()
    clear_drafts(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["batch=2"]
    clear_drafts(tmp_path / "nowhere")


def test_a_private_folder_is_no_file(tmp_path: Path) -> None:
    create_atomic(tmp_path / "file", b"")
    with pytest.raises(FileExistsError):
        private_folder(tmp_path / "file")
