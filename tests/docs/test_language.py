"""Every example of docs/language.md is run, and its printed result is what Panewise answers.

`REGENERATE=1 make test-fast` writes the results anew, for review in the diff.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import panewise as pw

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```cql\n(?P<query>.*?)\n```\n(?:\n```result\n(?P<result>.*?)```\n)?", re.DOTALL)


def streams() -> dict[str, pa.Table]:
    """The streams that the page declares."""
    found = {}
    for name, body in re.findall(r"```stream (\w+)\n(.*?)```", TEXT, re.DOTALL):
        header, *lines = [[cell.strip() for cell in line.split("|")] for line in body.splitlines()]
        columns = zip(*lines, strict=True)
        found[name] = pa.table(
            {h: [_value(cell) for cell in column] for h, column in zip(header, columns, strict=True)}
        )
    return found


def _value(cell: str) -> object:
    """A whole number, a number, a time of one day, or text."""
    if re.fullmatch(r"\d\d:\d\d:\d\d", cell):
        return datetime.fromisoformat(f"2026-01-31 {cell}+00:00")
    return int(cell) if cell.isdigit() else float(cell) if re.fullmatch(r"\d+\.\d+", cell) else cell


def shown(table: pa.Table) -> str:
    rows = [table.column_names, *([_cell(v) for v in row.values()] for row in table.to_pylist())]
    return "".join(" | ".join(row) + "\n" for row in rows)


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%H:%M:%S}"
    return "NULL" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def answer(query: str) -> str:
    return shown(pw.run(query, streams(), time="t"))


@pytest.mark.parametrize("example", list(EXAMPLE.finditer(TEXT)), ids=lambda m: m["query"][:60])
def test_the_example_answers_what_the_page_says(example: re.Match[str]) -> None:
    assert answer(example["query"]) == example["result"]


def test_the_page_can_be_regenerated() -> None:
    fresh = EXAMPLE.sub(lambda m: f"```cql\n{m['query']}\n```\n\n```result\n{answer(m['query'])}```\n", TEXT)
    if os.environ.get("REGENERATE"):
        PAGE.write_text(fresh, encoding="utf-8")
    assert fresh == PAGE.read_text(encoding="utf-8")
