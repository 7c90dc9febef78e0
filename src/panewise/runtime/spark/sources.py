"""Addresses of streams, as DataFrames: `parquet:`, `csv:`, `json:`, `delta:`, `kafka:` and `rate:`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from panewise.core.errors import SourceProblem
from panewise.core.schema import StreamSchema
from panewise.runtime.spark.files.file_stream import FileStream
from panewise.runtime.spark.files.readers import COLUMNAR_FORMATS
from panewise.runtime.spark.types import quote_name, spark_schema, spark_type

#: Malformed values become NULL: a row without a usable time is rejected and counted, not lost silently.
_LENIENT = {"mode": "PERMISSIVE", "timeZone": "UTC"}
_FILES: dict[str, dict[str, str]] = {"parquet": {}, "csv": _LENIENT | {"header": "true"}, "json": _LENIENT}


def source(
    session: SparkSession, address: str, schema: StreamSchema, base: Path, streaming: bool, per_batch: int | None = None
) -> DataFrame:
    """The rows at an address, with the declared columns. `per_batch` limits files or rows taken into one batch."""
    scheme, rest = split_address(address)
    try:
        match scheme:
            case "parquet" | "csv" | "json":
                return _files(session, scheme, resolve_path(rest, base), schema, streaming, per_batch)
            case "delta":
                reader = session.readStream if streaming else session.read
                limits = {"maxFilesPerTrigger": str(per_batch)} if per_batch and streaming else {}
                return (
                    reader.format("delta")
                    .options(**limits)
                    .load(resolve_path(rest, base))
                    .select(*_declared_columns(schema))
                )
            case "kafka":
                return _kafka(session, rest, schema, streaming, per_batch)
            case "rate":
                return _rate(session, rest, schema, streaming)
    except PySparkException as problem:
        raise SourceProblem(f"{address!r} cannot be read: {first_line(problem)}", fix=_fix(scheme)) from None
    raise SourceProblem(f"{address!r} is no address Panewise knows", fix=_KNOWN_ADDRESSES)


def stream_source(
    session: SparkSession, address: str, schema: StreamSchema, base: Path, limit: int | str | None = None
) -> DataFrame | FileStream:
    """The stream at an address: files that workers read themselves, where they can, else a streaming DataFrame.

    `limit` is what a batch takes at most: so many files or rows, or a size such as `"512 MB"`.
    """
    most, size = (limit, None) if not isinstance(limit, str) else (None, byte_count(limit))
    if most is not None and most < 1:
        raise SourceProblem(f"{most} is no number of files a batch", fix="use 1 or more")
    files = _file_stream(address, schema, base)
    if files is not None:
        return replace(files, max_files=most, max_bytes=size)
    if size is not None:
        raise SourceProblem(f"{address!r} cannot be limited by bytes", fix="give a number of files or rows")
    return source(session, address, schema, base, streaming=True, per_batch=most)


def bounded_source(session: SparkSession, address: str, schema: StreamSchema, base: Path) -> DataFrame | FileStream:
    """All rows at an address: files that workers read themselves, where they can, else a DataFrame."""
    return _file_stream(address, schema, base) or source(session, address, schema, base, streaming=False)


def undeclared_source(session: SparkSession, address: str, base: Path) -> DataFrame:
    """The rows at an address that nobody has declared, with the columns that their files have."""
    scheme, rest = split_address(address)
    if scheme not in _FILES:
        raise SourceProblem(f"the columns of {address!r} are not known", fix="pass a pw.Pool with a declared stream")
    try:
        return session.read.format(scheme).options(**_FILES[scheme]).load(resolve_path(rest, base))
    except PySparkException as problem:
        raise SourceProblem(f"{address!r} cannot be read: {first_line(problem)}", fix=_fix(scheme)) from None


def _file_stream(address: str, schema: StreamSchema, base: Path) -> FileStream | None:
    """The files at an address, if workers can read them."""
    scheme, rest = split_address(address)
    if scheme not in COLUMNAR_FORMATS or "://" in rest:
        return None
    files = FileStream(scheme, resolve_path(rest, base), schema)
    if not files.exists:
        raise SourceProblem(f"{address!r} cannot be read: it does not exist", fix="check the path")
    return files


_SIZES = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


def byte_count(text: str) -> int:
    """The bytes that a text such as `512 MB` means."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]+)\s*", text.lower())
    if found is None or found[2] not in _SIZES or not int(found[1]):
        raise SourceProblem(f"{text!r} is no size", fix="write it as 512 MB or 2 GB")
    return int(found[1]) * _SIZES[found[2]]


_KNOWN_ADDRESSES = "use parquet:path, csv:path, json:path, delta:path, kafka:server/topic or rate:rows-per-second"


def split_address(address: str) -> tuple[str, str]:
    scheme, colon, rest = address.partition(":")
    if not colon:
        raise SourceProblem(f"{address!r} is no address Panewise knows", fix=_KNOWN_ADDRESSES)
    return scheme, rest


def resolve_path(rest: str, base: Path) -> str:
    """A path relative to the script, unless it is absolute or has a scheme."""
    return rest if "://" in rest else str((base / rest).absolute())


def topic_of(rest: str) -> tuple[str, str]:
    """The servers and the topic of a `kafka:` address."""
    servers, slash, topic = rest.lstrip("/").rpartition("/")
    if not slash or not topic:
        raise SourceProblem(f"'kafka:{rest}' names no topic", fix="write kafka:server:9092/topic")
    return servers, topic


def first_line(problem: Exception) -> str:
    """The reason on one line."""
    text = str(problem).strip() or type(problem).__name__
    return text.splitlines()[0].rstrip(".")


def _fix(scheme: str) -> str:
    packaged = {"kafka": "spark-sql-kafka-0-10", "delta": "delta-spark"}
    if scheme in packaged:
        return f"start Spark with the package {packaged[scheme]}, and check the address"
    return "check the path and the columns"


def _declared_columns(schema: StreamSchema) -> list[str]:
    return [quote_name(name) for name in schema.schema.names]


def _files(
    session: SparkSession, scheme: str, path: str, schema: StreamSchema, streaming: bool, per_batch: int | None
) -> DataFrame:
    reader = session.readStream if streaming else session.read
    options = dict(_FILES[scheme])
    if streaming:
        # A stream reads folders; a new file with the name of one that was read already is not read.
        options |= {"maxFilesPerTrigger": str(per_batch)} if per_batch else {}
    if streaming and Path(path).is_file():
        options["pathGlobFilter"] = Path(path).name
        path = str(Path(path).parent)
    return reader.format(scheme).schema(spark_schema(schema.schema)).options(**options).load(path)


def _kafka(session: SparkSession, rest: str, schema: StreamSchema, streaming: bool, per_batch: int | None) -> DataFrame:
    """The values of a topic are JSON objects with the declared columns."""
    servers, topic = topic_of(rest)
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    if streaming and per_batch:
        options["maxOffsetsPerTrigger"] = str(per_batch)
    frame = (session.readStream if streaming else session.read).format("kafka").options(**options).load()
    parsed = F.from_json(F.col("value").cast("string"), spark_schema(schema.schema), _LENIENT)
    return frame.select(parsed.alias("row")).select("row.*")


def _rate(session: SparkSession, rest: str, schema: StreamSchema, streaming: bool) -> DataFrame:
    """So many rows a second, each with the wall clock and a counter."""
    if not streaming:
        raise SourceProblem(f"'rate:{rest}' never ends", fix="run it as a stream")
    if not rest.isdecimal() or not int(rest):
        raise SourceProblem(f"'rate:{rest}' is no number of rows a second", fix="write rate:1000")
    frame = session.readStream.format("rate").option("rowsPerSecond", rest).load()
    given = {True: "timestamp", False: "value"}
    return frame.select(
        *(F.col(given[f.name == schema.time]).cast(spark_type(f.type)).alias(f.name) for f in schema.schema)
    )


def missing_files(checkpoint: Path) -> Iterator[str]:
    """The local files that the running batch should have read and that are not there.

    Spark lists the files of a batch in the checkpoint of its query, and skips those it does not find.
    """
    for source in (checkpoint / "sources").glob("[0-9]*"):
        logs = [path for path in source.iterdir() if path.name.removesuffix(".compact").isdigit()]
        newest = max(logs, key=lambda path: int(path.name.removesuffix(".compact")), default=None)
        for entry in _newest_batch_files(newest) if newest is not None else []:
            path = unquote(urlparse(entry["path"]).path)
            if entry["path"].startswith("file:") and not Path(path).exists():
                yield path


def _newest_batch_files(log: Path) -> list[dict[str, Any]]:
    """The files of the newest batch in a log; the first line is its version."""
    try:
        entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()[1:]]
        newest = int(log.name.removesuffix(".compact"))
        return [entry for entry in entries if entry["batchId"] == newest]
    except (OSError, ValueError, KeyError, TypeError):
        return []
