"""Files as sources and targets of a script: `parquet:`, `csv:` and `json:` addresses."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from panewise.core.decoding import decode_table
from panewise.core.errors import SourceProblem
from panewise.core.schema import StreamSchema
from panewise.runtime.atomic_files import clear_drafts, draft_path
from panewise.runtime.json_text import json_bytes, json_rows
from panewise.runtime.local.texts import csv_reason, read_times

_SUFFIX = {"parquet": ".parquet", "csv": ".csv", "json": ".json"}
_SPARK_SCHEMES = ("kafka:", "delta:", "rate:")
_ENDINGS = {"parquet": (".parquet",), "csv": (".csv", ".csv.gz"), "json": (".json", ".jsonl", ".json.gz", ".jsonl.gz")}


def read(address: str, declared: StreamSchema, base: Path) -> pa.Table:
    """All rows of a file, or of a folder's files in name order, with the declared columns and types."""
    scheme, path = _split_address(address, base)
    files = _files(scheme, path, address)
    try:
        tables = [_READERS[scheme](file, declared.schema) for file in files]
    except SourceProblem as problem:
        raise SourceProblem(f"{address!r} cannot be read: {problem.message}", fix=problem.fix) from None
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise SourceProblem(
            f"{address!r} cannot be read: {_reason(problem)}", fix="check the file and its columns"
        ) from None
    return pa.concat_tables(tables) if tables else declared.schema.empty_table()


def read_undeclared(path: Path) -> pa.Table:
    """All rows of a file that no script declares, with its own columns and types or inferred ones."""
    scheme = next((kind for kind, endings in _ENDINGS.items() if path.name.lower().endswith(endings)), None)
    if scheme is None:
        raise SourceProblem(f"'{path}' is no kind of file Panewise reads", fix="name a .parquet, .csv or .json file")
    if not path.is_file():
        raise SourceProblem(f"'{path}' is no file", fix="check the path")
    try:
        return _replace_null_types(_INFERRING_READERS[scheme](path))
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise SourceProblem(f"'{path}' cannot be read: {_reason(problem)}", fix="check the file") from None


def infer_schema(address: str, base: Path) -> pa.Schema:
    """The columns of the first file at an address, in name order, with types that scripts can declare."""
    if "://" in address or address.startswith(_SPARK_SCHEMES):
        fix = "declare them in parentheses after the stream's name"
        raise SourceProblem(f"the columns of {address!r} are not known before it is read", fix=fix)
    scheme, path = _split_address(address, base)
    file = _files(scheme, path, address)[0]
    try:
        schema = pa.parquet.read_schema(file) if scheme == "parquet" else _INFERRING_READERS[scheme](file).schema
    except (pa.ArrowException, OSError, ValueError) as problem:
        fix = "check the file, or declare the columns"
        raise SourceProblem(f"{address!r} cannot be read: {_reason(problem)}", fix=fix) from None
    return pa.schema([(field.name, _declarable_type(field.type, scheme)) for field in schema])


def _declarable_type(kind: pa.DataType, scheme: str) -> pa.DataType:
    """The type that a script would declare for such values; text times without a zone are UTC, and a column without
    values is text."""
    if pa.types.is_dictionary(kind):
        return _declarable_type(kind.value_type, scheme)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz or scheme != "parquet" else None)
    return _DECLARED_TYPES.get(kind, kind)


_DECLARED_TYPES = {
    pa.null(): pa.string(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def write(table: pa.Table, address: str, name: str, base: Path) -> Path:
    """Write one file into the folder of an address, atomically."""
    scheme, folder = _split_address(address, base)
    target = folder / f"{name}{_SUFFIX[scheme]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        clear_drafts(folder, patience=86_400)
        draft = draft_path(target)
        try:
            _WRITERS[scheme](table, str(draft))
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)
    except pa.ArrowInvalid as problem:
        raise SourceProblem(
            f"{address!r} cannot hold this result: {_reason(problem)}", fix="write it as parquet: or json:"
        ) from None
    except (pa.ArrowException, OSError) as problem:
        raise SourceProblem(
            f"{address!r} cannot be written: {_reason(problem)}", fix="check space and permissions"
        ) from None
    return target


def _split_address(address: str, base: Path) -> tuple[str, Path]:
    scheme, colon, path = address.partition(":")
    if address.startswith(_SPARK_SCHEMES):
        raise SourceProblem(f"{address!r} is read and written by Spark only", fix="run the script with --spark")
    if not colon or scheme not in _SUFFIX or not path:
        raise SourceProblem(f"{address!r} is no address Panewise knows", fix="use parquet:path, csv:path or json:path")
    return scheme, base / path


def _files(scheme: str, path: Path, address: str) -> list[Path]:
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.name.endswith(_ENDINGS[scheme]) and _is_public(file))
        if not found:
            raise SourceProblem(f"{address!r} holds no {_SUFFIX[scheme]} files", fix="check the path and the format")
        return found
    if not path.exists():
        raise SourceProblem(f"{address!r} does not exist", fix="check the path, which is relative to the script")
    return [path]


def _is_public(file: Path) -> bool:
    """Whether a file is data: names that start with a dot or an underscore belong to the writer of the folder."""
    return not file.name.startswith((".", "_"))


def _cast_to_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise ValueError(f"it has no column {missing[0]!r}")
    return decode_table(table.select(schema.names)).cast(schema)


def _read_parquet(file: Path, schema: pa.Schema) -> pa.Table:
    return _cast_to_schema(pa.parquet.read_table(file), schema)


def _read_csv(file: Path, schema: pa.Schema) -> pa.Table:
    try:
        return _cast_to_schema(read_times(partial(_parse_csv, file), schema), schema)
    except pa.ArrowInvalid as problem:
        raise ValueError(csv_reason(problem, file)) from None


def _replace_null_types(table: pa.Table) -> pa.Table:
    """Give columns without any value a number type, so that the other columns can be used."""
    fields = [f.with_type(pa.int64()) if pa.types.is_null(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def _parse_csv(file: Path, expected: pa.Schema | None = None) -> pa.Table:
    """Parse CSV: only an empty field is NULL; columns without a declared type get an inferred one."""
    options = pa.csv.ConvertOptions(
        column_types=expected, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return pa.csv.read_csv(file, convert_options=options)


def _read_json(file: Path, schema: pa.Schema) -> pa.Table:
    def reader(expected: pa.Schema) -> pa.Table:
        options = pa.json.ParseOptions(explicit_schema=expected, unexpected_field_behavior="ignore")
        return pa.json.read_json(file, parse_options=options)

    present = set(pa.json.read_json(file).column_names)
    if missing := [name for name in schema.names if name not in present]:
        # Arrow would fill such a column with NULLs, which looks like data.
        raise ValueError(f"no row of it has a {missing[0]!r}")
    return _cast_to_schema(read_times(reader, schema), schema)


def _write_json(table: pa.Table, path: str) -> None:
    with open(path, "wb") as lines:
        for row in json_rows(table):
            lines.write(json_bytes(row) + b"\n")


_READERS: dict[str, Callable[[Path, pa.Schema], pa.Table]] = {
    "parquet": _read_parquet,
    "csv": _read_csv,
    "json": _read_json,
}
_INFERRING_READERS: dict[str, Callable[[Path], pa.Table]] = {
    # A single file has no partitions, whatever its folder is called.
    "parquet": lambda file: pa.parquet.read_table(file, partitioning=None),
    "csv": _parse_csv,
    "json": pa.json.read_json,
}
_WRITERS: dict[str, Callable[[pa.Table, str], None]] = {
    "parquet": pa.parquet.write_table,
    "csv": pa.csv.write_csv,
    "json": _write_json,
}


def _reason(problem: Exception) -> str:
    """The reason on one line; for a full disk or a missing permission, the text of the operating system."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror.lower()
    return str(problem).strip().splitlines()[0].rstrip(".") if str(problem).strip() else type(problem).__name__
