"""Draws what was recorded: a table and a plot, from the JSON alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from benchmarks.harness.figure import Points, Row
from benchmarks.harness.heat_map import heat_map
from benchmarks.harness.record import Record


def draw(path: Path) -> tuple[Path, Path]:
    """Writes the table and the plot of a record beside it."""
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    table, plot = path.with_suffix(".md"), path.with_suffix(".svg")
    table.write_text(as_table(record), encoding="utf-8")
    as_plot(record, plot)
    return table, plot


def as_table(record: Record) -> str:
    """The paper versus ours, then every measured point with its ratio to the baseline."""
    machine = "{cpu}, {cores} cores, Python {python}, {system}".format(**record["machine"])
    parts = [
        f"# {record['title']}",
        f"Claim: {record['claim']}",
        f"Paper: {record['paper']}",
        f"![{record['y']} by {record['x']}]({record['name']}.svg)",
        "\n".join(
            [
                "| paper | ours | holds |",
                "|---|---|---|",
                *(f"| {f['paper']} | {f['ours']} | {'yes' if f['holds'] else 'NO'} |" for f in record["findings"]),
            ]
        ),
        f"{record['y']}; in brackets the ratio to {record['baseline']}:",
        _grid(record),
        f"Size {record['size']}, {record['date']}, commit {record['commit']}, {machine}.",
    ]
    return "\n\n".join(parts) + "\n"


def as_plot(record: Record, path: Path) -> None:
    """The same record gives the same bytes."""
    with mpl.rc_context({"svg.hashsalt": "panewise", "svg.fonttype": "none"}):
        canvas = PLOTS[record.get("plot", "lines")](record)  # records from before there was a choice have lines
        canvas.savefig(path, format="svg", metadata={"Date": None, "Creator": "panewise"})


def lines(record: Record) -> Canvas:
    """One line a series."""
    points = _points(record)
    canvas = Canvas(figsize=(7, 4.5), layout="constrained")
    axes = canvas.subplots()
    for name, marker in zip(points.series, "osD^vP*X<>" * len(points.series), strict=False):
        held = [row for row in points.rows if row.series == name]
        axes.plot([row.x for row in held], [row.y for row in held], marker=marker, label=name)
    for axis in record["log"]:
        getattr(axes, f"set_{axis}scale")("log")
    axes.set(title=record["title"], xlabel=record["x"], ylabel=record["y"])
    axes.grid(alpha=0.3)
    canvas.legend(loc="outside lower center", ncols=3)
    return canvas


PLOTS: dict[str, Callable[[Record], Canvas]] = {"lines": lines, "heat map": heat_map}


def number(value: float | str) -> str:
    """Three digits are enough for a measurement.

    >>> [number(v) for v in (1234567.0, 0.25, 12.34, 1000, "a")]
    ['1,230,000', '0.25', '12.3', '1,000', 'a']
    """
    if isinstance(value, str):
        return value
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def _points(record: Record) -> Points:
    return Points(Row(row["series"], row["x"], row["y"]) for row in record["rows"])


def _grid(record: Record) -> str:
    points = _points(record)
    ratios = {(row["series"], row["x"]): row["ratio"] for row in record["rows"]}

    def cell(series: str, x: float | str) -> str:
        y, ratio = points.get(series, x), ratios.get((series, x))
        if y is None:
            return ""
        return number(y) if ratio is None or series == record["baseline"] else f"{number(y)} ({number(ratio)})"

    lines = [f"| {record['x']} | {' | '.join(points.series)} |", "|---" * (len(points.series) + 1) + "|"]
    lines += [f"| {number(x)} | {' | '.join(cell(series, x) for series in points.series)} |" for x in points.xs]
    return "\n".join(lines)
