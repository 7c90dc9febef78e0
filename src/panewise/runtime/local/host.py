"""DuckDB as the host of scalar expressions in one process."""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from panewise.core.errors import BindProblem, LimitExceeded
from panewise.core.scalar import Scalar
from panewise.cql import translate_scalar
from panewise.cql.conditions import ColumnTypes, calculation_of, condition_of
from panewise.cql.data_types import MONTHS, exchange_type, spark_type
from panewise.cql.functions import MACROS, MARK, TypedSql
from panewise.runtime.local.database import MEMORY_VARIABLE, open_database


class DuckDBHost:
    """One private in-memory DuckDB, in UTC; rows keep their order.

    DuckDB is imported when it is first needed and closed at exit: it prints errors about connections that are still
    open then, and our modules stay alive where threads of another library still refer to one of our functions.
    """

    def __init__(self) -> None:
        self._opened: Any = None
        self._opening = threading.Lock()
        atexit.register(self.close)

    @property
    def _database(self) -> Any:
        with self._opening:
            if self._opened is None:
                self._opened = open_database()
                for head, body in MACROS.items():
                    self._opened.execute(f"CREATE MACRO {head} AS {body}")
        return self._opened

    def close(self) -> None:
        """Close DuckDB; it is opened again when it is needed again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def evaluate(self, scalars: Sequence[Scalar], table: pa.Table) -> list[pa.ChunkedArray]:
        columns = tuple(
            (name, column.type) for name, column in zip(table.column_names, table.itercolumns(), strict=True)
        )
        found = [_by_arrow(scalar, columns, table) for scalar in scalars]
        others = [scalar for scalar, values in zip(scalars, found, strict=True) if values is None]
        computed = iter(self.compute(others, table) if others else ())
        return [next(computed) if values is None else values for values in found]

    def compute(self, scalars: Sequence[Scalar], table: pa.Table) -> list[pa.ChunkedArray]:
        """The same by DuckDB."""
        columns = tuple(zip(table.column_names, table.schema.types, strict=True))
        found = [translate_scalar(scalar.sql, columns) for scalar in scalars]
        try:
            result = self._select(found, table)
        except import_module("duckdb").OutOfMemoryException:
            raise LimitExceeded(
                "it takes too much memory", fix=f"compute less at once, or set {MEMORY_VARIABLE}"
            ) from None
        except import_module("duckdb").Error as problem:
            raise _explain_error(problem, self._failing_expression(found, table)) from None
        return [_to_declared_type(result.column(i), scalar.type) for i, scalar in enumerate(scalars)]

    def _select(self, expressions: Sequence[TypedSql], table: pa.Table) -> pa.Table:
        listed = ", ".join(f"{_result_sql(found)} AS c{i}" for i, found in enumerate(expressions))
        columns = [_to_stored_type(column) for column in table.columns]
        with self._database.cursor() as cursor:
            cursor.register("input", pa.table(columns, [f"_{i}" for i in range(len(columns))]))
            return cursor.sql(f"SELECT {listed} FROM input").to_arrow_table()

    def _failing_expression(self, expressions: Sequence[TypedSql], table: pa.Table) -> TypedSql:
        """The expression that fails, of several that were computed together."""
        *others, last = expressions
        for found in others:
            try:
                self._select([found], table)
            except import_module("duckdb").Error:
                return found
        return last


def _by_arrow(scalar: Scalar, columns: ColumnTypes, table: pa.Table) -> pa.ChunkedArray | None:
    """The values of an expression, if Arrow computes them; where it fails, DuckDB says why."""
    if (condition := condition_of(scalar.sql, columns)) is not None:
        return condition(table)
    if (calculation := calculation_of(scalar.sql, columns)) is None:
        return None
    try:
        return calculation(table)
    except pa.ArrowInvalid:
        return None


def _result_sql(found: TypedSql) -> str:
    """The SQL that is sent to DuckDB; months are cast, because only Arrow has a type for them."""
    return f"to_months({found.sql})" if found.type == MONTHS else found.sql


def _to_stored_type(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as it is given to DuckDB: in a type that Spark has, times in UTC and in microseconds."""
    wanted = exchange_type(spark_type(values.type))
    if values.type == wanted:
        return values
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        values = pc.floor_temporal(values, unit="microsecond")
    return values.cast(wanted)


def _to_declared_type(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return values if values.type == kind else values.cast(kind)


#: Patterns of DuckDB's messages, our sentences instead, and ways out; the first pattern that matches is used.
_REASONS = (
    (r"Overflow in \w+ of (\w+)\S* \((.*)\)", "{1} does not fit into {0}", "cast to DECIMAL(38, 0) or DOUBLE first"),
    (r"verflow on abs\((.*)\)", "the absolute value of {0} does not fit", "cast to DECIMAL(38, 0) or DOUBLE first"),
    (r"with value (\S+) can't be cast .* destination type (\w+)", "{0} does not fit into {1}", "use TRY_CAST"),
    (r"decimal value (\S+) to type (\w+)", "{0} does not fit into {1}", "use TRY_CAST"),
    (r'value "(.*?)" to type (\w+\(.*?\))', "{0} does not fit into {1}", "use TRY_CAST"),
    (r"value \"?(\S+?)\"? to (DECIMAL\(.*?\))", "{0} does not fit into {1}", "use TRY_CAST"),
    (r"^(?:\w+ )*Error: ([^\n]*?)[.!]?(?:\n| LINE \d|$)", "{0}", "filter such values out"),
    (r"^([^\n]*)", "{0}", "filter such values out"),
)
_TYPE_NAMES = {"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INTEGER": "INT", "INT64": "BIGINT"}


def _explain_error(problem: Exception, culprit: TypedSql) -> BindProblem:
    """Why an expression has no value for some row, on one line."""
    text = str(problem).strip()
    if MARK in text:
        # Our own sentences name the part of the expression already.
        message, _, fix = text[text.index(MARK) + len(MARK) :].partition("; ")
        return BindProblem(message, fix=fix)
    found = next((match, sentence, fix) for pattern, sentence, fix in _REASONS if (match := re.search(pattern, text)))
    match, sentence, fix = found
    words = [_TYPE_NAMES.get(word, word) for word in match.groups()]
    return BindProblem(f"{culprit.text}: {sentence.format(*words)}", fix=fix)
