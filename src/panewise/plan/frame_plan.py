"""The shape of query that reports frames: what makes them, what fills them, and what is asked of that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from panewise.algebra import Filled, Framed, Group, Project, Query, Select, Source
from panewise.algebra.tree import inputs_of
from panewise.frame.frame import Frame
from panewise.plan.pane_plan import RowStep, split_row_steps
from panewise.plan.refusal import Refusal
from panewise.plan.row_plan import ShardKey, columns_read


@dataclass(frozen=True, eq=False)
class FrameAggregation:
    """What is asked of the rows of frames, or of one filling: they pass steps, and are aggregated in groups.

    Without a group they are listed.
    """

    between: tuple[RowStep, ...]
    group: Group | None

    @property
    def input_columns(self) -> list[str]:
        """The columns that the steps look at, up to the first projection."""
        found: list[str] = []
        for step in self.between:
            match step:
                case Select(predicate=predicate):
                    found += predicate.inputs
                case Project(items=items):
                    return found + [name for _, scalar in items for name in scalar.inputs]
        return found


@dataclass(frozen=True, eq=False)
class FillPlan:
    """One stream that fills frames, and what is asked of its rows."""

    node: Filled
    source: Source
    asked: FrameAggregation

    def shard_column(self, group: str) -> str | None:
        """The column that agrees with one of the frame's group."""
        found = (right.removeprefix(f"{self.source.alias}.") for left, right in self.node.on if left == group)
        return next(found, None)

    @property
    def read_columns(self) -> tuple[str, ...]:
        names = {column.name for column in self.source.columns}
        wanted = [*self.asked.input_columns, *(right for _, right in self.node.on)]
        return tuple(columns_read(self.source, (), [name for name in wanted if name in names]))


@dataclass(frozen=True, eq=False)
class FramePlan:
    """A query taken apart: rows pass `before` and become frames; what is asked of these, or of their fillings; and the
    steps that answers pass `after` that.
    """

    query: Query
    source: Source
    before: tuple[RowStep, ...]
    framed: Framed
    fillings: tuple[FillPlan, ...]
    asked: FrameAggregation
    after: tuple[RowStep, ...]

    @property
    def frame(self) -> Frame:
        return self.framed.frame

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(self.query.root.streams)

    @cached_property
    def routes(self) -> dict[Source, str | None]:
        """The column by which rows are spread over shards: one that all rows of a group and its fillings agree in."""
        for name, own in self._plain_partition().items():
            others = {filling.source: filling.shard_column(name) for filling in self.fillings}
            if None not in others.values():
                return {self.source: own, **others}
        return dict.fromkeys([self.source, *(filling.source for filling in self.fillings)])

    def _plain_partition(self) -> dict[str, str]:
        """Those partition columns that are columns of the stream itself, by the names they have above."""
        names = {name: name for name in self.frame.partition_by}
        for step in reversed(self.before):
            if isinstance(step, Project):
                found = {name: scalar.column for name, scalar in step.items}
                names = {name: str(found[old]) for name, old in names.items() if found.get(old)}
        return {name: old.removeprefix(f"{self.source.alias}.") for name, old in names.items()}

    @property
    def shard_key(self) -> ShardKey:
        """The shard key: queries with equal keys get the same rows."""
        return frozenset((s.stream, s.alias, column) for s, column in self.routes.items())

    @cached_property
    def read_columns(self) -> dict[Source, tuple[str, ...]]:
        """The columns of each stream that the query looks at."""
        own = [name for scalar in self.frame.scalars for name in scalar.inputs]
        own += self.frame.partition_by
        own += () if self.fillings else self.asked.input_columns
        fillings = {filling.source: filling.read_columns for filling in self.fillings}
        return {self.source: tuple(columns_read(self.source, self.before, own)), **fillings}


def plan_frames(query: Query) -> FramePlan | Refusal:
    """The query taken apart, or the reason why the engine cannot report its frames."""
    after, node = split_row_steps(query.root)
    group = node if isinstance(node, Group) else None
    between, below = split_row_steps(group.child) if group else (after, node)
    filled = below if isinstance(below, Filled) else None
    framed = filled.framed_node if filled else below
    assert isinstance(framed, Framed)
    before, source = split_row_steps(framed.child)
    if not isinstance(source, Source):
        return Refusal(f"a {type(source).__name__.lower()} stands below the frames")
    asked = FrameAggregation(between, group)
    fillings = tuple(_plan_filling(filled, each, asked) for each in filled.fillings) if filled else ()
    plan = FramePlan(query, source, before, framed, fillings, asked, after if group else ())
    if plan.frame.keeps_items and plan.frame.fragments:
        return Refusal("frames that keep their items are reported at their end")
    return plan


def _plan_filling(whole: Filled, node: Filled, asked: FrameAggregation) -> FillPlan:
    """One of the fillings, with what is asked of its rows alone."""
    assert isinstance(node.right, Source)
    if asked.group is None or len(whole.fillings) == 1:
        return FillPlan(node, node.right, asked)
    own = {column.name for column in (*whole.groups, *node.right.columns)}
    calls = tuple(call for call in asked.group.calls if set(inputs_of(asked.group, call)) <= own)
    steps: list[RowStep] = []
    for step in asked.between:
        match step:
            case Select(predicate=predicate) if set(predicate.inputs) <= own:
                steps.append(step)
            case Project(items=items):
                mine = tuple((name, scalar) for name, scalar in items if set(scalar.inputs) <= own)
                steps.append(replace(step, items=mine))
    return FillPlan(node, node.right, FrameAggregation(tuple(steps), replace(asked.group, calls=calls)))
