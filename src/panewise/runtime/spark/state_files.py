"""Shards whose state is kept in files of the checkpoint instead of Spark's state store.

Every shard has a folder with the parts of its state and *heads* that refer to them. A batch reads the newest head
before its own, so that it can be done again at any time. The name of a file has the batch and the epoch of its writer
and ends with a digest, so that no other content ever has the same name: a process that does a batch a second time, even
one that has lost the checkpoint and has not noticed it yet, never overwrites what others need. Files that no head of
the last batches needs are removed, only by a writer of the same or a later epoch.
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

from panewise.core.errors import StateProblem
from panewise.engine.state.parts import content_digest, part_names, read_note
from panewise.runtime.atomic_files import create_atomic, read_number, sync_folder, write_atomic
from panewise.runtime.lease import Fence
from panewise.runtime.spark.outbox import Outbox
from panewise.runtime.spark.run_context import RunContext
from panewise.runtime.spark.shard import (
    SHARD_CACHE,
    Shard,
    cache_shard,
    order_messages,
    process_messages,
    restore_shard,
    state_change,
    status_row,
    write_late_counts,
)

#: So many of the last batches can be done again.
REPLAYABLE_BATCHES = 2


@dataclass(frozen=True, eq=False)
class FileStateStage:
    """The function of a stage: the messages of one batch to some shards in, what they report of themselves out.

    Results are put into the outbox.
    """

    context: RunContext
    folder: str
    batch: int
    fence: Fence
    outbox: Outbox

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = ((row["shard"], row["place"], row["payload"]) for batch in batches for row in batch.to_pylist())
        for label, mine in groupby(rows, key=lambda row: row[0]):
            messages = order_messages([(place, payload) for _, place, payload in mine])
            yield pa.RecordBatch.from_pandas(self._process_shard(label, messages), preserve_index=False)

    def _process_shard(self, label: int, messages: Sequence[Any]) -> pd.DataFrame:
        folder = ShardFolder(Path(self.folder) / str(label))
        shard = self._load_shard(folder, label)
        rows = 0
        for number, results in enumerate(process_messages(shard, self.context, messages)):
            self.outbox.put(results.channel, f"{label}-{number}", results.table)
            rows += results.rows
        folder.save(shard, self.batch, self.fence)
        cache_shard(self.context, label, shard)
        write_late_counts(shard, self.context, label)
        return status_row(shard, label, rows)

    def _load_shard(self, folder: ShardFolder, label: int) -> Shard:
        head = folder.head_before(self.batch)
        known = SHARD_CACHE.pop((self.context.run, label), None)
        if head is None:
            return Shard(self.context.build_engine())
        if known is not None and known.version == read_note(head)["version"]:
            return known
        return restore_shard(self.context, head, folder.read)


@dataclass(frozen=True, order=True)
class ShardFile:
    """The name of a file of a shard: a head, or a part that heads refer to."""

    batch: int
    epoch: int
    name: str
    #: For a head: batches up to this one cannot be done again, since the state before them is removed.
    past: int = 0

    @classmethod
    def parse(cls, name: str) -> ShardFile | None:
        """The fields of a name; None if it is no name of a shard file."""
        match name.split("-"):
            case ["head", batch, epoch, past, _] if (batch + epoch + past).isdecimal():
                return cls(int(batch), int(epoch), name, int(past))
            case ["p" | "c", batch, epoch, _] if (batch + epoch).isdecimal():
                return cls(int(batch), int(epoch), name)
        return None

    @property
    def is_head(self) -> bool:
        return self.name.startswith("head-")


class ShardFolder:
    """The files of one shard."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def files(self) -> list[ShardFile]:
        """All files of the shard, those of the oldest batch first."""
        found = (ShardFile.parse(path.name) for path in self.path.glob("*-*"))
        return sorted(file for file in found if file is not None)

    def heads(self) -> list[ShardFile]:
        return [file for file in self.files() if file.is_head]

    def head_before(self, batch: int) -> bytes | None:
        """The newest head before a batch; None if there is none."""
        heads = self.heads()
        earlier = [head for head in heads if head.batch < batch]
        if not earlier and not any(head.past for head in heads):
            return None
        past = max(head.past for head in heads)
        found = self.read(earlier[-1].name) if earlier and batch > past else None
        if found is None:
            raise StateProblem(
                f"batch {batch} cannot be done again: the state before it is removed from '{self.path}'",
                fix="restore the checkpoint from a copy, or start with an empty one",
            )
        return found

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def save(self, shard: Shard, batch: int, fence: Fence) -> None:
        """Write the changed parts, then the head that refers to them."""
        self.path.mkdir(parents=True, exist_ok=True)
        shard.version = uuid.uuid4().hex
        stamp = f"{batch:012d}-{fence.epoch:08d}-"
        change = state_change(shard, stamp)
        for name, data in change.fresh.items():
            write_atomic(self.path / name, data)
        past = max((head.batch for head in self.heads() if head.batch < batch - REPLAYABLE_BATCHES), default=0)
        fence.check()
        write_atomic(self.path / f"head-{stamp}{past:012d}-{content_digest(change.head)}", change.head)
        sync_folder(self.path)
        self._remove_unneeded(ShardFile(batch, fence.epoch, "", past))

    def _remove_unneeded(self, mine: ShardFile) -> None:
        """Remove heads that no batch can need any more, and parts to which no remaining head refers.

        One head before the last batches stays, since batches without rows write none. Files of later epochs stay, and
        so do parts of the last batches, whose head may not be written yet.
        """
        files = self.files()
        old = [file for file in files if file.is_head and file.batch < mine.past and file.epoch <= mine.epoch]
        if not old:
            return
        heads = (self.read(file.name) for file in files if file.is_head and file not in old)
        needed = {name for head in heads if head is not None for name in part_names(head)}
        parts = [file for file in files if not file.is_head and file.name not in needed]
        waiting = mine.batch - REPLAYABLE_BATCHES
        for file in (*old, *(part for part in parts if part.batch < waiting and part.epoch <= mine.epoch)):
            (self.path / file.name).unlink(missing_ok=True)


class BatchCommands:
    """Which commands a batch applies: written before the batch begins, so that it applies the same when done again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def last_command(self, batch: int, newest: int) -> int:
        """The last command that a batch applies: the newest one, unless the batch was begun before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{batch:012d}"
        if create_atomic(path, str(newest).encode()):
            for number in [number for number in self.batches() if number < batch - REPLAYABLE_BATCHES]:
                (self.folder / f"{number:012d}").unlink(missing_ok=True)
        return read_number(path)

    def batches(self) -> list[int]:
        return [int(path.name) for path in self.folder.glob("[0-9]*") if path.name.isdecimal()]


def last_batch(folder: Path, agenda: BatchCommands) -> int:
    """The newest batch that was begun; -1 before the first."""
    kept = [head.batch for path in folder.glob("*") for head in ShardFolder(path).heads()]
    return max([*kept, *agenda.batches()], default=-1)


def first_missing_state(folder: Path, labels: Sequence[int]) -> Path | None:
    """The folder of a shard whose state is missing."""
    return next((path for label in labels if not ShardFolder(path := folder / str(label)).heads()), None)
