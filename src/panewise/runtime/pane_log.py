"""A pane log as a folder: finished panes of one query in Parquet files, a folder for each batch, and what they mean.

`_panewise.json` is written once, before the first batch, and says all a reader needs: the query, its stream and the
boundary of its windows. `batch=7` holds the panes that batch 7 finished; it is there whole or not at all, and a batch
that is done again replaces it with the same panes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from panewise.engine import Pool
from panewise.engine.pane_log import PaneRows, logged_plan
from panewise.engine.pool import Standing
from panewise.errors import PanewiseError, Place, SourceProblem, StateProblem
from panewise.runtime.whole import create_whole

FORMAT = 1
HEADER = "_panewise.json"
#: Nanoseconds within which two changes of a folder may look like one.
RECENT = 2_000_000_000
_BATCH = re.compile(r"batch_*=(\d+)")


@dataclass(frozen=True)
class Header:
    """What a log holds: a query over declared streams, and who writes it."""

    name: str
    pool: dict[str, Any]
    writer: str
    format: int = FORMAT

    @classmethod
    def of(cls, standing: Standing, pool: Pool, writer: str) -> Header:
        """The header for a query of a pool; refuses one whose panes cannot be logged."""
        logged_plan(standing)
        alone = Pool({name: pool.streams[name] for name in sorted(standing.streams)}, pool.boundary, host=pool.host)
        alone.adopt(Standing(standing.name, standing.text, standing.plan))
        return cls(standing.name, alone.declared(), writer)

    def read(self) -> Pool:
        """A pool with the query."""
        return Pool.from_declared(self.pool)


def rows_of(pool: Pool, name: str) -> PaneRows:
    """The columns of the log of a query."""
    plan = logged_plan(pool.queries[name])
    return PaneRows(plan, pool.streams[plan.source.stream].instants)


class PaneLog:
    """The folder of a log, which need not be there yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # ---- writing -----------------------------------------------------------------------------------------------

    def claim(self, header: Header) -> None:
        """Begin the log, or go on with it; refuses a folder in which anybody else has written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if create_whole(self.folder / HEADER, json.dumps(asdict(header)).encode()):
                return
        except OSError as problem:
            raise SourceProblem(
                f"the pane log '{self.folder}' cannot be written: {problem.strerror}", fix="check space and permissions"
            ) from None
        found = self.header()
        if found is not None and (found.name, found.pool) != (header.name, header.pool):
            raise StateProblem(
                f"'{self.folder}' holds the panes of another query, {found.name!r}",
                fix="log the panes into a folder of their own",
            )
        if found is not None and found.writer != header.writer:
            raise StateProblem(
                f"'{self.folder}' holds the panes of another pipeline", fix="log the panes into an empty folder"
            )

    def write(self, panes: pa.Table, batch: int) -> None:
        """Write the panes of a batch, or replace them. Spark does the same by itself."""
        draft, place = self.folder / f".{uuid.uuid4().hex}", self.folder / f"batch={batch}"
        try:
            draft.mkdir(parents=True)
            pyarrow.parquet.write_table(panes, draft / "panes.parquet")
            shutil.rmtree(place, ignore_errors=True)
            os.rename(draft, place)
        except (OSError, pa.ArrowException) as problem:
            shutil.rmtree(draft, ignore_errors=True)
            raise SourceProblem(
                f"the pane log '{self.folder}' cannot be written: {problem}", fix="check space and permissions"
            ) from None

    # ---- reading -----------------------------------------------------------------------------------------------

    def header(self) -> Header | None:
        """What the log holds; None where it has not been begun."""
        path = self.folder / HEADER
        try:
            found = Header(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as problem:
            raise StateProblem(f"'{path}' is damaged: {problem}", fix="restore it from a copy") from None
        if found.format != FORMAT:
            raise StateProblem(
                f"'{path}' has format {found.format}, this version reads format {FORMAT}",
                fix="read it with the version that wrote it",
            )
        return found

    @property
    def changed(self) -> int | None:
        """When a batch last came or was replaced; None where nobody knows, or so recently that more may come unseen."""
        try:
            found = self.folder.stat().st_mtime_ns
        except OSError:
            return None
        return found if time.time_ns() - found > RECENT else None

    def batches(self) -> dict[int, Batch]:
        """The batches that are there, oldest first."""
        try:
            found = [(match, path) for path in self.folder.iterdir() if (match := _BATCH.fullmatch(path.name))]
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return {number: Batch(path) for number, path in sorted((int(match[1]), path) for match, path in found)}


@dataclass(frozen=True)
class Batch:
    """The folder of one batch, which may just be replaced."""

    folder: Path

    @property
    def version(self) -> object:
        """Tells a batch from another one that replaces it; None where it is not there."""
        try:
            found = self.folder.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def read(self, schema: pa.Schema) -> pa.Table | None:
        """All its rows; None where it is not there."""
        try:
            files = sorted(self.folder.glob("*.parquet"))
            tables = [schema.empty_table(), *(_conformed(file, schema) for file in files)]
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowException, KeyError) as problem:
            reason = str(problem).splitlines()[0]
            raise SourceProblem(
                f"the panes in '{self.folder}' cannot be read: {reason}", fix="restore the files from a copy"
            ) from None
        return pa.concat_tables(tables) if files else None


def _conformed(file: Path, schema: pa.Schema) -> pa.Table:
    # Spark writes timestamps in 96 bits, which Arrow would read as nanoseconds.
    with pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        return opened.read().select(schema.names).cast(schema)


def log_of(address: str, base: Path) -> PaneLog:
    """The log at an address; refuses what no reader can follow."""
    scheme, _, rest = address.partition(":")
    if scheme != "parquet" or not rest or ("://" in rest and not rest.startswith("file://")):
        raise SourceProblem(
            f"{address!r} is no place for a pane log", fix="use parquet:path, a folder of a mounted file system"
        )
    return PaneLog((base / rest.removeprefix("file://")).absolute())


def refuse_log(standing: Standing, address: str, place: Place | None) -> None:
    """Refuse what PANES INTO cannot do, at its place in the script."""
    try:
        logged_plan(standing)
        log_of(address, Path())
    except PanewiseError as problem:
        raise problem.at(place) from None
