"""The shape of query that reports frames: what makes them, what fills them, and what is asked of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from panewise.aggregate import Avg, Count, CountAll, Max, Min, Sum
from panewise.algebra import Filled, Framed, Group, Project, Query, Select, Source
from panewise.algebra.framing import Custom, Density, Frame, Reach
from panewise.plan.aggregation import Rowwise, rowwise
from panewise.plan.relation import Quarter, columns_read

#: Aggregates whose frames need no more than a few numbers.
FOLLOWED = (Sum, Count, CountAll, Min, Max, Avg)


@dataclass(frozen=True, eq=False)
class Framing:
    """A query taken apart: rows pass `before` and become frames; what fills these passes `between`, is grouped, and
    passes `after`. Without a group, the rows that fill frames are listed.
    """

    query: Query
    source: Source
    before: tuple[Rowwise, ...]
    framed: Framed
    filled: Filled | None
    between: tuple[Rowwise, ...]
    group: Group | None
    after: tuple[Rowwise, ...]

    @property
    def frame(self) -> Frame:
        return self.framed.frame

    @property
    def filler(self) -> Source | None:
        """The stream that fills frames, where that is not their own."""
        if self.filled is None:
            return None
        assert isinstance(self.filled.right, Source)
        return self.filled.right

    @property
    def collects(self) -> bool:
        """Whether frames must keep their items until they end, since items may be in several, or come to be in one."""
        kind = self.frame.kind
        unfollowed = isinstance(kind, Reach) and not isinstance(kind.aggregate, FOLLOWED)
        return self.frame.overlapping or unfollowed or isinstance(kind, Density | Custom)

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(self.query.root.streams)

    @cached_property
    def routes(self) -> dict[Source, str | None]:
        """The column by which rows are spread over shards: one that all rows of a group and its filling agree in."""
        own = self._plain_partition()
        if self.filler is None or self.filled is None:
            return {self.source: next(iter(own.values()), None)}
        shared = [(own[left], right) for left, right in self.filled.on if left in own]
        one, other = shared[0] if shared else (None, None)
        return {self.source: one, self.filler: other and other.removeprefix(f"{self.filler.alias}.")}

    def _plain_partition(self) -> dict[str, str]:
        """Those partition columns that are columns of the stream itself, by the names they have above."""
        names = {name: name for name in self.frame.partition_by}
        for step in reversed(self.before):
            if isinstance(step, Project):
                found = {name: scalar.column for name, scalar in step.items}
                names = {name: str(found[old]) for name, old in names.items() if found.get(old)}
        return {name: old.removeprefix(f"{self.source.alias}.") for name, old in names.items()}

    @property
    def home(self) -> Quarter:
        """Queries with the same home hear the same rows."""
        return frozenset((s.stream, s.alias, column) for s, column in self.routes.items())

    @cached_property
    def read(self) -> dict[Source, tuple[str, ...]]:
        """The columns of each stream that the query looks at."""
        above = _looked_at(self.between)
        own = [name for scalar in self.frame.scalars for name in scalar.inputs]
        own += self.frame.partition_by
        if self.filler is None or self.filled is None:
            return {self.source: tuple(columns_read(self.source, self.before, [*own, *above]))}
        names = {column.name for column in self.filler.columns}
        wanted = [name for name in [*above, *(right for _, right in self.filled.on)] if name in names]
        return {
            self.source: tuple(columns_read(self.source, self.before, own)),
            self.filler: tuple(columns_read(self.filler, (), wanted)),
        }


def _looked_at(steps: Sequence[Rowwise]) -> list[str]:
    """The columns that steps look at, up to the first projection."""
    found: list[str] = []
    for step in steps:
        match step:
            case Select(predicate=predicate):
                found += predicate.inputs
            case Project(items=items):
                return found + [name for _, scalar in items for name in scalar.inputs]
    return found


def framing(query: Query) -> Framing | str:
    """The query taken apart, or the reason why the engine cannot report its frames."""
    after, node = rowwise(query.root)
    group = node if isinstance(node, Group) else None
    between, below = rowwise(group.child) if group else (after, node)
    filled = below if isinstance(below, Filled) else None
    framed = filled.framed if filled else below
    assert isinstance(framed, Framed)
    before, source = rowwise(framed.child)
    if not isinstance(source, Source):
        return f"a {type(source).__name__.lower()} stands below the frames"
    plan = Framing(query, source, before, framed, filled, between, group, after if group else ())
    if plan.collects and plan.frame.fragments:
        return "frames that are followed item by item are reported at their end"
    return plan
