"""Every claim with its verdict, as tables for README.md, made from the records alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.harness.figure import Figure
from benchmarks.harness.record import Record

#: Where the records lie that are shown.
RESULTS = Path(__file__).parents[1] / "results"


def table_of_verdicts(figures: dict[str, Figure[Any]], folder: Path = RESULTS) -> str:
    """A line for each figure: what it claims, whether that holds, and the run that says so."""
    lines = ["| figure | claim | holds | recorded |", "|---|---|---|---|"]
    for name, figure in figures.items():
        record = read_record(name, figure, folder)
        shown = f"[`{name}`](results/{name}.md)" if record else f"`{name}`"
        lines.append(f"| {shown} | {figure.claim} | {verdict(record)} | {_run(record)} |")
    return "\n".join(lines) + "\n"


def read_record(name: str, figure: Figure[Any], folder: Path) -> Record | None:
    """The record of a figure. One that was made for another claim says nothing about this one."""
    path = folder / f"{name}.json"
    record: Record | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return record if record and record["claim"] == figure.claim else None


def verdict(record: Record | None) -> str:
    """Whether all findings of a record hold, and which do not.

    >>> verdict({"findings": [{"paper": "A is flat", "holds": True}, {"paper": "B is flat", "holds": False}]})
    'no, 1 of 2: B is flat'
    """
    if record is None:
        return "no record"
    failed = [finding["paper"] for finding in record["findings"] if not finding["holds"]]
    if not failed:
        return "yes"
    return f"no, {len(failed)} of {len(record['findings'])}: {'; '.join(dict.fromkeys(failed))}"


def _run(record: Record | None) -> str:
    return f"{record['size']}, {record['date']}, {record['seconds']:.0f} s" if record else ""
