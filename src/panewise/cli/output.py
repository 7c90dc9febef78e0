"""How results are shown: as tables for people, or as one document for programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from io import BytesIO
from typing import TYPE_CHECKING

from panewise.core.errors import BindProblem, SourceProblem, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa


class Output(StrEnum):
    """The values of `--output`."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


def choose_queries(names: Sequence[str], printed: Sequence[str], query: str | None, output: Output) -> list[str]:
    """The queries to show: the requested one, or those without a target."""
    if query is not None and query not in names:
        raise BindProblem(f"there is no query {query!r}", fix=did_you_mean(query, names))
    found = [query] if query is not None else list(printed)
    if output in (Output.CSV, Output.ARROW) and len(found) > 1:
        one = f"name one of them with --query: {', '.join(found)}"
        raise BindProblem(f"{output} holds one result and there are {len(found)}", fix=one)
    return found


def write_results(results: Mapping[str, pa.Table], output: Output) -> None:
    """Write results by the names of their queries: as an object of rows in JSON, otherwise the only result."""
    from panewise.runtime.json_text import json_bytes, json_rows

    if output is Output.JSON:
        _write(json_bytes({name: json_rows(table) for name, table in results.items()}) + b"\n")
        return
    for table in results.values():
        write_result(table, output)


def write_result(table: pa.Table, output: Output) -> None:
    """Write one result: an array of rows in JSON, lines of CSV with a header, or an Arrow stream."""
    import pyarrow as pa
    import pyarrow.csv

    from panewise.runtime.json_text import json_bytes, json_rows

    document = BytesIO()
    match output:
        case Output.JSON:
            document.write(json_bytes(json_rows(table)) + b"\n")
        case Output.CSV:
            try:
                pyarrow.csv.write_csv(table, document)
            except pa.ArrowInvalid:
                nested = next(field.name for field in table.schema if pa.types.is_nested(field.type))
                raise SourceProblem(f"csv cannot hold column {nested!r}", fix="use --output json") from None
        case _:
            with pa.ipc.new_stream(document, table.schema) as stream:
                stream.write_table(table)
    _write(document.getvalue())


def _write(document: bytes) -> None:
    sys.stdout.buffer.write(document)
    sys.stdout.buffer.flush()
