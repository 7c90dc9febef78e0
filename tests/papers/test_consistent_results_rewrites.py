"""Paper "Consistent results", section 5: every equivalence of `panewise.algebra.REWRITES`, and where each one ends.

Both sides of an equivalence are run over random streams. Where the paper's condition fails, the rewrite must refuse,
and a stream is shown on which both sides really differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.algebra import (
    REWRITES,
    Distinct,
    Emit,
    Join,
    Node,
    Project,
    Query,
    Select,
    Source,
    Union,
    Windowed,
)
from panewise.algebra.tree import Column
from panewise.core.scalar import Scalar, column
from panewise.core.schema import StreamSchema
from panewise.core.time import Domain, Instant
from panewise.cql import bind_query
from panewise.window import NOW, Cumulate, Landmark, Predicate, Rows, Sliding, Window, tumbling

SCHEMA = pa.schema([("t", pa.int64()), ("i", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
NAMED = {rewrite.name: rewrite.apply for rewrite in REWRITES}
Streams = dict[str, pa.Table]


def random_streams(seed: int) -> Streams:
    random = Random(seed)

    def table() -> pa.Table:
        times = sorted(random.randint(0, 20) for _ in range(15))
        keys, values = [random.choice("ab") for _ in times], [random.randint(1, 3) for _ in times]
        return pa.table([times, [random.randint(0, 99) for _ in times], keys, values], schema=SCHEMA)

    return {name: table() for name in "STU"}


def source(name: str) -> Source:
    return Source(name, name, tuple(Column(f"{name}.{f.name}", f.type) for f in SCHEMA), f"{name}.t")


def kept(node: Node, *names: str) -> Project:
    """A projection that copies some columns."""
    types = {c.name: c.type for c in node.columns}
    return Project(node, tuple((name, column(name, types[name])) for name in names))


def large(name: str) -> Scalar:
    return Scalar(f"`{name}` >= 2", (name,), pa.bool_())


def results(root: Node, streams: Streams) -> Counter[tuple[Any, ...]]:
    """All results of a tree, with their times and signs, as a multiset.

    Where a result expires is part of the comparison; of several expiration orders only which ones there are, since
    they follow the order of the inputs.
    """
    periodic = Query(root, Emit.RSTREAM, Domain.INTEGER).periodic
    query = Query(root, Emit.RSTREAM if periodic else Emit.CHANGES, Domain.INTEGER)
    rows = pw.reference.run(query, streams, time="t").to_pylist()
    return Counter(tuple(tuple(sorted(v)) if isinstance(v, list) else v for v in row.values()) for row in rows)


def equal(one: Node, other: Node) -> bool:
    return all(results(one, streams) == results(other, streams) for streams in map(random_streams, range(4)))


def applied(name: str, node: Node) -> Node:
    found = NAMED[name](node)
    assert found is not None, f"{name} does not apply"
    assert found != node
    return found


LOGICAL: list[Window] = [
    NOW,
    Sliding(5),
    Sliding(6, slide=2),
    Sliding(3, slide=5),
    Sliding(4, slide=2, lag=3),
    Sliding(6, slide=3, origin=Instant(4)),
    tumbling(4),
    Landmark(),
    Landmark(lower=Instant(7)),
    Landmark(upper=Instant(12)),
    Landmark(Instant(5), Instant(12)),
    Cumulate(8, 2),
]
PHYSICAL: list[Window] = [Rows(3), Rows(3, lag=2), Rows(2, partition_by=("S.k",))]


def test_all_rewrites_are_covered_here() -> None:
    """Section 5 lists four commutations with windows and four properties of joins.

    Two more follow from these: selections pass each other, and columns that no operator reads are left out everywhere.
    """
    assert set(NAMED) == {
        "projection under window",
        "selection under window",
        "union under window",
        "distinct under window",
        "join commutes",
        "join associates",
        "selections commute",
        "selection into join",
        "projection into join",
        "unread columns left out",
    }
    assert all(rewrite.condition for rewrite in REWRITES)


# ---- neutral operators and windows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [*LOGICAL, *PHYSICAL], ids=str)
def test_projection_commutes_with_every_window(window: Window) -> None:
    """Section 5, projection: some attributes are merely dropped, so counted windows commute with it as well."""
    tree = kept(Windowed(source("S"), window), "S.k", "S.v")
    assert equal(tree, applied("projection under window", tree))


def test_projection_must_keep_what_the_window_looks_at() -> None:
    """Section 5, projection: partition attributes, and those of a predicate window, cannot be dropped below it."""
    partitioned = Rows(2, partition_by=("S.k",))
    assert NAMED["projection under window"](kept(Windowed(source("S"), partitioned), "S.v")) is None
    valued = Predicate(large("S.v"))
    assert NAMED["projection under window"](kept(Windowed(source("S"), valued), "S.k")) is None
    tree = kept(Windowed(source("S"), valued), "S.k", "S.v")
    assert equal(tree, applied("projection under window", tree))


@pytest.mark.parametrize("window", LOGICAL, ids=str)
def test_selection_commutes_with_logical_windows(window: Window) -> None:
    """Section 5, selection: time decides what is in the window, whatever was filtered before."""
    tree = Select(Windowed(source("S"), window), large("S.v"))
    assert equal(tree, applied("selection under window", tree))


@pytest.mark.parametrize("window", PHYSICAL, ids=str)
def test_selection_does_not_commute_with_physical_windows(window: Window) -> None:
    """Section 5, selection: filtering first lets older tuples be counted."""
    tree = Select(Windowed(source("S"), window), large("S.v"))
    assert NAMED["selection under window"](tree) is None
    assert not equal(tree, Windowed(Select(source("S"), large("S.v")), window))


@pytest.mark.parametrize("window", LOGICAL, ids=str)
def test_union_commutes_with_equal_logical_windows(window: Window) -> None:
    """Section 5, union: two equal windows on two streams are one window on both streams together."""
    tree = Union(Windowed(source("S"), window), Windowed(source("T"), window))
    assert equal(tree, applied("union under window", tree))


@pytest.mark.parametrize("window", PHYSICAL, ids=str)
def test_union_does_not_commute_with_physical_windows(window: Window) -> None:
    """Section 5, union: n tuples of each stream are up to 2n, not n."""
    tree = Union(Windowed(source("S"), window), Windowed(source("S"), window))
    assert NAMED["union under window"](tree) is None
    assert not equal(tree, Windowed(Union(source("S"), source("S")), window))


def test_union_needs_equal_windows() -> None:
    """Section 5, union: the rule holds for identical signatures only."""
    tree = Union(Windowed(source("S"), Sliding(5)), Windowed(source("T"), Sliding(3)))
    assert NAMED["union under window"](tree) is None
    assert not equal(tree, Windowed(Union(source("S"), source("T")), Sliding(5)))


def test_union_needs_windows_without_a_time_of_day() -> None:
    """The day of a window that starts at a time of day is that of the first item, and each stream has its own."""
    daily = Landmark(lower=Instant(7 * 3_600_000_000, of_day=True))
    assert NAMED["union under window"](Union(Windowed(source("S"), daily), Windowed(source("T"), daily))) is None


def test_selections_pass_each_other() -> None:
    tree = Select(Select(Windowed(source("S"), Sliding(5)), large("S.v")), large("S.i"))
    assert equal(tree, applied("selections commute", tree))


@pytest.mark.parametrize("window", [*LOGICAL, *PHYSICAL], ids=str)
def test_unread_columns_are_left_out_below_every_window(window: Window) -> None:
    tree = kept(Select(Windowed(source("S"), window), large("S.v")), "S.t")
    narrow = applied("unread columns left out", tree)
    (windowed,) = (node for node in narrow.walk() if isinstance(node, Windowed))
    assert {c.name for c in windowed.columns} == {"S.t", "S.v", *window.partition_by}
    assert equal(tree, narrow)


# ---- duplicate elimination and windows ------------------------------------------------------------------------------


def distinct(window: Window) -> tuple[Node, Node]:
    """Duplicate elimination above and below a window."""
    child = kept(source("S"), "S.k", "S.v")
    return Distinct(Windowed(child, window)), Windowed(Distinct(child), window)


@pytest.mark.parametrize("window", [NOW, Sliding(5), Landmark(), Landmark(lower=Instant(7))], ids=str)
def test_duplicate_elimination_commutes_with_logical_windows_that_reach_the_present(window: Window) -> None:
    """Section 5, duplicate elimination: the most recent appearance is in the window if any appearance is."""
    above, below = distinct(window)
    assert applied("distinct under window", above) == below
    assert equal(above, below)


@pytest.mark.parametrize("window", [Sliding(4, lag=2), *PHYSICAL], ids=str)
def test_duplicate_elimination_does_not_commute_with_other_windows(window: Window) -> None:
    """Section 5, duplicate elimination: not for physical windows.

    The paper allows every logical window. Where a lag ends the window before the present, the most recent appearance
    may lie outside while an older one is inside, so the equivalence does not hold there.
    """
    above, below = distinct(window)
    assert NAMED["distinct under window"](above) is None
    assert not equal(above, below)


@pytest.mark.parametrize("window", [tumbling(4), Sliding(5, slide=3), Landmark(upper=Instant(8))], ids=str)
def test_duplicate_elimination_does_not_commute_when_seen_from_another_windows_instants(window: Window) -> None:
    """Section 5, duplicate elimination: between two slides, or after an upper bound, a window ends in the past too."""
    above, below = distinct(window)
    assert NAMED["distinct under window"](above) is None
    other = kept(Windowed(source("T"), Sliding(2, slide=1)), "T.k", "T.v")
    assert not equal(Union(above, other), Union(below, other))


# ---- joins ----------------------------------------------------------------------------------------------------------

JOINED: list[tuple[Window, Window, Window]] = [
    (Sliding(5), Sliding(3), Sliding(4)),
    (tumbling(4), Sliding(6, slide=2), Landmark()),
    (Landmark(), NOW, Landmark(upper=Instant(15))),
    (Rows(4), Rows(3), Rows(5)),
    (Rows(2, partition_by=("S.k",)), Sliding(4), Rows(4)),
]
any_windows = pytest.mark.parametrize("windows", JOINED, ids=str)
Windows = tuple[Window, Window, Window]


def joined(windows: Windows, residual: Scalar | None = None) -> Join:
    left, right = Windowed(source("S"), windows[0]), Windowed(source("T"), windows[1])
    return Join(left, right, (("S.k", "T.k"),), residual)


@any_windows
def test_join_is_commutative(windows: Windows) -> None:
    """Section 5, joins: both orders give the same pairs."""
    residual = Scalar("`S.v` < `T.v`", ("S.v", "T.v"), pa.bool_())
    for tree in (joined(windows), joined(windows, residual)):
        assert equal(tree, applied("join commutes", tree))


@any_windows
def test_join_is_associative(windows: Windows) -> None:
    """Section 5, joins: three streams can be joined from either end."""
    tree = Join(joined(windows), Windowed(source("U"), windows[2]), (("T.v", "U.v"),))
    assert equal(tree, applied("join associates", tree))


def test_join_associates_only_where_the_outer_keys_are_at_hand() -> None:
    """Section 5, joins: keys of the first stream are unknown to a join of the other two."""
    tree = Join(joined(JOINED[0]), Windowed(source("U"), NOW), (("S.v", "U.v"),))
    assert NAMED["join associates"](tree) is None


@pytest.mark.parametrize("windows", JOINED[:3], ids=str)
@pytest.mark.parametrize("side", ["S.v", "T.v"])
def test_selection_distributes_over_join_of_logical_windows(windows: Windows, side: str) -> None:
    """Section 5, joins: a condition on one side may be checked before the window of that side."""
    tree = Select(joined(windows), large(side))
    below = applied("selection into join", tree)
    assert equal(tree, below)
    assert equal(tree, everywhere(below, NAMED["selection under window"]))


def test_selection_does_not_distribute_over_join_of_physical_windows() -> None:
    """Section 5, joins: the distributive property for selection holds for logical windows only."""
    tree = Select(joined((Rows(3), Rows(3), NOW)), large("S.v"))
    beside = applied("selection into join", tree)
    assert equal(tree, beside), "beside the window, where the same tuples are counted"
    assert all(NAMED["selection under window"](node) is None for node in beside.walk())
    below = Windowed(Select(source("S"), large("S.v")), Rows(3))
    assert not equal(tree, replace(joined((Rows(3), Rows(3), NOW)), left=below))


def test_selection_on_both_sides_stays_above_the_join() -> None:
    """Section 5, joins: a condition that needs both sides cannot be given to one of them."""
    both = Scalar("`S.v` + `T.v` > 3", ("S.v", "T.v"), pa.bool_())
    assert NAMED["selection into join"](Select(joined(JOINED[0]), both)) is None


@any_windows
def test_projection_distributes_over_join(windows: Windows) -> None:
    """Section 5, joins: below the join only what is selected and what is joined on must be kept."""
    residual = Scalar("`S.i` < `T.i`", ("S.i", "T.i"), pa.bool_())
    for tree in (kept(joined(windows), "S.v", "T.t"), kept(joined(windows, residual), "S.t")):
        below = applied("projection into join", tree)
        narrow = next(node for node in below.walk() if isinstance(node, Join))
        assert len(narrow.columns) < len(joined(windows).columns)
        assert equal(tree, below)


# ---- the same, as users write it ------------------------------------------------------------------------------------

QUERIES = [
    "SELECT k, v + 1 AS more FROM S [RANGE 5] WHERE v >= 2",
    "SELECT S.i, T.v FROM S [RANGE 6 SLIDE 2], T [RANGE 4 SLIDE 2] WHERE S.k = T.k AND S.v > 1",
    "SELECT S.v, COUNT(*) AS c FROM S [RANGE 5], T [RANGE 3], U [NOW] WHERE S.k = T.k AND T.v = U.v GROUP BY S.v",
    "SELECT DISTINCT k FROM S [UNBOUNDED] WHERE v = 3",
    "SELECT k FROM S [ROWS 3] WHERE v >= 2 EXCEPT ALL SELECT k FROM T [ROWS 2]",
]


def everywhere(node: Node, apply: Callable[[Node], Node | None]) -> Node:
    """The tree with a rewrite applied once at every node that it fits, from the leaves up."""
    node = node.with_children(*(everywhere(child, apply) for child in node.children))
    return apply(node) or node


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("text", QUERIES)
def test_rewrites_inside_whole_queries_change_nothing(name: str, text: str) -> None:
    """Section 5: an equivalence may be used anywhere in a query."""
    query = bind_query(text, {stream: StreamSchema(SCHEMA, "t") for stream in "STU"})
    assert equal(query.root, everywhere(query.root, NAMED[name]))
