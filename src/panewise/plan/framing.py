"""The shape of query that reports frames: grouped aggregates over the items of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from panewise.aggregate import Avg, Count, CountAll, Max, Min, Sum
from panewise.algebra import Framed, Group, Project, Query, Select, Source
from panewise.algebra.framing import Custom, Density, Frame, Reach
from panewise.plan.aggregation import Rowwise, rowwise
from panewise.plan.relation import Quarter, columns_read


@dataclass(frozen=True, eq=False)
class Framing:
    """A query taken apart: rows pass `before`, become frames, pass `between`, are grouped, and pass `after`."""

    query: Query
    source: Source
    before: tuple[Rowwise, ...]
    framed: Framed
    between: tuple[Rowwise, ...]
    group: Group
    after: tuple[Rowwise, ...]

    @property
    def frame(self) -> Frame:
        return self.framed.frame

    @property
    def collects(self) -> bool:
        """Whether frames must keep their items until they end, since items may be in several, or come to be in one."""
        kind = self.frame.kind
        unfollowed = isinstance(kind, Reach) and not isinstance(kind.aggregate, FOLLOWED)
        return self.frame.overlapping or unfollowed or isinstance(kind, Density | Custom)

    @property
    def streams(self) -> frozenset[str]:
        return frozenset([self.source.stream])

    @cached_property
    def routes(self) -> dict[Source, str | None]:
        """The column by which rows are spread over shards: one that all rows of a group agree in."""
        return {self.source: next(iter(self._plain_partition()), None)}

    def _plain_partition(self) -> list[str]:
        """Those partition columns that are columns of the stream itself."""
        names = {name: name for name in self.frame.partition_by}
        for step in reversed(self.before):
            if isinstance(step, Project):
                found = {name: scalar.column for name, scalar in step.items}
                names = {name: str(found[old]) for name, old in names.items() if found.get(old)}
        return [name.removeprefix(f"{self.source.alias}.") for name in names.values()]

    @property
    def home(self) -> Quarter:
        """Queries with the same home hear the same rows."""
        return frozenset((s.stream, s.alias, column) for s, column in self.routes.items())

    @cached_property
    def read(self) -> dict[Source, tuple[str, ...]]:
        """The columns of the stream that the query looks at."""
        looked_at = [name for scalar in self.frame.scalars for name in scalar.inputs]
        looked_at += self.frame.partition_by
        for step in self.between:
            match step:
                case Select(predicate=predicate):
                    looked_at += predicate.inputs
                case Project(items=items):
                    looked_at += [name for _, scalar in items for name in scalar.inputs]
                    break
        return {self.source: tuple(columns_read(self.source, self.before, looked_at))}


#: Aggregates whose frames need no more than a few numbers.
FOLLOWED = (Sum, Count, CountAll, Min, Max, Avg)


def framing(query: Query) -> Framing | str:
    """The query taken apart, or the reason why the engine cannot report its frames."""
    after, group = rowwise(query.root)
    assert isinstance(group, Group)
    between, framed = rowwise(group.child)
    assert isinstance(framed, Framed)
    before, source = rowwise(framed.child)
    if not isinstance(source, Source):
        return f"a {type(source).__name__.lower()} stands below the frames"
    return Framing(query, source, before, framed, between, group, after)
