"""A record as a heat map: the colour is the ratio to the baseline, the number what was measured."""

from __future__ import annotations

from math import log2
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure as Canvas

from benchmarks.harness.record import Record

#: Ratios beyond 16 and below 1/16 have the same colours as these.
_REACH = 4

#: The rows of a record by panel, row and column.
Cells: TypeAlias = dict[tuple[str, ...], Record]


def heat_map(record: Record) -> Canvas:
    """The first series of a record, whose x are "panel, row, column". A dash is a cell that only other series have."""
    series = record["rows"][0]["series"]
    cells: Cells = {}
    for row in record["rows"]:
        place = tuple(row["x"].split(", "))
        if row["series"] == series or place not in cells:
            cells[place] = row
    measured = [place for place, row in cells.items() if row["series"] == series]
    panels, down, across = (list(dict.fromkeys(place[axis] for place in measured)) for axis in range(3))
    canvas = Canvas(figsize=(1.5 + 0.5 * len(across), len(panels) * (1.6 + 0.3 * len(down))), layout="constrained")
    for axes, panel in zip(np.ravel(canvas.subplots(len(panels), 1)), panels, strict=True):
        axes.set_title(f"{panel}: {record['y'].partition(';')[0]}", fontsize=9)
        mesh = _draw_panel(axes, [[cells.get((panel, row, column)) for column in across] for row in down], series)
        axes.set_xticks(np.arange(len(across)) + 0.5, across, rotation=45, ha="right", fontsize=8)
        axes.set_yticks(np.arange(len(down)) + 0.5, down, fontsize=8)
    bar = canvas.colorbar(mesh, ax=canvas.axes, shrink=0.6, label=f"{series} over {record['baseline']}")
    powers = range(-_REACH, _REACH + 1)
    bar.set_ticks(list(powers), labels=[f"{2**power}" if power >= 0 else f"1/{2**-power}" for power in powers])
    canvas.suptitle(record["title"])
    return canvas


def _draw_panel(axes: Axes, cells: list[list[Record | None]], series: str) -> QuadMesh:
    colours = np.full((len(cells), len(cells[0])), np.nan)
    for place, _ in np.ndenumerate(colours):
        cell = cells[place[0]][place[1]]
        if cell is None:
            continue
        told = "-"
        if cell["series"] == series:
            told = f"{cell['y']:.2g}" if cell["y"] < 10 else f"{cell['y']:.0f}"
            colours[place] = log2(cell["ratio"]) if cell["ratio"] else np.nan
        ink = "white" if abs(colours[place]) > 0.6 * _REACH else "black"
        axes.text(place[1] + 0.5, place[0] + 0.5, told, ha="center", va="center", fontsize=8, color=ink)
    axes.set_facecolor("0.9")
    axes.tick_params(length=0)
    axes.invert_yaxis()
    return axes.pcolormesh(colours, cmap="RdBu", vmin=-_REACH, vmax=_REACH, edgecolor="white")
