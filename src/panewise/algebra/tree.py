"""Query trees: queries as frozen data. Columns are named `alias.column` below a projection.

A stream expression (Source, and Select, Project, Union or Distinct over one) means the stream's contents so far;
Windowed turns it into a relation that changes with time; everything above is relational.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any

import pyarrow as pa

from panewise.aggregate import Aggregate
from panewise.core.errors import Place
from panewise.core.scalar import Scalar
from panewise.core.time import Domain
from panewise.frame.frame import Frame
from panewise.window import Window


@dataclass(frozen=True)
class Column:
    name: str
    type: pa.DataType

    def __hash__(self) -> int:
        return hash(self.name)  # types take long to hash, and columns of one name mostly have one type


@dataclass(frozen=True)
class Node:
    """An operator. `columns` is the schema of its result."""

    @property
    def columns(self) -> tuple[Column, ...]:
        raise TypeError(f"{type(self).__name__} has no columns")

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    def with_children(self, *children: Node) -> Node:
        """The same operator over other inputs."""
        slots = [f.name for f in fields(self) if isinstance(getattr(self, f.name), Node)]
        changes: dict[str, Any] = dict(zip(slots, children, strict=True))
        return replace(self, **changes)

    @property
    def streams(self) -> set[str]:
        """The declared streams below this node, those of derived streams included."""
        found: set[str] = set()
        for node in self.walk():
            match node:
                case Source(stream=name):
                    found.add(name)
                case Derived(query=query):
                    found |= query.root.streams
        return found

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


@dataclass(frozen=True)
class Source(Node):
    """A registered stream under an alias. `time` is the qualified name of its time column."""

    stream: str
    alias: str
    schema: tuple[Column, ...]
    time: str

    def __hash__(self) -> int:
        return hash((self.stream, self.alias, self.time))

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.schema


@dataclass(frozen=True)
class Derived(Node):
    """The stream that another query emits; its time is the instant of each result."""

    query: Query
    alias: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(f"{self.alias}.{c.name}", c.type) for c in self.query.root.columns)


@dataclass(frozen=True)
class Unary(Node):
    """An operator over one input, whose columns it has unless it overrides `columns`."""

    child: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@dataclass(frozen=True)
class Binary(Node):
    """An operator over two inputs, whose columns are those of the left one unless it overrides `columns`."""

    left: Node
    right: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns


@dataclass(frozen=True)
class Windowed(Unary):
    """A window over a stream expression: stream in, relation out."""

    window: Window


@dataclass(frozen=True)
class Framed(Unary):
    """Frames over a stream expression: the items of each; the operators above are applied to one frame at a time."""

    frame: Frame


@dataclass(frozen=True)
class Filled(Binary):
    """Frames on the left, which may be filled already, filled with the rows of a stream on the right.

    A row belongs to a frame with whose group it agrees in every `on` pair of columns, and in whose time it lies: from
    `lower` ticks after its start to `upper` after its end, when `offset` ticks are added to its own time.
    """

    on: tuple[tuple[str, str], ...] = ()
    lower: int = 0
    upper: int = 0
    offset: int = 0

    @cached_property
    def framed_node(self) -> Framed:
        return self.fillings[0]._frames

    @property
    def fillings(self) -> tuple[Filled, ...]:
        """This filling after those before it."""
        return (*self.left.fillings, self) if isinstance(self.left, Filled) else (self,)

    @property
    def _frames(self) -> Framed:
        assert isinstance(self.left, Framed)
        return self.left

    @property
    def groups(self) -> tuple[Column, ...]:
        """The columns of the group that a frame belongs to."""
        found = {c.name: c for c in self.framed_node.columns}
        return tuple(found[name] for name in self.framed_node.frame.partition_by)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.groups + tuple(c for filling in self.fillings for c in filling.right.columns)

    def fillings_of(self, names: Iterable[str]) -> tuple[Filled, ...]:
        """The fillings from which some columns come."""
        wanted = set(names)
        return tuple(f for f in self.fillings if wanted & {c.name for c in f.right.columns})


@dataclass(frozen=True)
class Select(Unary):
    """Rows for which a predicate is true; NULL is not true."""

    predicate: Scalar


@dataclass(frozen=True)
class Project(Unary):
    """Computed columns, duplicates kept."""

    items: tuple[tuple[str, Scalar], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(name, scalar.type) for name, scalar in self.items)


@dataclass(frozen=True)
class Union(Binary):
    """Multiset union: multiplicities add up."""


@dataclass(frozen=True)
class Except(Binary):
    """Multiset difference: multiplicities are subtracted, never below zero."""


@dataclass(frozen=True)
class Distinct(Unary):
    """Each different row once: its most recent appearance."""


@dataclass(frozen=True)
class Call:
    """One aggregate of a grouping: which function over which columns, under which name."""

    name: str
    aggregate: Aggregate[Any] = field(repr=False)
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Group(Unary):
    """Grouped aggregation; without keys all rows are one group. A group without rows is no group."""

    keys: tuple[str, ...]
    calls: tuple[Call, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        types = {c.name: c.type for c in self.child.columns}
        keys = tuple(Column(key, types[key]) for key in self.keys)
        return keys + tuple(Column(call.name, call.aggregate.result) for call in self.calls)


def inputs_of(group: Group, call: Call) -> tuple[str, ...]:
    """The columns below a grouping that one of its aggregates reads."""
    scalars = dict(group.child.items) if isinstance(group.child, Project) else {}
    found = (scalars[a].inputs if a in scalars else (a,) for a in call.arguments)
    return tuple(name for names in found for name in names)


@dataclass(frozen=True)
class Join(Binary):
    """Pairs that agree on every `on` pair of columns and satisfy the residual; NULL is equal to nothing."""

    on: tuple[tuple[str, str], ...] = ()
    residual: Scalar | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns


class Emit(Enum):
    """What of a changing relation is reported."""

    RSTREAM = "RSTREAM"  # all of it, at each instant
    ISTREAM = "ISTREAM"  # what came in since the instant before
    DSTREAM = "DSTREAM"  # what went out
    CHANGES = "CHANGES"  # both, signed


@dataclass(frozen=True)
class Query:
    """A continuous query: the relation, what of it is emitted, and how empty windows and late items are treated."""

    root: Node
    emit: Emit
    domain: Domain
    empty: bool = False
    revise: int | None = None
    #: Whether its state may grow for ever.
    unbounded: bool = False
    #: Its place in a text, which is no part of its meaning.
    place: Place | None = field(default=None, compare=False, repr=False)

    @cached_property
    def windows(self) -> tuple[Windowed, ...]:
        """The windows this query reports by; those inside derived streams are not among them."""
        return tuple(node for node in self.root.walk() if isinstance(node, Windowed))

    @cached_property
    def framed_node(self) -> Framed | None:
        """The frames this query reports, if it does."""
        return next((node for node in self.root.walk() if isinstance(node, Framed)), None)

    @cached_property
    def periodic(self) -> bool:
        """Whether some window has instants of its own, at which the query then reports."""
        return any(w.window.periodic for w in self.windows)
