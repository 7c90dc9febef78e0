"""The transferred columns of rows that workers read themselves, computed by the host of the embedded engine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from panewise.algebra import Host
from panewise.algebra.host import default_host
from panewise.core.errors import PanewiseError
from panewise.core.scalar import Scalar, column
from panewise.core.schema import ticks_of
from panewise.core.time import Domain
from panewise.cql.translate import scalar_type
from panewise.engine.row_steps import evaluate_scalars
from panewise.runtime.spark.failures import FailingExpression, expression_problem
from panewise.runtime.spark.transfer.expressions import EARLIEST, LATEST
from panewise.runtime.spark.transfer.layout import TIME_COLUMN, StreamTransfer
from panewise.runtime.spark.types import quote_name


def compute_columns(
    batches: Iterator[pa.RecordBatch], transfer: StreamTransfer, horizon: int | None
) -> Iterator[pa.RecordBatch]:
    """The transferred columns of rows that have the needed ones. Rows with unusable times become rows of NULLs, so that
    they are counted."""
    host, scalars = default_host(), transfer_scalars(transfer)
    names = [TIME_COLUMN, *scalars]
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        ticks, usable = ticks_of(rows.column(transfer.schema.time))
        if transfer.schema.domain is Domain.TIMESTAMP and len(ticks):
            inside = (ticks > EARLIEST) & (ticks < LATEST if horizon is None else ticks <= min(horizon, LATEST - 1))
            usable = inside if usable is None else usable & inside
        places = np.arange(len(ticks)) if usable is None else np.flatnonzero(usable)
        rejected = len(ticks) - len(places)
        if rejected:
            rows, ticks = rows.take(pa.array(places)), ticks[places]
        values = _evaluate(list(scalars.values()), rows, host)
        found = pa.table([pa.array(ticks), *values], names=names)
        if rejected:
            found = pa.concat_tables(
                [found, pa.table([pa.nulls(rejected, kind) for kind in found.schema.types], names)]
            )
        yield from found.combine_chunks().to_batches()


def transfer_scalars(transfer: StreamTransfer) -> dict[str, Scalar]:
    """The expressions of the transferred columns besides the time, by name."""
    types = {name: transfer.schema.schema.field(name).type for name in transfer.needed}
    plain = {quote_name(name): column(name, kind) for name, kind in types.items()}
    return {
        name: plain.get(sql) or Scalar(sql, transfer.needed, scalar_type(sql, types))
        for name, sql in transfer.select
        if name != TIME_COLUMN
    }


def _evaluate(scalars: list[Scalar], rows: pa.Table, host: Host) -> list[pa.ChunkedArray]:
    try:
        return evaluate_scalars(scalars, rows, host)
    except PanewiseError as problem:
        raise expression_problem(_failing_scalars(scalars, rows, host)) from problem


def _failing_scalars(scalars: list[Scalar], rows: pa.Table, host: Host) -> Iterator[FailingExpression]:
    """The expressions that fail alone, each with the reason and the row."""
    for scalar in scalars:
        try:
            evaluate_scalars([scalar], rows, host)
        except PanewiseError as problem:
            yield FailingExpression.of(scalar.sql, problem)
