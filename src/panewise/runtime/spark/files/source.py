"""A Python data source of Spark that reads files where they are sliced, so that Spark sees messages only."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from panewise.core.errors import SourceProblem, StateProblem
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.spark.files.file_log import FileLog
from panewise.runtime.spark.files.file_stream import FileStream, FolderListing, SourceFile
from panewise.runtime.spark.files.readers import FileSplit, read_split, split_files
from panewise.runtime.spark.transfer.columns import compute_columns
from panewise.runtime.spark.transfer.slice import MESSAGE_SCHEMA, SlicingStage

log = logging.getLogger("panewise.pipeline")

#: Entries of the log that stay after Spark has done with them.
_KEPT_ENTRIES = 8


class FilePartition(InputPartition):
    """What one task reads; rows with later times than `horizon` are rejected."""

    def __init__(self, splits: Sequence[FileSplit], horizon: int | None) -> None:
        super().__init__(None)
        self.splits, self.horizon = splits, horizon


@dataclass(frozen=True, eq=False)
class FileTransfer:
    """How the files of a stream become messages: the stage that slices them, and how many tasks share them."""

    files: FileStream
    stage: SlicingStage
    tasks: int

    def partitions(self, files: Sequence[SourceFile], horizon: int | None) -> list[FilePartition]:
        return [FilePartition(splits, horizon) for splits in split_files(files, self.tasks)]

    def read(self, partition: FilePartition) -> Iterator[pa.RecordBatch]:
        """The messages of one task."""
        transfer, declared = self.stage.transfer, self.files.schema.schema
        schema = pa.schema([declared.field(name) for name in transfer.needed])
        rows = (batch for split in partition.splits for batch in read_split(split, self.files.path, schema))
        return self.stage(compute_columns(rows, transfer, partition.horizon))


class MessageSource(DataSource):
    """The data source of one stream in one run; a subclass has its reading."""

    reading: FileTransfer
    checkpoint: str = ""
    skew: int | None = None

    @classmethod
    def name(cls) -> str:
        return f"panewise-{cls.reading.stage.transfer.stream}"

    def schema(self) -> str:
        return MESSAGE_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return FileStreamReader(self.reading, self.checkpoint, self.skew)

    def reader(self, schema: StructType) -> DataSourceReader:
        return FileBatchReader(self.reading)


class FileStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Finds new files, and records which of them a batch reads before Spark learns of them.

    An offset is the number of an entry of the log. The log is opened when it is needed: workers have this reader too.
    """

    def __init__(self, reading: FileTransfer, checkpoint: str, skew: int | None) -> None:
        self.reading, self.checkpoint, self.skew = reading, checkpoint, skew
        self._log: FileLog | None = None
        self._found: deque[SourceFile] = deque()
        self._frozen = False

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"entry": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        files = self.reading.files
        if files.max_files is not None:
            return ReadMaxFiles(files.max_files)
        return ReadAllAvailable() if files.max_bytes is None else ReadMaxBytes(files.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._find()
        self._frozen = True

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        entries, before = self._opened_log(), _entry_number(start)
        if entries.newest > before:
            # Written before a crash, or before Spark asked again.
            return {"entry": before + 1}
        if not self._found and not self._frozen:
            self._find()
        taken = self._take(limit)
        if taken and not entries.append(time.time_ns() // 1000, taken):
            # Another process has written an entry: what it has is not new any more.
            self._found.clear()
            self._seen = entries.paths()
        return {"entry": entries.newest}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[FilePartition]:
        numbers = range(_entry_number(start) + 1, _entry_number(end) + 1)
        entries = [self._opened_log().entry(number) for number in numbers]
        files = [file for entry in entries for file in entry.files if self._is_there(file)]
        at = max((entry.at for entry in entries), default=0)
        return self.reading.partitions(files, None if self.skew is None else at + self.skew)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePartition)
        return self.reading.read(partition)

    def commit(self, end: dict[str, int]) -> None:
        self._opened_log().summarize(end["entry"] - _KEPT_ENTRIES)

    def _opened_log(self) -> FileLog:
        if self._log is None:
            self._log = FileLog(Checkpoint(self.checkpoint).file_log(self.reading.stage.transfer.stream))
            self._seen = self._log.paths()
            self._listing = FolderListing(self.reading.files.path)
        return self._log

    def _find(self) -> None:
        """Find the files that no entry has."""
        self._opened_log()
        self._found.extend(sorted(file for file in self._listing.files() if file.path not in self._seen))

    def _take(self, limit: ReadLimit) -> list[SourceFile]:
        """The next files of a batch: those that came first."""
        taken: list[SourceFile] = []
        size = 0
        while self._found:
            size += self._found[0].size
            match limit:
                case ReadMaxFiles() if len(taken) >= limit.max_files:
                    break
                case ReadMaxBytes() if taken and size > limit.max_bytes:
                    break
            taken.append(self._found.popleft())
        self._seen.update(file.path for file in taken)
        return taken

    def _is_there(self, file: SourceFile) -> bool:
        """Whether a file can be read; one that never could may have been removed."""
        if Path(file.path).exists():
            return True
        if not Checkpoint(self.checkpoint).is_known_unreadable(file.path):
            raise SourceProblem(f"the file {file.path} has vanished", fix="put it back and start again")
        log.warning("the file %s could not be read and has been removed: going on without its rows", file.path)
        return False


def _entry_number(offset: Mapping[str, int]) -> int:
    if "entry" not in offset:
        raise StateProblem(
            "the checkpoint was written by another kind of source",
            fix="give the stream as before, or start with an empty checkpoint",
        )
    return offset["entry"]


class FileBatchReader(DataSourceReader):
    """All files that are there, once."""

    def __init__(self, reading: FileTransfer) -> None:
        self.reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        files = sorted(FolderListing(self.reading.files.path).files())
        return self.reading.partitions(files, None) or [FilePartition([], None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePartition)
        return self.reading.read(partition)


def file_messages(
    session: SparkSession, files: FileStream, stage: SlicingStage, checkpoint: str = "", skew: int | None = None
) -> DataFrame:
    """The messages of a file stream to the shards: a stream with `checkpoint`, all files at once without."""
    tasks = int(session.conf.get("spark.default.parallelism", None) or 0) or len(stage.labels)

    # A class of its own, since Spark hands classes to its workers whole, but options as texts only.
    class RunSource(MessageSource):
        reading = FileTransfer(files, stage, tasks)

    RunSource.checkpoint, RunSource.skew = checkpoint, skew
    session.dataSource.register(RunSource)
    reader = session.readStream if checkpoint else session.read
    return reader.format(RunSource.name()).load()
