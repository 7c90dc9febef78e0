"""Results of a batch on their way to the sinks: shards write them as Parquet files, and the driver hands these on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet


@dataclass(frozen=True)
class Outbox:
    """A folder in the checkpoint for one attempt at a batch, with a folder for each channel.

    `schemas` are the columns of the channels, in types that Spark has.
    """

    folder: str
    schemas: tuple[pa.Schema, ...]

    def put(self, channel: int, name: str, table: pa.Table) -> None:
        """Write results of a shard. A task that is done again writes the same file."""
        folder = self._channel_folder(channel)
        folder.mkdir(parents=True, exist_ok=True)
        pa.parquet.write_table(table.cast(self.schemas[channel]), folder / f"{name}.parquet")

    def files(self, channel: int) -> tuple[Path, ...]:
        return tuple(sorted(self._channel_folder(channel).glob("*.parquet")))

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _channel_folder(self, channel: int) -> Path:
        return Path(self.folder) / str(channel)
