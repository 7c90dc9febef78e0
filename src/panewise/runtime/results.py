"""Results that a pipeline has written as files, read without Spark, batch by batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from panewise.core.errors import BindProblem, SourceProblem, did_you_mean
from panewise.runtime.checkpoint import Checkpoint

if TYPE_CHECKING:
    import pyarrow as pa

_FORMATS = ("parquet", "csv", "json")


@dataclass(frozen=True)
class ResultFiles:
    """The results of one query: the folders that hold them, alone or together with other queries that have the same
    columns."""

    query: str
    format: str
    folder: Path
    shared: bool

    @classmethod
    def of(cls, checkpoint: Checkpoint, query: str) -> ResultFiles:
        """The files to which a pipeline writes the results of a query; refuses a query without files."""
        known = checkpoint.control.known_queries()
        if query not in known:
            raise BindProblem(f"there is no query {query!r}", fix=did_you_mean(query, known or ["panewise register"]))
        targets = _read_targets(checkpoint)
        shared = query not in targets
        address = targets.get("*" if shared else query)
        scheme, _, rest = (address or "").partition(":")
        if scheme == "memory":
            folder = checkpoint.folder / "results" if shared else checkpoint.results(query)
            return cls(query, "parquet", folder, shared)
        if scheme in _FORMATS and "://" not in rest:
            return cls(query, scheme, Path(rest), shared)
        where = f"to {address}" if address else "to a function of the pipeline"
        raise SourceProblem(f"the results of {query!r} go {where}", fix="look there, or register it with --into")

    @property
    def folders(self) -> list[Path]:
        """The folders of the results; queries that share a target have a folder for each set of columns."""
        return sorted(self.folder.glob("together-*")) if self.shared else [self.folder]

    def batches(self) -> list[Path]:
        """The folders of the batches that have results of this query or of those that share its folder, in order."""
        found = (path for folder in self.folders for path in folder.glob("batch*=*"))
        return sorted(found, key=lambda path: (int(path.name.partition("=")[2]), path))

    def read(self, batch: Path) -> pa.Table:
        """The results of the query in one batch."""
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        files = sorted(str(path) for path in batch.glob("[!._]*"))
        table = ds.dataset(files, format=self.format).to_table()
        return table.filter(pc.field("query") == self.query).drop_columns(["query"]) if self.shared else table


def _read_targets(checkpoint: Checkpoint) -> dict[str, str | None]:
    try:
        found: dict[str, str | None] = json.loads(checkpoint.targets.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise SourceProblem(
            f"'{checkpoint.targets}' does not name the target of the results", fix="start the pipeline once"
        ) from None
    return found
