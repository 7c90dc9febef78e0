"""A pool in words: its families, the groups of their windows, stairs, stores, and how much they can hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from panewise.algebra import Call, Join, Node
from panewise.core.time import Domain, duration_text
from panewise.plan.explain.frames import frame_facts
from panewise.plan.explain.query import call_text, negative_tuple_reasons, node_text
from panewise.plan.frame_plan import FramePlan
from panewise.plan.plan import QueryPlan
from panewise.plan.row_plan import RowPlan
from panewise.plan.rules.choose_store import store_of
from panewise.plan.rules.group_windows import GroupingPolicy, WindowGroup, WindowShape
from panewise.plan.rules.narrow_having import thresholds
from panewise.plan.rules.share_operators import SharedOperators, windows_below
from panewise.plan.rules.share_panes import FamilyPlan
from panewise.plan.rules.slice_early import slicing_refusal

_POLICIES = {
    GroupingPolicy.PAPER: "by paper",
    GroupingPolicy.COST: "by cost",
    GroupingPolicy.ALONE: "since each is kept alone",
}
#: More nodes than this in a group are counted, not listed.
MAX_LISTED = 12


def explain_pool(
    families: Sequence[FamilyPlan],
    relations: Mapping[str, RowPlan],
    shared_operators: Sequence[tuple[Mapping[str, RowPlan], SharedOperators]],
    framings: Mapping[str, FramePlan],
) -> str:
    """One fact a line: queries that share panes, then those answered from rows, then those that report frames."""
    lines = [line for family in families for line in _family_lines(family)]
    lines += [line for name, plan in relations.items() for line in _row_plan_lines(name, plan)]
    lines += [line for plans, shared in shared_operators for line in _shared_operator_lines(shared, plans)]
    return "\n".join(lines + [line for name, framing in framings.items() for line in _frame_plan_lines(name, framing)])


def _shared_operator_lines(shared: SharedOperators, plans: Mapping[str, RowPlan]) -> Iterator[str]:
    """Operators that differ in their windows only."""
    named: dict[Node, dict[str, None]] = {}
    for place in shared:
        named.setdefault(place.node(plans), {})[place.query] = None
    node, domain = next(iter(named)), plans[shared[0].query].query.domain
    what = (
        "each pair is found once"
        if isinstance(node, Join)
        else "each window passes the rows that leave it to the next wider one"
    )
    yield f"shared {node_text(node, domain)}: {_count_text(len(named), 'set')} of windows, {what}"
    for each, names in islice(named.items(), MAX_LISTED):
        shown = " with ".join(f"[{window.text(domain)}]" for window in windows_below(each))
        yield f"  {shown} of {', '.join(islice(names, MAX_LISTED))}" + (", ..." if len(names) > MAX_LISTED else "")
    if len(named) > MAX_LISTED:
        yield f"  and {len(named) - MAX_LISTED} more"


def _row_plan_lines(name: str, plan: RowPlan) -> Iterator[str]:
    yield f"{name}: answered from rows with lifetimes"
    for number, (node, reason) in enumerate(negative_tuple_reasons(plan.query.root)):
        lead = "  negative tuples, by number: " if not number else "    and "
        yield f"{lead}{node_text(node, plan.query.domain)}: {reason}"
    if plan.rewrites:
        yield f"  rewritten: {', '.join(plan.rewrites)}"
    yield _shard_text(plan)


def _frame_plan_lines(name: str, plan: FramePlan) -> Iterator[str]:
    domain = plan.query.domain
    group = plan.asked.group
    yield f"{name}: {node_text(plan.framed, domain)}, {node_text(group, domain) if group else 'rows listed'}"
    for call in group.calls if group else ():
        yield _store_line(call, plan)
    yield from (f"  {node_text(filling.node, domain)}" for filling in plan.fillings)
    if plan.frame.keeps_items:
        yield "  items are kept until the last frame that may hold them has ended"
    yield from (f"  {fact}" for fact in frame_facts(plan.frame, domain))
    yield _shard_text(plan)


def _shard_text(plan: RowPlan | FramePlan) -> str:
    spread = [f"{source.alias} by {column}" for source, column in plan.routes.items() if column is not None]
    return f"  on shards: {', '.join(spread) if spread else 'all rows meet in one'}"


def _family_lines(family: FamilyPlan) -> Iterator[str]:
    plan, domain = family.plan, family.plan.query.domain
    names = ", ".join(islice(family.members, MAX_LISTED)) + (", ..." if len(family.members) > MAX_LISTED else "")
    count = _count_text(len(family.members), "query", "queries")
    yield f"family {family.number}: {count} over {plan.source.stream}, {node_text(plan.group, domain)}: {names}"
    for call in plan.group.calls:
        yield _store_line(call, plan)
    if family.cuts is not None:
        yield f"  {family.cuts.text(domain)}, the widest that every edge of every window agrees with"
    for lag, manager in family.managers.items():
        behind = f", {duration_text(lag, domain)} behind" if lag else ""
        total = sum(group.cost for group in manager.groups)
        yield (
            f"  {_count_text(len(manager.shapes), 'window')} in {_count_text(len(manager.groups), 'group')} "
            f"{_POLICIES[manager.policy]}{behind}: "
            f"at most {total} panes for each group of keys, {_separate_cost(manager.shapes)} if each were alone"
        )
        for group in manager.groups:
            yield from _window_group_lines(group, domain)
    for limit in thresholds(plan):
        yield f"  lookups look for {limit.text} in a collective index first"
    yield f"  on shards: {_slicing_text(family)}"
    for placed in family.windows():
        if placed.group is None:
            why = ", in tiers of its own: they say where items lie" if plan.positional else ", kept apart"
            yield f"  window [{placed.window.text(domain)}] of {placed.query}{why}"


def _slicing_text(family: FamilyPlan) -> str:
    reason = slicing_refusal(family.members.values())
    return f"rows are sent as they are: {reason}" if reason else "rows are sliced into panes before they are sent"


def _store_line(call: Call, plan: QueryPlan) -> str:
    choice = store_of(call, plan)
    return f"  {call_text(call)} in {choice.name}: {choice.reason}"


def _separate_cost(frames: Sequence[WindowShape]) -> int:
    return sum(frame.range // frame.granule for frame in frames)


def _window_group_lines(group: WindowGroup, domain: Domain) -> Iterator[str]:
    slide = duration_text(group.base_slide, domain)
    yield f"    group {group.number}: {_count_text(len(group), 'window')}, base slide {slide}"
    for node in islice(group.nodes, MAX_LISTED):
        riders = "".join(
            f", carries {_shape_text(f, domain)} with q = {group.quotient(f)}" for f in node.piggybacked[:3]
        )
        more = f" and {len(node.piggybacked) - 3} more" if len(node.piggybacked) > 3 else ""
        yield f"      {group.role(node.frame).value} {_shape_text(node.frame, domain)}{riders}{more}"
    if len(group.nodes) > MAX_LISTED:
        yield f"      and {len(group.nodes) - MAX_LISTED} more nodes"
    below = 0
    for granule, reach in group.stairs:
        panes = _count_text(-(-(reach - below) // granule), "pane")
        through = ", through a buffer" if below else ""
        yield f"      stair to {duration_text(reach, domain)}: {panes} of {duration_text(granule, domain)}{through}"
        below = reach


def _count_text(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _shape_text(frame: WindowShape, domain: Domain) -> str:
    return f"<{duration_text(frame.range, domain)}, {duration_text(frame.slide, domain)}>"
