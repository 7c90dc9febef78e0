"""A query in words: its operators with their update patterns, its windows, its aggregates and their stores."""

from __future__ import annotations

from collections.abc import Iterator

from panewise.algebra import (
    Call,
    Derived,
    Distinct,
    Emit,
    Except,
    Filled,
    Framed,
    Group,
    Join,
    Node,
    Project,
    Query,
    Select,
    Source,
    Union,
    Windowed,
    pattern,
)
from panewise.core.time import Domain, duration_text
from panewise.plan.explain.frames import frame_facts
from panewise.plan.plan import QueryPlan
from panewise.plan.refusal import Refusal
from panewise.plan.rules.choose_store import store_of
from panewise.window import Pattern, WindowRetention

_EMITS = {
    Emit.RSTREAM: "the whole result",
    Emit.ISTREAM: "what came in",
    Emit.DSTREAM: "what went out",
    Emit.CHANGES: "signed changes",
}
_SET: dict[type[Node], str] = {Union: "union all", Except: "except all", Distinct: "distinct"}


def explain(name: str, query: Query, plan: QueryPlan | Refusal) -> str:
    """Everything that was decided about a query, one fact a line."""
    lines = [f"{name}: {_report_text(query)}; {pattern(query.root).title}"]
    lines += _tree(query.root, query, plan, 1)
    if query.revise is not None:
        lines.append(f"  late items revise results for {duration_text(query.revise, query.domain)}")
    if query.empty:
        lines.append("  empty windows are reported")
    return "\n".join(lines)


def _report_text(query: Query) -> str:
    if query.framed_node:
        return "each frame once it is known" + (", and on the way" if query.framed_node.frame.fragments else "")
    return f"{_EMITS[query.emit]} {'at each instant' if query.periodic else 'whenever it changes'}"


def _tree(node: Node, query: Query, plan: QueryPlan | Refusal, depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}{node_text(node, query.domain)}  ({pattern(node).title})"
    if isinstance(node, Group):
        for call in node.calls:
            choice = store_of(call, plan)
            yield f"{'  ' * (depth + 1)}- {call_text(call)} in {choice.name}: {choice.reason}"
    if isinstance(node, Framed):
        yield from (f"{'  ' * (depth + 1)}- {fact}" for fact in frame_facts(node.frame, query.domain))
    for child in node.children:
        yield from _tree(child, query, plan, depth + 1)
    if isinstance(node, Derived):
        yield from _tree(node.query.root, node.query, plan, depth + 1)


def negative_tuple_reasons(root: Node) -> list[tuple[Node, str]]:
    """The operators that need negative tuples, because the ends of their rows are not known beforehand, and why."""
    return [(node, reason) for node in root.walk() if (reason := _negative_tuple_reason(node))]


def _negative_tuple_reason(node: Node) -> str | None:
    if pattern(node) is Pattern.MONOTONIC:
        return None
    match node:
        case Windowed(window=window) if window.retention is WindowRetention.COUNTS_ROWS:
            return "tuples are counted, nobody knows when enough will have come"
        case Distinct():
            return "a row stays until the last of its equals has left"
        case Group():
            return "a group changes with every row"
        case Except():
            return "the other side decides"
        case Join() if any(_negative_tuple_reason(child) for child in node.children):
            return "a pair ends with its first part, and the end of one is reported"
    return None


def call_text(call: Call) -> str:
    """An aggregate as a person writes it."""
    return call.aggregate.text([a.removeprefix("arg#").replace("`", "") for a in call.arguments])


def _condition(node: Select) -> str:
    """The predicate with aggregates instead of the columns that hold them."""
    shown = node.predicate.sql
    if isinstance(node.child, Group):
        for call in node.child.calls:
            shown = shown.replace(f"`{call.name}`", call_text(call))
    return shown.replace("`", "")


def node_text(node: Node, domain: Domain) -> str:
    """An operator in words."""
    match node:
        case Source(stream=stream, alias=alias):
            return f"stream {stream}" + (f" as {alias}" if alias != stream else "")
        case Derived(query=query):
            return f"stream of {_EMITS[query.emit]}"
        case Windowed(window=window):
            kind = "logical" if window.logical else "physical"
            return f"window [{window.text(domain)}], {kind}"
        case Filled(right=Source(stream=stream), on=on):
            agreed = " and ".join(f"{a} = {b}" for a, b in on)
            return f"frames filled with {stream}" + (f" where {agreed}" if on else "")
        case Framed(frame=frame):
            return f"frames [{frame.text(domain)}]"
        case Select():
            return f"select {_condition(node)}"
        case Project(items=items):
            shown = ", ".join(name for name, _ in items if not name.startswith(("arg#", "key#")))
            return f"project {shown}" if shown else "project"
        case Group(keys=keys, child=Project(items=items)):
            computed = {name: scalar.sql.replace("`", "") for name, scalar in items}
            return f"group by {', '.join(computed[key] for key in keys)}" if keys else "aggregate"
        case Group(keys=keys):
            return f"group by {', '.join(keys)}" if keys else "aggregate"
        case Join(on=on):
            return "join on " + " and ".join(f"{a} = {b}" for a, b in on) if on else "cross join"
        case Union() | Except() | Distinct():
            return _SET[type(node)]
    raise TypeError(f"no words for {type(node).__name__}")
