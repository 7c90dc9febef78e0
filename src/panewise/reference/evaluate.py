"""The meaning of every operator, literally: the relation at an instant, recomputed from the whole history.

Nothing here is incremental. A relation at an instant is a list of rows, a *bag*. Operators are applied to the bags
of several moments together only so that the host is asked for scalars once for many rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.aggregate import LevelView, Positional
from panewise.algebra import (
    Call,
    Derived,
    Distinct,
    Except,
    Group,
    Host,
    Join,
    Node,
    Project,
    Query,
    Select,
    Source,
    Union,
    Windowed,
)
from panewise.algebra.positional import views
from panewise.core.errors import BindProblem
from panewise.core.scalar import Scalar
from panewise.core.time import Boundary, Ticks
from panewise.core.values import normalize_float, to_arrow, to_python
from panewise.reference.history import History, Row, merge_histories
from panewise.reference.moments import Moment
from panewise.window import Session

Bag = list[Row]

#: Where items lie, seen from an instant; None for windows without tiers.
ViewFunction = Callable[[int], LevelView]


class Evaluation:
    """One query over complete histories. `sources` maps streams, and derived queries, to their history."""

    def __init__(
        self,
        sources: dict[object, History],
        boundary: Boundary,
        host: Host,
        empty: bool = False,
        look: ViewFunction | None = None,
    ) -> None:
        self.sources, self.boundary, self.host, self.empty, self.look = sources, boundary, host, empty, look
        # By identity, since hashing a tree at every moment costs more than a window; the node is kept alive with it.
        self._parts: dict[int, tuple[Windowed, dict[tuple[Any, ...], History]]] = {}

    # ---- streams -------------------------------------------------------------------------------------------------

    def history(self, node: Node) -> History:
        """Everything a stream expression ever holds, with the arrival of the items it came from."""
        match node:
            case Source(stream=name):
                return self.sources[name]
            case Derived(query=query):
                return self.sources[query]
            case Select(child, predicate):
                whole = self.history(child)
                flags = self.scalars([predicate], child, whole.rows)
                return whole.part(np.array([i for i, f in enumerate(flags) if f[0]], np.int64))
            case Project(child, items):
                whole = self.history(child)
                values = self.scalars([s for _, s in items], child, whole.rows)
                rows = [Row(v, row.time) for v, row in zip(values, whole.rows, strict=True)]
                return History(rows, whole.contents)
            case Union(left, right):
                return merge_histories([self.history(left), self.history(right)])
            case Distinct(child):
                return self.history(child)
        raise BindProblem(
            f"a window cannot look at the result of {type(node).__name__.lower()}", fix="use ISTREAM(...)"
        )

    def parts(self, node: Windowed) -> dict[tuple[Any, ...], History]:
        """The partitions of a windowed stream, each row with the time at which it will leave."""
        if id(node) not in self._parts:
            child = Select(node.child, node.window.condition) if node.window.condition else node.child
            names = [c.name for c in node.child.columns]
            places = tuple(names.index(column) for column in node.window.partition_by)
            split = self.history(child).split(places)
            self._parts[id(node)] = node, {k: part.with_expiry(node.window, self.boundary) for k, part in split.items()}
        return self._parts[id(node)][1]

    def state(self, node: Windowed, moment: Moment) -> Bag:
        """The window's state: of each partition, the visible items that are in scope, by time and arrival."""
        chosen = [p for k, p in self.parts(node).items() if moment.session is None or k == moment.session[0]]
        found = [(part.contents, *self._members(part, node, moment)) for part in chosen]
        rows = [row for _, _, members in found for row in members]
        if len(found) < 2:
            return rows
        times = np.concatenate([contents.times[places] for contents, places, _ in found])
        arrivals = np.concatenate([contents.arrivals[places] for contents, places, _ in found])
        return [rows[i] for i in np.lexsort((arrivals, times))]

    def _members(self, part: History, node: Windowed, moment: Moment) -> tuple[Ticks, Bag]:
        """Positions and rows of the items of a partition that are in scope."""
        window = node.window
        if isinstance(window, Session):
            places = _session(part, window, moment, self.boundary)
            return places, [part.rows[i] for i in places]
        seen = part.visible(window, moment.at, self.boundary, moment.admitted)
        if isinstance(node.child, Distinct):
            seen = _latest(part, seen)
        seen = seen[window.complete(part.view(seen))]
        members = window.members(part.view(seen), moment.at, self.boundary)
        places = seen[members]
        rows = [part.rows[i] for i in places]
        if part.disordered and (orders := window.expires_order(np.arange(1, len(seen) + 1))) is not None:
            # Late items are not admitted and do not count, so the order of the others depends on the moment.
            rows = [replace(row, orders=(int(o),)) for row, o in zip(rows, orders[members], strict=True)]
        return places, rows

    # ---- relations -----------------------------------------------------------------------------------------------

    def bags(self, node: Node, moments: Sequence[Moment]) -> list[Bag]:
        """The relation that a node has at each of the moments."""
        match node:
            case Windowed():
                return [self.state(node, m) for m in moments]
            case Select(child, predicate):
                return self.select(child, predicate, self.bags(child, moments))
            case Project(child, items):
                return self.project(child, [s for _, s in items], self.bags(child, moments))
            case Union(left, right):
                return [a + b for a, b in zip(self.bags(left, moments), self.bags(right, moments), strict=True)]
            case Except(left, right):
                pairs = zip(self.bags(left, moments), self.bags(right, moments), strict=True)
                return [difference(a, b) for a, b in pairs]
            case Distinct(child):
                return [distinct(bag) for bag in self.bags(child, moments)]
            case Group(child):
                bags = self.bags(child, moments)
                return [self._group(node, bag, m) for bag, m in zip(bags, moments, strict=True)]
            case Join(left, right, _, residual):
                pairs = zip(self.bags(left, moments), self.bags(right, moments), strict=True)
                joined = [join(a, b, node) for a, b in pairs]
                return self.select(node, residual, joined) if residual else joined
        raise TypeError(f"no meaning for {type(node).__name__}")

    def select(self, child: Node, predicate: Scalar, bags: list[Bag]) -> list[Bag]:
        rows = _unique_rows(bags)
        keep = {id(row) for row, flag in zip(rows, self.scalars([predicate], child, rows), strict=True) if flag[0]}
        return [[row for row in bag if id(row) in keep] for bag in bags]

    def project(self, child: Node, scalars: list[Scalar], bags: list[Bag]) -> list[Bag]:
        rows = _unique_rows(bags)
        values = self.scalars(scalars, child, rows)
        image = {id(r): Row(v, r.time, r.expires, r.orders) for r, v in zip(rows, values, strict=True)}
        return [[image[id(row)] for row in bag] for bag in bags]

    def _group(self, node: Group, bag: Bag, moment: Moment) -> Bag:
        names = [c.name for c in node.child.columns]
        places = [names.index(key) for key in node.keys]
        groups: dict[tuple[Any, ...], Bag] = {}
        for row in bag:
            groups.setdefault(tuple(row.values[p] for p in places), []).append(row)
        if not groups and not node.keys and self.empty:
            groups[()] = []
        return [
            Row(
                key + tuple(self._answer(call, names, rows, moment) for call in node.calls), moment.at, *_earliest(rows)
            )
            for key, rows in groups.items()
        ]

    def _answer(self, call: Call, names: list[str], rows: Bag, moment: Moment) -> Any:
        if not isinstance(call.aggregate, Positional):
            return aggregate_rows(call, names, rows)
        assert self.look is not None, "only windows with tiers have positional aggregates"
        ordered, present = argument_values(call, names, rows)
        items = [(row.time + self.boundary.shift, value) for row, value in zip(ordered, present, strict=True)]
        return normalize_float(call.aggregate.meaning_in_view(items, self.look(moment.at)))

    def scalars(self, scalars: Sequence[Scalar], child: Node, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        """The expressions' values for each row; plain columns are copied, the host computes the rest."""
        names = [c.name for c in child.columns]
        if all(s.column for s in scalars):
            places = [names.index(str(s.column)) for s in scalars]
            return [tuple([row.values[p] for p in places]) for row in rows]
        needed = sorted({name for s in scalars for name in s.inputs})
        types = {c.name: c.type for c in child.columns}
        arrays = [to_arrow([row.values[names.index(n)] for row in rows], types[n]) for n in needed]
        # A table without columns has no rows; the row number keeps constant expressions as long as the bag.
        table = pa.table([pa.array(range(len(rows)), pa.int64()), *arrays], names=["#row", *needed])
        return list(zip(*map(to_python, self.host.evaluate(scalars, table)), strict=True))


def aggregate_rows(call: Call, names: list[str], rows: Bag) -> Any:
    """One aggregate over the rows of a group, in time order, NULLs removed."""
    return normalize_float(call.aggregate.meaning(argument_values(call, names, rows)[1]))


def argument_values(call: Call, names: list[str], rows: Bag) -> tuple[Bag, list[Any]]:
    """The rows that count for an aggregate, in time order, and the value of each."""
    places = [names.index(a) for a in call.arguments]
    kept, values = [], []
    for row in sorted(rows, key=lambda row: row.time):
        value = tuple(row.values[p] for p in places)
        if None not in value or (len(places) == 1 and not call.aggregate.skip_nulls):
            kept.append(row)
            values.append(value[0] if len(places) == 1 else value)
    return kept, values


def distinct(bag: Bag) -> Bag:
    """The most recent appearance of each different row."""
    latest: dict[tuple[Any, ...], Row] = {}
    for row in bag:
        if row.values not in latest or row.time >= latest[row.values].time:
            latest[row.values] = row
    return list(latest.values())


def difference(left: Bag, right: Bag) -> Bag:
    """Multiset difference; of equal rows the older ones are cancelled first. When they return cannot be known."""
    cancelled = Counter(row.values for row in right)
    rest: Bag = []
    for row in sorted(left, key=lambda r: r.time):
        if cancelled[row.values] > 0:
            cancelled[row.values] -= 1
        else:
            rest.append(Row(row.values, row.time))
    return rest


def join(left: Bag, right: Bag, node: Join) -> Bag:
    """Pairs with equal keys. A pair exists from its younger part's time and leaves with its first part to leave."""
    lefts, rights = ([c.name for c in side.columns] for side in (node.left, node.right))
    left_key, right_key = [lefts.index(a) for a, _ in node.on], [rights.index(b) for _, b in node.on]
    table: dict[tuple[Any, ...], Bag] = {}
    for row in right:
        table.setdefault(tuple(row.values[p] for p in right_key), []).append(row)
    return [
        Row(a.values + b.values, max(a.time, b.time), _earliest([a, b])[0], a.orders + b.orders)
        for a in left
        if None not in (key := tuple(a.values[p] for p in left_key))
        for b in table.get(key, ())
    ]


def _session(part: History, window: Session, moment: Moment, boundary: Boundary) -> Ticks:
    """Positions of the items of the session, or sessions, that a moment closes."""
    firsts, ends, joined = part.sessions(window, boundary)
    places = joined & (ends == moment.at)
    if moment.session:
        places &= firsts == moment.session[1]
    return np.flatnonzero(places).astype(np.int64)


def _latest(part: History, seen: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of visible positions, those of the most recent appearance of each different row."""
    last = {part.rows[i].values: i for i in seen}
    return np.array(sorted(last.values()), np.int64)


def _earliest(rows: Bag) -> tuple[int | None, tuple[int, ...]]:
    """When the first of several rows leaves, by time and by the order of each counted window."""
    times = [row.expires for row in rows if row.expires is not None]
    orders = [row.orders for row in rows if row.orders]
    return min(times, default=None), tuple(map(min, zip(*orders, strict=False)))


def _unique_rows(bags: Sequence[Bag]) -> Bag:
    return list({id(row): row for bag in bags for row in bag}.values())


def view_function(query: Query, level: int, boundary: Boundary) -> ViewFunction | None:
    """The view of a level of the query's only window at an instant."""
    found = views(query.windows[0].window, query.domain, boundary.shift) if len(query.windows) == 1 else None
    return None if found is None else lambda instant: found.at(instant, level)
