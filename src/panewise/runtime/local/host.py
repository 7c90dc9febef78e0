"""DuckDB as the host of scalar expressions in one process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import duckdb
import pyarrow as pa

from panewise.algebra import Query
from panewise.errors import BindProblem
from panewise.lang import bind_query, translate
from panewise.scalar import Scalar
from panewise.schema import StreamSchema


class DuckDBHost:
    """One private in-memory DuckDB, in UTC; rows keep their order."""

    def __init__(self) -> None:
        self._database = duckdb.connect(":memory:", config={"threads": 1})
        self._database.execute("SET TimeZone = 'UTC'")

    def read(self, text: str, streams: Mapping[str, StreamSchema]) -> Query:
        return bind_query(text, streams, self.describe)

    def evaluate(self, scalars: Sequence[Scalar], table: pa.Table) -> list[pa.ChunkedArray]:
        listed = ", ".join(f"{translate(s.sql, 'duckdb')} AS c{i}" for i, s in enumerate(scalars))
        try:
            with self._database.cursor() as cursor:
                cursor.execute("SET TimeZone = 'UTC'")
                cursor.register("input", table)
                result = cursor.sql(f"SELECT {listed} FROM input").to_arrow_table()
        except duckdb.Error as problem:
            raise _explained(problem) from None
        return [_as_declared(result.column(i), s.type) for i, s in enumerate(scalars)]

    def describe(self, sql: str, columns: Mapping[str, pa.DataType]) -> pa.DataType:
        """The type of an expression over these columns, found by asking DuckDB about no rows at all."""
        return _described(self, sql, tuple(columns.items()))


@lru_cache(maxsize=4096)
def _described(host: DuckDBHost, sql: str, columns: tuple[tuple[str, pa.DataType], ...]) -> pa.DataType:
    empty = pa.table(
        [pa.array([], pa.int64()), *(pa.array([], t) for _, t in columns)], ["#row", *(n for n, _ in columns)]
    )
    try:
        with host._database.cursor() as cursor:
            cursor.register("input", empty)
            found = cursor.sql(f"SELECT {translate(sql, 'duckdb')} AS c FROM input").to_arrow_table()
    except duckdb.Error as problem:
        raise _explained(problem) from None
    kind = found.schema.field(0).type
    if pa.types.is_decimal(kind) and kind.scale == 0 and kind.precision > 38:
        return pa.decimal128(38, 0)
    return pa.int32() if pa.types.is_null(kind) else kind


def _as_declared(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return values if values.type == kind else values.cast(kind)


def _explained(problem: duckdb.Error) -> BindProblem:
    """DuckDB's reason, in one line and without its own error prefix, candidates or position markers."""
    text = str(problem).strip()
    first = re.split(r"\n|LINE \d+:|Candidate|Did you mean", text, maxsplit=1)[0].strip().rstrip(".")
    reason = re.sub(r"^(?:\w+ )*Error: ", "", first)
    return BindProblem(reason[:1].lower() + reason[1:], fix="check names, types and the number of arguments")
