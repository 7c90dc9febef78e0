"""A pane log as a folder: finished panes of one query in Parquet files, a folder for each batch, and what they mean.

`_panewise.json` is written once, before the first batch, and has all a reader needs: the query, its stream and the
boundary of its windows. `batch=7` holds the panes that batch 7 finished; a batch that is done again replaces it with
the same panes. `_batch-7.json` is its seal, written after it and removed before it: it names the files of the batch
with their lengths and checksums, so that a reader can check them before Arrow, which does not check its input, reads
any of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from panewise.core.errors import PanewiseError, Place, SourceProblem, StateProblem
from panewise.engine import Pool
from panewise.engine.pool import RegisteredQuery
from panewise.engine.state.pane_log import PaneLogFormat, logged_plan
from panewise.engine.state.snapshot import fingerprint
from panewise.runtime.atomic_files import (
    clear_drafts,
    create_atomic,
    draft_path,
    private_folder,
    sync_folder,
    write_atomic,
)

FORMAT = 2
HEADER = "_panewise.json"
#: Two changes of a folder within this many nanoseconds may look like one.
RECENT_NS = 2_000_000_000
_BATCH = re.compile(r"batch_*=(\d+)")


@dataclass(frozen=True)
class Header:
    """The first file of a log: a query over declared streams, and the writer."""

    name: str
    pool: dict[str, Any]
    writer: str
    format: int = FORMAT

    @classmethod
    def of(cls, registered: RegisteredQuery, pool: Pool, writer: str) -> Header:
        """The header for a query of a pool; refuses one whose panes cannot be logged."""
        logged_plan(registered)
        alone = Pool({name: pool.streams[name] for name in sorted(registered.streams)}, pool.boundary, host=pool.host)
        alone.add_query(RegisteredQuery(registered.name, registered.text, registered.plan))
        return cls(registered.name, alone.declaration(), writer)

    def build_pool(self) -> Pool:
        """A pool with the query."""
        return Pool.from_declaration(self.pool)

    def json_text(self) -> str:
        """The header as it is written, with a fingerprint of itself."""
        return json.dumps(asdict(self) | {"fingerprint": fingerprint(asdict(self))})


def rows_of(pool: Pool, name: str) -> PaneLogFormat:
    """The columns of the log of a query."""
    plan = logged_plan(pool.queries[name])
    return PaneLogFormat(plan, pool.streams[plan.source.stream].instants)


class PaneLog:
    """The folder of a log, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # ---- writing -----------------------------------------------------------------------------------------------

    def claim(self, header: Header) -> None:
        """Begin the log, or continue it; refuses a folder in which another writer has written."""
        try:
            private_folder(self.folder)
            if create_atomic(self.folder / HEADER, header.json_text().encode()):
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
        clear_drafts(self.folder)

    def write(self, panes: pa.Table, batch: int) -> None:
        """Write the panes of a batch, or replace them. Spark writes its batches itself."""
        place = self.folder / f"batch={batch}"
        draft = draft_path(place)
        try:
            draft.mkdir(parents=True)
            pyarrow.parquet.write_table(panes, draft / "panes.parquet")
            self.unseal(batch)
            shutil.rmtree(place, ignore_errors=True)
            os.rename(draft, place)
            self.seal(batch)
        except (OSError, pa.ArrowException) as problem:
            shutil.rmtree(draft, ignore_errors=True)
            raise SourceProblem(
                f"the pane log '{self.folder}' cannot be written: {problem}", fix="check space and permissions"
            ) from None

    def unseal(self, batch: int) -> None:
        """Remove the seal of a batch that is about to be replaced: until it is sealed again, readers ignore it."""
        self._seal_path(batch).unlink(missing_ok=True)

    def seal(self, batch: int) -> None:
        """Write the seal of a batch whose panes have been written, if it has any."""
        found = self.batches().get(batch)
        if found is not None:
            sums = {file.name: _length_and_checksum(file.read_bytes()) for file in found.files()}
            write_atomic(found.seal, json.dumps(sums).encode())
            sync_folder(self.folder)

    def _seal_path(self, batch: int) -> Path:
        return self.folder / f"_batch-{batch}.json"

    # ---- reading -----------------------------------------------------------------------------------------------

    def header(self) -> Header | None:
        """The header of the log; None where it has not been begun."""
        path = self.folder / HEADER
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            stamp = saved.pop("fingerprint", None)
            found = Header(**saved)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError) as problem:
            raise StateProblem(f"'{path}' is damaged: {problem}", fix="restore it from a copy") from None
        if found.format != FORMAT:
            raise StateProblem(
                f"'{path}' has format {found.format}, this version reads format {FORMAT}",
                fix="read it with the version that wrote it",
            )
        if stamp != fingerprint(asdict(found)):
            raise StateProblem(f"'{path}' is damaged: its fingerprint is wrong", fix="restore it from a copy")
        return found

    @property
    def last_change(self) -> object:
        """When a batch was last added or replaced, and which header the log has.

        None if this is unknown, or so recent that a further change could have the same time.
        """
        try:
            folder, header = self.folder.stat().st_mtime_ns, (self.folder / HEADER).stat()
        except OSError:
            return None
        newest = max(folder, header.st_mtime_ns)
        return (folder, header.st_mtime_ns, header.st_ino) if time.time_ns() - newest > RECENT_NS else None

    def batches(self) -> dict[int, LogBatch]:
        """The sealed batches, oldest first."""
        try:
            found = [(match, path) for path in self.folder.iterdir() if (match := _BATCH.fullmatch(path.name))]
        except (FileNotFoundError, NotADirectoryError):
            return {}
        newest = max((int(match[1]) for match, _ in found), default=-1)
        numbered = sorted((int(match[1]), path) for match, path in found)
        return {number: LogBatch(path, self._seal_path(number), number == newest) for number, path in numbered}


@dataclass(frozen=True)
class LogBatch:
    """The folder of one batch and its seal; the newest one may be in the course of being written or replaced."""

    folder: Path
    seal: Path
    newest: bool

    @property
    def version(self) -> object:
        """Distinguishes a batch from another one that replaces it; None where there is no batch."""
        try:
            found = self.seal.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def read(self, schema: pa.Schema) -> pa.Table | None:
        """All its rows; None where it is not sealed yet."""
        try:
            sums = json.loads(self.seal.read_bytes())
            tables = [_parse_parquet(self._read_verified(name, sums[name]), schema) for name in sums]
            if [file.name for file in self.files()] != list(sums):
                raise ValueError("there are other files than were written")
        except FileNotFoundError as problem:
            if self.newest and self.version is None:
                return None
            raise self._unreadable(f"'{problem.filename}' is missing") from None
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as problem:
            raise self._unreadable(str(problem).splitlines()[0]) from None
        return pa.concat_tables([schema.empty_table(), *tables])

    def _read_verified(self, name: str, written: object) -> bytes:
        data = (self.folder / name).read_bytes()
        if _length_and_checksum(data) != written:
            raise ValueError(f"the length or the checksum of '{name}' is wrong")
        return data

    def _unreadable(self, reason: str) -> SourceProblem:
        return SourceProblem(
            f"the panes in '{self.folder}' cannot be read: {reason}", fix="restore the files from a copy"
        )


def _length_and_checksum(data: bytes) -> list[int]:
    return [len(data), zlib.crc32(data)]


def _parse_parquet(data: bytes, schema: pa.Schema) -> pa.Table:
    # Spark writes timestamps in 96 bits, which Arrow would read as nanoseconds.
    with pyarrow.parquet.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us") as opened:
        return opened.read().select(schema.names).cast(schema)


def log_of(address: str, base: Path) -> PaneLog:
    """The log at an address; refuses what no reader can follow."""
    scheme, _, rest = address.partition(":")
    if scheme != "parquet" or not rest or ("://" in rest and not rest.startswith("file://")):
        raise SourceProblem(
            f"{address!r} is no place for a pane log", fix="use parquet:path, a folder of a mounted file system"
        )
    return PaneLog((base / rest.removeprefix("file://")).absolute())


def refuse_log(registered: RegisteredQuery, address: str, place: Place | None) -> None:
    """Refuse what PANES INTO cannot do, at its place in the script."""
    try:
        logged_plan(registered)
        log_of(address, Path())
    except PanewiseError as problem:
        raise problem.at(place) from None
