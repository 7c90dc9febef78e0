"""Calcite's stream.iq: every window table function it shows, row by row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw

from .table_functions import time_column, window_clause

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Example:
    """A statement of the file and the table below it, whose last two columns are the bounds of the window."""

    sql: str
    header: list[str]
    rows: list[Row]

    @property
    def call(self) -> str:
        """The table function with its arguments, without what stands around TABLE(...)."""
        return re.split(r"FROM TABLE\(\s*", self.sql, maxsplit=1)[1]

    @property
    def input(self) -> list[Row]:
        """The rows of VALUES; of a table that Calcite has built in, the rows that the result shows, each once."""
        if "VALUES" in self.sql:
            written = re.findall(r"\((?:TIMESTAMP '([^']+)'|CAST\(NULL AS TIMESTAMP\)), '(\w+)'\)", self.sql)
            return [(_value(time) if time else None, name) for time, name in written]
        return list(dict.fromkeys(row[:-2] for row in self.rows))


@pytest.mark.filterwarnings("ignore:.*no usable time:panewise.PanewiseWarning")
def test_every_example(goldens: Path, subtests: pytest.Subtests) -> None:
    text = (goldens / "calcite" / "stream.iq").read_text()
    examples = list(_examples(text))
    assert len(examples) == text.count("!ok")
    inputs = [(example.header, example.input) for example in examples]
    for number, example in enumerate(examples):
        clause = window_clause(example.call)
        with subtests.test(clause, number=number):
            # A name for each different input: runners that take all queries together have all streams in sight.
            stream = f"S{inputs.index(inputs[number])}"
            query = f"SELECT * FROM {stream} [{clause}]"
            found = pw.run(query, {stream: _table(example)}, time=time_column(example.call), boundary="[)")
            assert found.column_names == [*example.header[:-2], "w_start", "w_end"]
            assert Counter(tuple(row.values()) for row in found.to_pylist()) == Counter(example.rows)


def _examples(text: str) -> Iterator[Example]:
    for part in text.split("!ok"):
        lines = [line for line in part.splitlines() if line and line[0] not in "#!+("]
        table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[0] == "|"]
        if table:
            sql = "\n".join(line for line in lines if line[0] != "|")
            yield Example(sql, table[0], [tuple(map(_value, row)) for row in table[1:]])


def _table(example: Example) -> pa.Table:
    names = example.header[:-2]
    times = {name for name in names if name in ("ROWTIME", "TS")}
    columns = zip(*example.input, strict=True)
    arrays = [
        pa.array(column, pa.timestamp("us") if name in times else None)
        for name, column in zip(names, columns, strict=True)
    ]
    return pa.table(arrays, names)


def _value(cell: str) -> Any:
    if re.fullmatch(r"\d+", cell):
        return int(cell)
    return datetime.fromisoformat(cell) if re.match(r"\d{4}-\d\d-\d\d ", cell) else cell
