"""Results that a pipeline has written as files, read without Spark, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Results:
    """The results of one query: the folders that hold them, alone or among those of others with the same columns."""

    query: str
    format: str
    home: Path
    shared: bool

    @property
    def folders(self) -> list[Path]:
        """Queries that go together have a folder for each set of columns."""
        return sorted(self.home.glob("together-*")) if self.shared else [self.home]

    def batches(self) -> list[Path]:
        """The folders of the batches that have results, of this query or of those it goes with, in their order."""
        found = (path for folder in self.folders for path in folder.glob("batch*=*"))
        return sorted(found, key=lambda path: (int(path.name.partition("=")[2]), path))

    def read(self, batch: Path) -> pa.Table:
        """The results of the query in one batch."""
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        files = sorted(str(path) for path in batch.glob("[!._]*"))
        table = ds.dataset(files, format=self.format).to_table()
        return table.filter(pc.field("query") == self.query).drop_columns(["query"]) if self.shared else table
