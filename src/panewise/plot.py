"""A series and, under it, the windows of queries over it, as figure 2 of "Data-driven windows" compares them.

Arrays in, bytes out: whatever has starts and ends is drawn alike, frames and fixed windows. The same input gives the
same bytes. The only user of matplotlib, without pyplot, so that nothing here is shared or shown on a screen.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal, TypeAlias

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.dates import UTC, AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

__all__ = ["Panel", "Series", "figure", "figure_bytes"]

#: Numbers, or `datetime64` in UTC.
Times: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.datetime64]
Floats: TypeAlias = npt.NDArray[np.float64]

#: Inches; each panel is as high as the series.
WIDTH, HEIGHT, DPI = 10.0, 2.4, 150
#: From so many points or windows on, a vector graphic holds them as an image: nobody could load or edit so many.
MANY = 4_000
#: What is shown before the first item and after the last, as a share of the time between them.
MARGIN = 0.02
#: Days since 1970 that a calendar has names for.
CALENDAR = (-719_000.0, 2_932_000.0)
#: From the palette of Okabe and Ito, which colour-blind readers can tell apart.
SERIES, SPAN, LEVEL, BEHIND = "#0072B2", "#56B4E9", "#D55E00", "#B8B8B8"

#: `$` in a query is no mathematics, a noisy line is drawn in parts that the renderer has room for, and letters are
#: outlines, since readers of a picture may not have its font.
_STYLE = {"text.parse_math": False, "agg.path.chunksize": 10_000, "svg.hashsalt": "panewise", "svg.fonttype": "path"}
#: Neither the date nor the version of what drew it.
_METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": "panewise"}}


@dataclass(frozen=True, eq=False)
class Series:
    """What was measured, in any order; NaN where there is no value. `time` and `value` name the axes."""

    title: str
    times: Times
    values: Floats
    time: str = "time"
    value: str = "value"


@dataclass(frozen=True, eq=False)
class Panel:
    """The windows of one query. `values` are their levels, NaN for none; without them only the spans are drawn.

    `value` names the levels, where they are something else than the values of the series.
    """

    title: str
    starts: Times
    ends: Times
    values: Floats | None = None
    value: str = ""


def figure(series: Series, panels: Sequence[Panel]) -> Figure:
    """The series on top, then each panel on the same axis of time, with the series in grey behind its windows."""
    with _style():
        drawn = Figure(figsize=(WIDTH, HEIGHT * (1 + len(panels))), dpi=DPI, layout="constrained")
        top, *others = drawn.subplots(1 + len(panels), 1, sharex=True, squeeze=False)[:, 0]
        low, high = _limits(series, panels)
        _set_labels(top, series.title, series.value)
        _line(top, series, SERIES)
        for axes, panel in zip(others, panels, strict=True):
            _set_labels(axes, panel.title, *dict.fromkeys((series.value, panel.value or series.value)))
            _line(axes, series, BEHIND)
            _windows(axes, panel, low, high)
        _time_axis([top, *others][-1], series, low, high)
        return drawn


def figure_bytes(drawn: Figure, kind: Literal["png", "svg"]) -> bytes:
    """A figure as the content of a file."""
    target = BytesIO()
    with _style(), warnings.catch_warnings():
        # A title may use letters that the font lacks; they show as boxes, which says enough.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawn.savefig(target, format=kind, dpi=DPI, metadata=_METADATA[kind])
    return target.getvalue()


def _style() -> AbstractContextManager[None]:
    """Our settings over matplotlib's own defaults: what a user has configured must not change the bytes."""
    return matplotlib.style.context(["default", _STYLE])


def _positions(times: Times) -> Floats:
    """Where times lie on the axis: numbers as they are, dates in days."""
    return np.asarray(date2num(times) if times.dtype.kind == "M" else times, dtype=np.float64)


def _drawable(values: Floats) -> Floats:
    """Values that an axis can hold: no infinities, and room left for the margins of the largest."""
    return np.clip(np.where(np.isfinite(values), values, np.nan), -1e300, 1e300)


def _limits(series: Series, panels: Sequence[Panel]) -> tuple[float, float]:
    """The time that is shown: that of the series, since windows may reach far beyond it."""
    x = _positions(series.times)
    if not len(x):
        return 0.0, 1.0
    low, high = float(x.min()), float(x.max())
    margin = MARGIN * (high - low) if high > low else _narrowest(panels)
    # Large numbers need a margin that still changes them.
    margin = max(margin, 1e-9 * abs(low))
    return low - margin, high + margin


def _narrowest(panels: Sequence[Panel]) -> float:
    """The length of the shortest window that has one: the scale of a series that is but one instant."""
    lengths = np.concatenate([np.zeros(0), *(_positions(p.ends) - _positions(p.starts) for p in panels)])
    return float(lengths[lengths > 0].min(initial=np.inf)) if (lengths > 0).any() else 1.0


def _line(axes: Axes, series: Series, colour: str) -> None:
    order = np.argsort(series.times, kind="stable")
    x, y = _positions(series.times)[order], _drawable(series.values)[order]
    many = len(x) > MANY
    axes.plot(x, y, color=colour, linewidth=0.8, rasterized=many)
    alone = _isolated_flags(y)
    axes.plot(x[alone], y[alone], color=colour, linestyle="none", marker=".", markersize=3, rasterized=many)


def _isolated_flags(values: Floats) -> npt.NDArray[np.bool_]:
    """Values between gaps, which a line does not show."""
    there = np.concatenate(([False], ~np.isnan(values), [False]))
    return there[1:-1] & ~there[:-2] & ~there[2:]


def _windows(axes: Axes, panel: Panel, low: float, high: float) -> None:
    edges = np.column_stack((_positions(panel.starts), _positions(panel.ends)))
    # Edges beyond all time are more than a renderer can hold; out of sight is far enough.
    near = np.clip(edges, 2 * low - high, 2 * high - low)
    once = np.unique(edges, axis=0, return_index=True)[1]
    _spans(axes, near[once], low, high)
    if panel.values is not None:
        _levels(axes, near[:, 0], near[:, 1], _drawable(panel.values))


def _spans(axes: Axes, edges: Floats, low: float, high: float) -> None:
    """A shade over each window; several groups that have the same one share it."""
    # Shades of windows that overlap and edges that lie close add up: each is fainter, so that together they are not.
    overlap = max(1.0, float(np.diff(np.clip(edges, low, high)).sum()) / (high - low))
    crowd = max(1.0, len(edges) / 200)
    corners = np.stack((edges[:, [0, 0, 1, 1]], np.broadcast_to([0.0, 1.0, 1.0, 0.0], (len(edges), 4))), axis=2)
    shades = PolyCollection(
        list(corners),
        transform=axes.get_xaxis_transform(),
        facecolors=(SPAN, max(0.02, 0.18 / overlap)),
        edgecolors=(SPAN, max(0.02, 0.6 / crowd)),
        linewidths=0.6,  # an edge, so that a window of one instant shows too
        rasterized=len(edges) > MANY,
        gid="spans",
        zorder=0,
    )
    axes.add_collection(shades, autolim=False)


def _levels(axes: Axes, starts: Floats, ends: Floats, values: Floats) -> None:
    """A step at the value of each window that has one."""
    valued = ~np.isnan(values)
    starts, ends, values = starts[valued], ends[valued], values[valued]
    steps = LineCollection(
        list(np.stack((np.column_stack((starts, ends)), np.column_stack((values, values))), axis=2)),
        colors=LEVEL,
        linewidths=1.8,
        capstyle="butt",
        rasterized=len(values) > MANY,
        gid="levels",
        zorder=3,
    )
    axes.add_collection(steps)
    point = starts == ends
    axes.plot(starts[point], values[point], color=LEVEL, linestyle="none", marker=".", markersize=4, zorder=3)
    axes.autoscale_view(scalex=False)


def _set_labels(axes: Axes, title: str, *values: str) -> None:
    lines = textwrap.wrap(_printable(title), width=120, max_lines=3, placeholder=" ...")
    axes.set_title("\n".join(lines), loc="left", fontsize=9)
    axes.set_ylabel(textwrap.shorten(_printable(", ".join(values)), width=30, placeholder=" ..."))


def _printable(text: str) -> str:
    """Text without control characters, which SVG cannot hold."""
    return "".join(c if c.isprintable() else " " for c in text)


def _time_axis(axes: Axes, series: Series, low: float, high: float) -> None:
    """Times that a person reads: the calendar in UTC, or plain numbers."""
    axes.set_xlim(low, high)
    dates = series.times.dtype.kind == "M"
    if dates and CALENDAR[0] < low and high < CALENDAR[1]:
        days = AutoDateLocator(tz=UTC)
        axes.xaxis.set_major_locator(days)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(days, tz=UTC))
        axes.set_xlabel(f"{_printable(series.time)} (UTC)")
        return
    numbers = ScalarFormatter(useOffset=False)
    numbers.set_scientific(False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True))
    axes.xaxis.set_major_formatter(numbers)
    axes.set_xlabel(_printable(series.time) + (" (days since 1970)" if dates else ""))
