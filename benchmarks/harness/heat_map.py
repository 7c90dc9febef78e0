"""A record as a heat map: the colour is the ratio to the baseline, the number what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log2

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure as Canvas

from benchmarks.harness.record import Record

#: Ratios beyond 16 and below 1/16 have the same colours as these.
_REACH = 4


def heat_map(record: Record) -> Canvas:
    """The first series of a record. Its x are "panel, row, column"; a cell without one is grey."""
    series = record["rows"][0]["series"]
    held = {tuple(row["x"].split(", ")): row for row in record["rows"] if row["series"] == series}
    panels, rows, columns = (_different(place[axis] for place in held) for axis in range(3))
    canvas = Canvas(figsize=(1.5 + 0.5 * len(columns), len(panels) * (1.6 + 0.3 * len(rows))), layout="constrained")
    for axes, panel in zip(np.ravel(canvas.subplots(len(panels), 1)), panels, strict=True):
        mesh = _panel(axes, panel, rows, columns, held)
    bar = canvas.colorbar(mesh, ax=canvas.axes, shrink=0.6, label=f"{series} over {record['baseline']}")
    ticks = range(-_REACH, _REACH + 1)
    bar.set_ticks(list(ticks), labels=[f"{2**tick}" if tick >= 0 else f"1/{2**-tick}" for tick in ticks])
    canvas.suptitle(record["title"])
    return canvas


def _panel(
    axes: Axes, panel: str, rows: Sequence[str], columns: Sequence[str], held: dict[tuple[str, ...], Record]
) -> QuadMesh:
    ratios = np.full((len(rows), len(columns)), np.nan)
    for down, row in enumerate(rows):
        for across, column in enumerate(columns):
            found = held.get((panel, row, column))
            if found is None:
                continue
            if found["ratio"] is not None:
                ratios[down, across] = log2(found["ratio"])
            dark = abs(np.nan_to_num(ratios[down, across])) > 0.6 * _REACH
            axes.text(
                across + 0.5,
                down + 0.5,
                f"{found['y']:.2g}" if found["y"] < 10 else f"{found['y']:.0f}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if dark else "black",
            )
    axes.set_facecolor("0.9")
    mesh = axes.pcolormesh(ratios, cmap=mpl.colormaps["RdBu"], vmin=-_REACH, vmax=_REACH, edgecolor="white")
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=45, ha="right", fontsize=8)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, fontsize=8)
    axes.tick_params(length=0)
    axes.invert_yaxis()
    axes.set_title(f"{panel}: M rows/s", fontsize=9)
    return mesh


def _different(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
