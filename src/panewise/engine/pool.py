"""`pw.Pool`: registered queries over declared streams; queries may be registered and revoked at any moment."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from panewise.algebra import Host, Query, default_host
from panewise.algebra.hints import hints
from panewise.core.errors import BindProblem, PanewiseError, PanewiseWarning, SchemaProblem, StateProblem, did_you_mean
from panewise.core.schema import StreamSchema
from panewise.core.time import Boundary
from panewise.cql.templates import TemplateBinder
from panewise.engine.frames.query import find_frame_refusal
from panewise.engine.purge import Purge
from panewise.plan import (
    FamilyPlan,
    FramePlan,
    PanePlan,
    QueryPlan,
    Refusal,
    RowPlan,
    WindowPlan,
    explain_pool,
    picture,
    plan_families,
    plan_query,
)
from panewise.plan.rules import group_windows
from panewise.plan.rules.bound_state import unbounded_keys_reason, unbounded_state_reason
from panewise.plan.rules.catalogue import rules_named
from panewise.plan.rules.group_windows import GroupingPolicy, WindowGroup, WindowManager
from panewise.plan.rules.rule import RulesOff
from panewise.plan.rules.share_operators import SharedOperators, shared_operators
from panewise.window import WindowRetention


@dataclass(frozen=True)
class RegisteredQuery:
    """A registered query: its text, its query tree, and its plan."""

    name: str
    text: str
    plan: QueryPlan
    #: Items up to this tick do not count; None for a query that sees the panes that are kept already.
    since: int | None = None

    @property
    def aggregation(self) -> PanePlan:
        """The plan of a query that is answered from panes."""
        if not isinstance(self.plan, PanePlan):
            raise BindProblem(f"query {self.name!r} is no grouped aggregate over one window", fix="run it embedded")
        return self.plan

    @property
    def streams(self) -> frozenset[str]:
        """The declared streams it reads."""
        return frozenset(self.plan.query.root.streams)


class PoolListener(Protocol):
    """An object that runs a pool; the pool calls it when queries are registered or revoked."""

    def on_register(self, query: RegisteredQuery) -> None: ...

    def on_revoke(self, query: RegisteredQuery) -> None: ...

    def managers(self, family: object) -> dict[int, WindowManager] | None: ...

    def shared_operators(self) -> list[tuple[Mapping[str, RowPlan], SharedOperators]]: ...


class Pool:
    """Streams and the queries over them.

    `boundary` is `"(]"` as in the papers or `"[)"` as in Spark. `policy` says how windows are grouped: by cost, or
    exactly as the paper's Algorithm 1 does. If streams are `bounded`, so is the state of queries over them.
    `purge` says when joins and groups drop rows that have expired: `"lazy"`, many together, or `"eager"`, at once.
    `rules_off` names rules of the planner that are switched off, to see what they are good for: results stay the same.
    """

    def __init__(
        self,
        streams: Mapping[str, StreamSchema],
        boundary: str | Boundary = "(]",
        policy: str | GroupingPolicy = GroupingPolicy.COST,
        host: Host | None = None,
        bounded: bool = False,
        purge: str | Purge = Purge.LAZY,
        rules_off: Collection[str] = (),
    ) -> None:
        if not isinstance(streams, Mapping) or not all(isinstance(s, StreamSchema) for s in streams.values()):
            raise SchemaProblem("streams are not declared", fix='pass {"S": pw.StreamSchema(schema, time="t")}')
        self.streams = dict(streams)
        self.boundary = Boundary.of(boundary)
        self.rules_off = rules_named(rules_off)
        self.policy = _enum_value(GroupingPolicy, "policy", policy)
        if group_windows.RULE in self.rules_off:
            self.policy = GroupingPolicy.ALONE
        self.purge = _enum_value(Purge, "purge", purge)
        self.host = host or default_host()
        self.bounded = bounded
        self.queries: dict[str, RegisteredQuery] = {}
        self.listeners: list[PoolListener] = []
        self._binder = TemplateBinder(self.streams)

    def register(self, name: str, query: str | Query, *, since: int | None = None) -> None:
        """Register a query; engines that run this pool answer it from now on.

        It sees the panes that are kept already. With `since`, items up to that tick do not count for it, and its
        windows are half-filled at first.
        """
        registered = self.prepare_query(name, query, since)
        for hint in hints(registered.plan.query) if isinstance(query, str) else ():
            warnings.warn(f"query {name!r}: {hint}", PanewiseWarning, stacklevel=2)
        self.add_query(registered)

    def prepare_query(self, name: str, query: str | Query | QueryPlan, since: int | None = None) -> RegisteredQuery:
        """A query as this pool would register it; refuses what the engine cannot answer."""
        plan = self.plan(query) if isinstance(query, str | Query) else query
        self._refuse_growth(plan)
        if since is not None and isinstance(plan, RowPlan | FramePlan):
            raise BindProblem("a query over rows always starts with what comes", fix="leave START NOW out")
        if since is not None and isinstance(plan, PanePlan) and plan.window.retention is WindowRetention.COUNTS_ROWS:
            raise BindProblem("a window of rows cannot start now: it counts rows", fix="let it see the rows kept")
        return RegisteredQuery(name, query if isinstance(query, str) else "", plan, since)

    def add_query(self, registered: RegisteredQuery) -> None:
        """Register a query that `prepare_query` of this pool, or of one with the same streams, has returned."""
        if registered.name in self.queries:
            raise BindProblem(f"the name {registered.name!r} is taken", fix="revoke it first, or choose another one")
        for listener in self.listeners:
            listener.on_register(registered)
        self.queries[registered.name] = registered

    def revoke(self, name: str) -> None:
        """Remove a query."""
        registered = self.queries.get(name)
        if registered is None:
            raise BindProblem(f"there is no query {name!r}", fix=did_you_mean(name, self.queries or ["register"]))
        for listener in self.listeners:
            listener.on_revoke(registered)
        del self.queries[name]

    def families(self) -> list[FamilyPlan]:
        """Queries by the panes they share; if an engine runs them, with the window groups of the engine."""
        plans = {name: s.plan for name, s in self.queries.items() if isinstance(s.plan, PanePlan)}
        return plan_families(
            plans, self.policy, lambda family: next((x.managers(family) for x in self.listeners), None)
        )

    def explain(self) -> str:
        """Families, window groups, seeds, enclosing and piggybacked windows, stairs, stores, bounds, with reasons."""
        relations = {name: s.plan for name, s in self.queries.items() if isinstance(s.plan, RowPlan)}
        alone = [(relations, shared) for shared in shared_operators(relations)]
        framings = {name: s.plan for name, s in self.queries.items() if isinstance(s.plan, FramePlan)}
        shared = next((x.shared_operators() for x in self.listeners), alone)
        return explain_pool(self.families(), relations, shared, framings)

    def windows(self) -> list[WindowPlan]:
        """Every window of every query, with its window group and role."""
        return [window for family in self.families() for window in family.windows()]

    def groups(self) -> list[WindowGroup]:
        """Every window group."""
        every = (m for family in self.families() for m in family.managers.values())
        return [group for manager in every for group in manager.groups]

    def pictures(self) -> list[str]:
        """The plane of ranges and slides as SVG, one for each set of windows that may slide together."""
        return [
            picture(manager, f"family {family.number}", family.plan.query.domain)
            for family in self.families()
            for manager in family.managers.values()
        ]

    def without_queries(self, streams: Mapping[str, StreamSchema] | None = None) -> Pool:
        """A pool with the same settings and no queries, over the same streams or others."""
        off = [rule.name for rule in self.rules_off]
        return Pool(streams or self.streams, self.boundary, self.policy, self.host, self.bounded, self.purge, off)

    def declaration(self) -> dict[str, Any]:
        """Streams and queries as plain values."""
        for registered in self.queries.values():
            if not registered.text:
                raise StateProblem(f"query {registered.name!r} has no text", fix="register it as CQL text")
        streams = {name: [s.schema.serialize().to_pybytes().hex(), s.time, s.delay] for name, s in self.streams.items()}
        queries = [[registered.name, registered.text, registered.since] for registered in self.queries.values()]
        return {
            "streams": streams,
            "boundary": self.boundary.value,
            "policy": self.policy.value,
            "purge": self.purge.value,
            "bounded": self.bounded,
            "rules_off": sorted(rule.name for rule in self.rules_off),
            "queries": queries,
        }

    @classmethod
    def from_declaration(cls, plan: dict[str, Any], host: Host | None = None) -> Pool:
        """The pool that `declaration` described."""
        streams = {
            name: StreamSchema(pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(schema))), time, delay)
            for name, (schema, time, delay) in plan["streams"].items()
        }
        pool = cls(streams, plan["boundary"], plan["policy"], host, plan["bounded"], plan["purge"], plan["rules_off"])
        for name, text, since in plan["queries"]:
            pool.add_query(pool.prepare_query(name, text, since))
        return pool

    def plan(self, query: str | Query) -> QueryPlan:
        """How the engine answers a query, for a lookup or as a registered query."""
        bound = self._binder.query(query) if isinstance(query, str) else query
        plan = plan_for_engine(bound, self.rules_off)
        if isinstance(plan, Refusal):
            raise BindProblem(
                f"the engine does not answer this query: {plan.reason}", fix="use pw.run", place=bound.place
            )
        if isinstance(plan, FramePlan) and plan.frame.known_at_end and not self.bounded:
            raise BindProblem(
                "which frame is the longest of all is not known before the stream ends",
                fix="use MAXIMAL, or run it over bounded data",
                place=bound.place,
            )
        return plan

    def _refuse_growth(self, plan: QueryPlan) -> None:
        """Refuse a query whose state would grow without bound, unless the query allows it."""
        query = plan.query
        reason = unbounded_keys_reason(query) or (unbounded_state_reason(query) if isinstance(plan, RowPlan) else None)
        if reason and not (self.bounded or query.unbounded):
            raise BindProblem(
                f"what this query must remember grows for ever: {reason}",
                fix="use another window, or ALLOW UNBOUNDED",
                place=query.place,
            )


def plan_for_engine(query: Query, rules_off: RulesOff = frozenset()) -> QueryPlan | Refusal:
    """The plan of a query; a refusal also where nothing in the engine finds its frames."""
    plan = plan_query(query, rules_off)
    return (find_frame_refusal(plan) or plan) if isinstance(plan, FramePlan) else plan


E = TypeVar("E", bound=Enum)


def _enum_value(kind: type[E], name: str, value: object) -> E:
    try:
        return kind(value)
    except ValueError:
        known = " or ".join(repr(each.value) for each in kind)
        raise PanewiseError(f"{name} {value!r} is unknown", fix=f"use {known}") from None
