"""When a query reports: every moment of a bounded run, with the bounds of the window at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from panewise.algebra import Emit, Except, Node, Query, Union, Windowed
from panewise.core.errors import BindProblem
from panewise.core.time import Boundary, Ticks, grid_between
from panewise.reference.history import History
from panewise.window import FOREVER, Contents, Pattern, Session, Window, WindowRetention


@dataclass(frozen=True)
class Moment:
    """An instant to evaluate at. `session` narrows it to one session of one partition.

    A revision lets in late items up to `admitted`: the watermark that the last of them met, and its arrival.
    """

    at: int
    start: int | None = None
    end: int | None = None
    session: tuple[tuple[Any, ...], int] | None = None
    revision: int = 0
    admitted: tuple[int, int] | None = None


#: The parts of a window's stream, by partition.
Parts = Callable[[Windowed], dict[tuple[Any, ...], History]]


def split_levels(query: Query) -> list[tuple[int | None, Query]]:
    """The query once for each level of its multi-granular window, or once."""
    hierarchies = {w.window for w in query.windows if w.window.levels}
    if not hierarchies:
        return [(None, query)]
    if len(hierarchies) > 1:
        raise BindProblem("two different multi-granular windows meet in one query", fix="give both the same levels")
    found: list[tuple[int | None, Query]] = []
    for number in range(len(hierarchies.pop().levels)):
        root = replace_windows(query.root, partial(_pick_level, number))
        found.append((number, replace(query, root=root)))
    return found


def replace_windows(node: Node, by: Callable[[Windowed], Window]) -> Node:
    """The tree with another window spec at every window."""
    node = node.with_children(*(replace_windows(child, by) for child in node.children))
    return replace(node, window=by(node)) if isinstance(node, Windowed) else node


def _pick_level(number: int, node: Windowed) -> Window:
    return node.window.levels[number] if node.window.levels else node.window


def moments(query: Query, parts: Parts, boundary: Boundary) -> list[Moment]:
    """All moments, in order. Windows with instants of their own decide them; without any, every change does."""
    reporting = [w for w in query.windows if w.window.periodic] or list(query.windows)
    whole = query.emit is Emit.RSTREAM and query.periodic
    found: set[Moment] = set()
    for node in reporting:
        if isinstance(node.window, Session) and whole and len(query.windows) == 1:
            found.update(_sessions(node.window, parts(node), boundary))
        else:
            found.update(Moment(int(t)) for t in _instants(node, parts(node), boundary, query, whole))
    if query.periodic and (_mixes_windows(query.root) or _never_empties(query)):
        found.update(_grid_points(query, reporting, parts, boundary))
    ordered = sorted(found, key=lambda m: (m.at, m.start is not None, m.start or 0, repr(m.session)))
    return [m if m.session else _with_bounds(m, reporting) for m in ordered] if whole else ordered


def _instants(
    node: Windowed, parts: dict[tuple[Any, ...], History], boundary: Boundary, query: Query, whole: bool
) -> Ticks:
    window = node.window
    if not window.periodic:
        changes = [_change_instants(window, part, boundary) for part in parts.values()]
        return np.unique(np.concatenate([np.empty(0, np.int64), *changes]))
    if query.empty:
        # Empty windows are reported between instants that had an item; a late item was unknown before it came.
        found = [_instants_with_items(window, part, boundary) for part in parts.values()]
    else:
        found = [_periodic_instants(window, part, boundary) for part in parts.values()]
    instants = np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
    if not whole:
        return np.union1d(instants, window.next_instants(instants))
    return grid_between(instants[:1], instants[-1:], *window.grid) if query.empty and window.grid else instants


def _periodic_instants(window: Window, part: History, boundary: Boundary) -> Ticks:
    """The instants of a periodic window; where nothing leaves, up to the one at which the last late item enters."""
    instants = window.instants(part.contents, boundary)
    if not _is_monotonic(window) or window.grid is None:
        return instants
    late = [_late_item_instants(window, *item, boundary) for item in part.late_items(boundary)]
    ends = np.unique(np.concatenate([instants, *late]))
    return grid_between(ends[:1], ends[-1:], *window.grid)


def _instants_with_items(window: Window, part: History, boundary: Boundary) -> Ticks:
    """The instants of a periodic window that had some item."""
    if window.retention is WindowRetention.COUNTS_ROWS:
        return window.instants(part.contents, boundary)
    late = [_late_item_instants(window, *item, boundary) for item in part.late_items(boundary)]
    return np.unique(np.concatenate([window.instants(part.on_time(), boundary), *late]))


def _late_item_instants(window: Window, time: int, opened: int, boundary: Boundary) -> Ticks:
    """The instants of a late item that it is not late for; in an open landmark it counts from the next one on."""
    instants = window.instants(Contents.of(np.array([time], np.int64)), boundary)
    not_late = instants[instants >= opened]
    if len(not_late) or not len(instants) or not _is_monotonic(window) or window.grid is None:
        return not_late
    following = window.instants_from(np.array([opened], np.int64))
    return following[following < FOREVER]


def _is_monotonic(window: Window) -> bool:
    """Whether what has come in never leaves."""
    return window.pattern is Pattern.MONOTONIC


def _change_instants(window: Window, part: History, boundary: Boundary) -> Ticks:
    """When a window reports that does so at every change; an item that missed its instant enters when it arrives."""
    if window.retention is WindowRetention.COUNTS_ROWS:
        return window.instants(part.contents, boundary)
    found = [window.instants(part.on_time(), boundary)]
    for time, opened in part.late_items(boundary):
        instants = window.instants(Contents.of(np.array([time], np.int64)), boundary)
        later = instants[instants > opened]
        missed = len(later) < len(instants)
        found.append(np.append(later, opened) if missed and (len(later) or _is_monotonic(window)) else later)
    return np.unique(np.concatenate(found))


def _mixes_windows(node: Node) -> bool:
    """Whether rows of one window can be results alone: then there are results while another window is empty."""
    return isinstance(node, Union | Except) or (
        not isinstance(node, Windowed) and any(map(_mixes_windows, node.children))
    )


def _never_empties(query: Query) -> bool:
    """Whether some periodic window never becomes empty: then later changes of the other windows are reported, too."""
    patterns = [w.window.pattern for w in query.windows if w.window.periodic]
    return len(query.windows) > 1 and Pattern.MONOTONIC in patterns


def _grid_points(query: Query, reporting: list[Windowed], parts: Parts, boundary: Boundary) -> set[Moment]:
    """All instants of the periodic windows, from the first change of any window to the next instant after the last."""
    instants = [
        (
            _instants_with_items(w.window, part, boundary)
            if w.window.periodic
            else _change_instants(w.window, part, boundary)
        )
        for w in query.windows
        for part in parts(w).values()
    ]
    changes = np.unique(np.concatenate([np.empty(0, np.int64), *instants]))
    found: set[Moment] = set()
    for grid in (node.window.grid for node in reporting):
        if grid:
            points = grid_between(changes[:1], changes[-1:] + grid[1] - 1, *grid)
            found.update(Moment(int(t)) for t in points)
    return found


def _sessions(window: Session, parts: dict[tuple[Any, ...], History], boundary: Boundary) -> set[Moment]:
    found = set()
    for key, part in parts.items():
        firsts, ends, joined = part.sessions(window, boundary)
        for first, end in {(int(f), int(e)) for f, e in zip(firsts[joined], ends[joined], strict=True)}:
            found.add(Moment(end, first, end, (key, first)))
    return found


def _with_bounds(moment: Moment, reporting: list[Windowed]) -> Moment:
    """With several windows, the bounds of a result are the earliest start and the latest end."""
    bounds = [w.window.bounds(moment.at) for w in reporting]
    starts, ends = [s for s, _ in bounds if s is not None], [e for _, e in bounds if e is not None]
    return replace(moment, start=min(starts, default=None), end=max(ends, default=None))
