"""Scalar expressions: Spark SQL text over named columns. They are stored here and evaluated by the host."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Scalar:
    """One scalar expression, bound.

    `sql` names its columns exactly as the input relation does, in backticks. `column` is set when the expression is
    only that column, so that no host is needed to copy a value.
    """

    sql: str
    inputs: tuple[str, ...]
    type: pa.DataType
    column: str | None = None

    def __hash__(self) -> int:
        # Types take long to hash, and follow from the text for all but a few.
        return hash((self.sql, self.inputs))


def column(name: str, dtype: pa.DataType) -> Scalar:
    """The expression that is only a column.

    >>> column("S.price", pa.float64()).sql
    '`S.price`'
    """
    return Scalar(f"`{name}`", (name,), dtype, name)
