"""Shards whose state lives in files of the checkpoint instead of Spark's state store.

Every shard has a folder with the parts of its state and one *head* for each batch. A batch reads the newest head
before its own, so that it can be done again at any time; what no head of the last batches needs is removed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from panewise.engine.parts import parts_of, read_note
from panewise.runtime.spark.course import Course
from panewise.runtime.spark.shard import REMEMBERED, Shard, itself, kept, ordered, remember, restored, work
from panewise.runtime.whole import settled, write_whole

#: So many batches back can be done again.
PATIENCE = 2


@dataclass(frozen=True, eq=False)
class StateFiles:
    """The function of a stage: the messages of one batch to some shards in, what these say out."""

    course: Course
    folder: str
    batch: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = ((row["shard"], row["place"], row["payload"]) for batch in batches for row in batch.to_pylist())
        for label, mine in groupby(rows, key=lambda row: row[0]):
            messages = ordered([(place, payload) for _, place, payload in mine])
            for said in self._worked(label, messages):
                yield pa.RecordBatch.from_pandas(said, preserve_index=False)

    def _worked(self, label: int, messages: Sequence[Any]) -> Iterator[pd.DataFrame]:
        folder = Folder(Path(self.folder) / str(label))
        shard = self._found(folder, label)
        yield from work(shard, self.course, label, messages)
        folder.keep(shard, self.batch)
        remember(self.course, label, shard)
        yield itself(shard, label)

    def _found(self, folder: Folder, label: int) -> Shard:
        head = folder.head(self.batch)
        known = REMEMBERED.pop((self.course.run, label), None)
        if head is None:
            return Shard(self.course.engine())
        if known is not None and known.version == read_note(head)["version"]:
            return known
        return restored(self.course, head, folder.read)


class Folder:
    """The files of one shard."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def heads(self) -> dict[int, Path]:
        """The heads of all batches, oldest first."""
        return {int(path.name.partition("-")[2]): path for path in sorted(self.path.glob("head-*"))}

    def head(self, batch: int) -> bytes | None:
        """The newest head before a batch; None where there is none."""
        before = [path for number, path in self.heads().items() if number < batch]
        return before[-1].read_bytes() if before else None

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def keep(self, shard: Shard, batch: int) -> None:
        """Write what has changed, then the head that refers to it."""
        self.path.mkdir(parents=True, exist_ok=True)
        shard.version = uuid.uuid4().hex
        change = kept(shard)
        for name, data in change.fresh.items():
            write_whole(self.path / name, data)
        write_whole(self.path / f"head-{batch:012d}", change.head)
        settled(self.path)
        self._forget(batch)

    def _forget(self, batch: int) -> None:
        """Remove old heads, and the parts that none of those left refers to."""
        heads = self.heads()
        old = [number for number in heads if number < batch - PATIENCE]
        if not old:
            return
        for number in old:
            heads.pop(number).unlink(missing_ok=True)
        needed = {name for path in heads.values() for name in parts_of(path.read_bytes())}
        for path in self.path.iterdir():
            if path.name[0] in "pc" and path.name not in needed:
                path.unlink(missing_ok=True)


def last_batch(folder: Path) -> int:
    """The newest batch that any shard has kept; -1 before the first."""
    shards = [Folder(path) for path in folder.glob("*")]
    return max((number for shard in shards for number in shard.heads()), default=-1)


def first_missing(folder: Path, labels: Sequence[int]) -> Path | None:
    """The folder of a shard that has no state although it should."""
    return next((path for label in labels if not Folder(path := folder / str(label)).heads()), None)
