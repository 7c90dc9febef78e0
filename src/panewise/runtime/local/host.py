"""DuckDB as the host of scalar expressions in one process."""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from panewise.algebra import Query
from panewise.errors import BindProblem, TooMuch
from panewise.lang import bind_query, translated
from panewise.lang.data_types import MONTHS, plain, stored
from panewise.lang.functions import MACROS, MARK, Typed
from panewise.runtime.local.database import MEMORY, open_database
from panewise.scalar import Scalar
from panewise.schema import StreamSchema


class DuckDBHost:
    """One private in-memory DuckDB, in UTC; rows keep their order.

    DuckDB is imported when it is first needed and let go at exit: it complains about whatever of it is still alive
    then, as our modules are wherever another library's threads still know one of our functions.
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
        """Let DuckDB go; it is opened again if it is needed again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def read(self, text: str, streams: Mapping[str, StreamSchema]) -> Query:
        return bind_query(text, streams, self.describe)

    def evaluate(self, scalars: Sequence[Scalar], table: pa.Table) -> list[pa.ChunkedArray]:
        columns = tuple(zip(table.column_names, table.schema.types, strict=True))
        result = self._select([_asked(translated(scalar.sql, columns)) for scalar in scalars], table)
        return [_as_declared(result.column(i), scalar.type) for i, scalar in enumerate(scalars)]

    def describe(self, sql: str, columns: Mapping[str, pa.DataType]) -> pa.DataType:
        """The type of an expression over these columns: Spark's, which DuckDB is not asked for."""
        return translated(sql, tuple(columns.items())).type

    def _select(self, expressions: Sequence[str], table: pa.Table) -> pa.Table:
        listed = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(expressions))
        names = tuple(table.column_names)
        columns = [_as_stored(column) for column in table.columns]
        try:
            with self._database.cursor() as cursor:
                cursor.register("input", pa.table(columns, [f"_{i}" for i in range(len(names))]))
                return cursor.sql(f"SELECT {listed} FROM input").to_arrow_table()
        except import_module("duckdb").OutOfMemoryException:
            raise TooMuch("it takes too much memory", fix=f"compute less at once, or set {MEMORY}") from None
        except import_module("duckdb").Error as problem:
            raise _explained(problem, names) from None


def _asked(found: Typed) -> str:
    """What DuckDB is asked for: months have a type of their own in Arrow only."""
    return f"to_months({found.sql})" if found.type == MONTHS else found.sql


def _as_stored(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as DuckDB gets it: in a type of Spark's, times in UTC and in microseconds."""
    wanted = stored(plain(values.type))
    if values.type == wanted:
        return values
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        values = pc.floor_temporal(values, unit="microsecond")
    return values.cast(wanted)


def _as_declared(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return values if values.type == kind else values.cast(kind)


#: DuckDB's reasons, what we say instead, and what to do about them; the first pattern that fits is used.
_REASONS = (
    (rf"{MARK}(.*?)(?:; (.*))?$", "{0}", "{1}"),
    (r"Function with name (\S+) does not exist", "there is no function {0}", "check its name"),
    (r"argument types '(.*?)\((.*)\)'", "{0} does not take ({1})", "check its arguments, or cast one"),
    (r"compare values of type (.+) and type (.+?) -", "{0} cannot be compared with {1}", "cast one of them"),
    (r"onvert string '(.*?)' to (\w+)", "'{0}' is no {1}", "filter such values out, or use TRY_CAST"),
    (r"ivision by zero in expression \((.*?)\)\.", "{0} divides by zero", "write NULLIF(divisor, 0)"),
    (r"Overflow in \w+ of (\w+) \((.*)\)", "{1} does not fit into {0}", "cast to DECIMAL(38, 0) or DOUBLE first"),
    (r"^(?:\w+ )*Error: ([^\n]*?)[.!]?(?:\n| LINE \d|$)", "{0}", "check names, types and the number of arguments"),
    (r"^([^\n]*)", "{0}", "check names, types and the number of arguments"),
)
_TYPE_NAMES = (
    (r"TIMESTAMP WITH TIME ZONE", "TIMESTAMP"),
    (r"STRING_LITERAL|VARCHAR", "STRING"),
    (r"INTEGER_LITERAL|INTEGER|INT32", "INT"),
    (r"INT64", "BIGINT"),
    (r"(\w+)\[\]", r"ARRAY<\1>"),
)


def _explained(problem: Exception, columns: tuple[str, ...]) -> BindProblem:
    """DuckDB's reason in our words and with our column names, on one line."""
    text = re.sub(
        r"\b_(\d+)\b", lambda m: columns[int(m[1])] if int(m[1]) < len(columns) else m[0], str(problem).strip()
    )
    for pattern, message, fix in _REASONS:
        if found := re.search(pattern, text):
            words = [word.upper() if "no function" in message else word for word in found.groups()]
            said = message.format(*words)
            for theirs, ours in _TYPE_NAMES:
                said = re.sub(theirs, ours, said)
            return BindProblem(said[:1].lower() + said[1:] if said[1:2].islower() else said, fix=fix.format(*words))
    return BindProblem("it cannot be computed", fix="check names, types and the number of arguments")
