"""Rows of files as record batches with the declared columns, read in pieces that tasks share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet

from panewise.core.decoding import decode_table
from panewise.core.errors import SourceProblem
from panewise.runtime.spark.files.file_stream import SourceFile

#: Rows that are read together.
ROWS_PER_READ = 1 << 18
#: The formats that workers read.
COLUMNAR_FORMATS = ("parquet",)
#: What writers put into the name of a folder whose partition has no value.
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class FileSplit:
    """A file, or some row groups of it, with about so many bytes."""

    path: str
    bytes: int
    row_groups: tuple[int, ...] | None = None


def split_files(files: Sequence[SourceFile], tasks: int) -> list[list[FileSplit]]:
    """Files for so many tasks, in their order, each with about as many bytes as the others.

    Row groups of one file may go to several tasks; only files with more bytes than a task gets are opened for that.
    """
    share = max(sum(file.size for file in files) / tasks, 1)
    splits = [split for file in files for split in (_row_groups(file) if file.size > share / 2 else [_whole(file)])]
    total = sum(split.bytes for split in splits) or 1
    found: list[list[FileSplit]] = [[] for _ in range(tasks)]
    before = 0
    for split in splits:
        # A split belongs to the task in whose share its middle lies.
        found[min(int((before + split.bytes / 2) * tasks / total), tasks - 1)].append(split)
        before += split.bytes
    return [mine for mine in found if mine]


def _whole(file: SourceFile) -> FileSplit:
    return FileSplit(file.path, file.size)


def _row_groups(file: SourceFile) -> list[FileSplit]:
    with _name_file(file.path), pa.parquet.ParquetFile(file.path) as opened:
        found = opened.metadata
        sizes = [found.row_group(number).total_byte_size for number in range(found.num_row_groups)]
    return [FileSplit(file.path, size, (number,)) for number, size in enumerate(sizes)]


def read_split(split: FileSplit, root: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a split, with some declared columns.

    A column that the file does not have is NULL, or has the value that a folder below `root` gives it.
    """
    with _name_file(split.path):
        values = partition_values(split.path, root)
        with pa.parquet.ParquetFile(split.path) as opened:
            stored = [name for name in schema.names if name in opened.schema_arrow.names]
            groups = split.row_groups
            batches = opened.iter_batches(ROWS_PER_READ, groups, stored, use_threads=False)
            for batch in batches:
                yield _declared_batch(batch, schema, values)


def _declared_batch(batch: pa.RecordBatch, schema: pa.Schema, values: dict[str, str | None]) -> pa.RecordBatch:
    table = decode_table(pa.Table.from_batches([batch]))
    columns = [
        table.column(field.name).combine_chunks().cast(field.type)
        if field.name in table.column_names
        else pa.repeat(pa.scalar(values.get(field.name), pa.string()), batch.num_rows).cast(field.type)
        for field in schema
    ]
    return pa.record_batch(columns, schema=schema)


def partition_values(path: str, root: str) -> dict[str, str | None]:
    """The values that the names of folders give to columns.

    >>> partition_values("/in/day=2024-01-01/city=K%C3%B6ln/a.parquet", "/in")
    {'day': '2024-01-01', 'city': 'Köln'}
    """
    names = Path(path).relative_to(root).parts[:-1] if Path(path).is_relative_to(root) else ()
    pairs = (name.partition("=") for name in names if "=" in name)
    return {unquote(column): None if text == _NULL_PARTITION else unquote(text) for column, _, text in pairs}


@contextmanager
def _name_file(path: str) -> Iterator[None]:
    """Name the file in every error of reading it, with the reason on one line."""
    try:
        yield
    except FileNotFoundError as problem:
        raise SourceProblem(f"the file {path} has vanished", fix="put it back and start again") from problem
    except PermissionError as problem:
        message = f"the file {path} cannot be read: permission is denied"
        raise SourceProblem(message, fix="check its permissions and start again") from problem
    except (pa.ArrowException, OSError, ValueError) as problem:
        reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")
        message = f"the file {path} cannot be read: {reason}"
        raise SourceProblem(message, fix="repair or remove it and start again") from problem
