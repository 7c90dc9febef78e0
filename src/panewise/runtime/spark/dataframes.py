"""Spark DataFrames: checked, reduced to the transferred columns, sliced into messages; and results with their types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from panewise.core.errors import SchemaProblem, did_you_mean
from panewise.core.schema import StreamSchema
from panewise.core.time import DurationLike
from panewise.engine.state.sealed import unseal_table
from panewise.runtime.spark.transfer.layout import TIME_COLUMN, Layout, StreamTransfer
from panewise.runtime.spark.transfer.native import NativePanes, plan_native_panes
from panewise.runtime.spark.transfer.slice import MESSAGE_SCHEMA, SlicingStage
from panewise.runtime.spark.types import quote_name, spark_schema, spark_type, type_text


def declared(name: str, frame: DataFrame, time: str, delay: DurationLike | None = None) -> StreamSchema:
    """The declaration of a stream that a DataFrame holds."""
    empty = frame.sparkSession.createDataFrame([], frame.schema).toArrow()
    try:
        return StreamSchema(_schema_in_utc(empty.schema), time, delay)
    except SchemaProblem as problem:
        raise SchemaProblem(f"stream {name!r}: {problem.message}", fix=problem.fix) from None


def _schema_in_utc(schema: pa.Schema) -> pa.Schema:
    """A schema with timestamps in UTC, whatever zone the session shows them in."""
    return pa.schema([(f.name, pa.timestamp("us", "UTC") if _has_zone(f.type) else f.type) for f in schema])


def _has_zone(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz)


def check_columns(name: str, frame: DataFrame, schema: StreamSchema) -> DataFrame:
    """The declared columns of a DataFrame, with the declared types."""
    types = {field.name: type_text(field.dataType) for field in frame.schema.fields}
    for field in schema.schema:
        wanted = spark_type(field.type)
        if field.name not in types:
            raise SchemaProblem(
                f"stream {name!r}: the DataFrame has no column {field.name!r}", fix=did_you_mean(field.name, types)
            )
        if types[field.name] != wanted:
            raise SchemaProblem(
                f"stream {name!r}: column {field.name!r} is {types[field.name].upper()} in the DataFrame, "
                f"but was declared {wanted.upper()}",
                fix=f"cast it to {wanted.upper()}",
            )
    return frame


def transfer_rows(frame: DataFrame, transfer: StreamTransfer, skew: int | None, packed: bool = True) -> DataFrame:
    """The transferred columns. Rows with unusable times are transferred without a time, to be counted in Python."""
    usable = transfer.usable
    if skew is not None:
        # Spark gives a batch one current time, which is the same when the batch is done again.
        usable = f"({usable}) AND {transfer.time} <= UNIX_MICROS(CURRENT_TIMESTAMP()) + {skew}"
    plain = [quote_name(name) for name in transfer.needed]
    select = transfer.select if packed or transfer.packing is None else _unpacked_select(transfer)
    # Expressions may fail on rows that are rejected; columns cannot.
    sqls = [
        (name, sql if sql in plain and name != TIME_COLUMN else f"IF({usable}, {sql}, NULL)") for name, sql in select
    ]
    return frame.select(*map(F.col, plain)).select(*(F.expr(sql).alias(name) for name, sql in sqls))


def _unpacked_select(transfer: StreamTransfer) -> tuple[tuple[str, str], ...]:
    assert transfer.packing is not None
    (family,) = transfer.family_transfers
    key = family.columns[transfer.packing.key]
    return (TIME_COLUMN, transfer.time), (key, transfer.packing.sql), *transfer.select[1:]


def shard_messages(
    frame: DataFrame, layout: Layout, transfer: StreamTransfer, labels: tuple[int, ...], skew: int | None
) -> DataFrame:
    """The messages from the tasks that read a stream to the shards."""
    rows = transfer_rows(frame, transfer, skew)
    return rows.mapInArrow(SlicingStage(layout, transfer, labels), MESSAGE_SCHEMA)


@dataclass(frozen=True, eq=False)
class BoundedTransfer:
    """The transfer of bounded input, or of one batch: aggregated by Spark itself where possible."""

    layout: Layout
    transfer: StreamTransfer
    labels: tuple[int, ...]

    def rows(self, frame: DataFrame, skew: int | None = None) -> DataFrame:
        """The rows from which `shard_messages` are made."""
        return transfer_rows(frame, self.transfer, skew, packed=self._native_panes is None)

    def messages(self, rows: DataFrame) -> DataFrame:
        panes = self._native_panes
        if panes is None:
            return rows.mapInArrow(SlicingStage(self.layout, self.transfer, self.labels), MESSAGE_SCHEMA)
        return panes.group_rows(rows).mapInArrow(panes, MESSAGE_SCHEMA)

    @property
    def _native_panes(self) -> NativePanes | None:
        return plan_native_panes(self.layout, self.transfer, self.labels)


@dataclass(frozen=True)
class UnpackingStage:
    """The function of the last stage: payloads in, typed rows out."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch["payload"]:
                data = payload.as_buffer()
                if data is not None and len(data):
                    table = unseal_table(data, "a result between tasks", "run the batch again")
                    yield from table.cast(self.schema).to_batches()


def unpack_results(output: DataFrame, channel: int, schema: pa.Schema) -> DataFrame:
    """The results of one channel as typed rows."""
    return (
        output.where(F.col("channel") == channel)
        .select("payload")
        .mapInArrow(UnpackingStage(schema), spark_schema(schema))
    )
