"""Answers on demand: the state of a query, or of any window over the same groups, at any instant that is kept.

"Resource sharing": an operator answers lookups instead of streaming its results. A lookup sees everything that has
arrived, also rows that were late for a registered query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.core.errors import BindProblem, SchemaProblem, StateProblem, TimeProblem, did_you_mean
from panewise.core.time import MAX_TICK, MIN_TICK, Domain, Instant, Ticks
from panewise.engine.lookups.archive import Archive
from panewise.engine.lookups.pane_source import GroupAnswers, KeyValues, LookupSource, PaneLookupSource
from panewise.engine.lookups.tier_source import TierLookupSource
from panewise.engine.panes.grouping import GroupEncoder
from panewise.engine.pool import Pool
from panewise.plan import PanePlan
from panewise.stores.chain import MIN_POSITION
from panewise.stores.pane import Pane
from panewise.window import WindowRetention

#: An instant as users write it.
InstantLike = int | str | datetime
InstantsLike = InstantLike | Sequence[InstantLike] | Ticks
#: The most windows in one lookup.
MAX_WINDOWS = 1 << 22
#: How many texts of lookups are cached.
CACHED_TEXTS = 256


class PoolLookups(ABC):
    """Answers lookups over the queries of a pool from kept panes."""

    #: What users can do where no kept panes answer a query.
    fix: str

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        # The same text often comes again, and parsing it takes longer than answering it.
        self._read = lru_cache(CACHED_TEXTS)(pool.plan)

    def lookup(
        self,
        query: str,
        at: InstantsLike | None = None,
        keys: KeyValues | None = None,
        between: tuple[InstantsLike, InstantsLike] | None = None,
    ) -> pa.Table:
        """The state of a query: a registered one by its name, or any other by its text, from the panes kept for those.

        `at` is an instant or several; without one the newest that is final. `keys` names groups, by default all.
        `between` asks for stretches `(start, end]` instead of the query's own window: of time, or of row numbers where
        the window counts rows.
        """
        name, plan = self.resolve_query(query)
        return pa.concat_tables(
            found.finish(self.pool.host) for found in self.group_answers(name, plan, at, keys, between)
        )

    def group_answers(
        self,
        name: str | None,
        plan: PanePlan,
        at: InstantsLike | None = None,
        keys: KeyValues | None = None,
        between: tuple[InstantsLike, InstantsLike] | None = None,
    ) -> list[GroupAnswers]:
        """All that a lookup needs of the kept panes; the rest of its work does not depend on them any more."""
        if at is not None and between is not None:
            raise BindProblem("at and between are both given", fix="give one of them")
        domain = plan.query.domain
        if between is not None:
            starts, ends = _parse_between(between, domain if plan.window.logical else None)
            refuse_too_many("windows", len(starts))
            if (starts > ends).any():
                raise BindProblem("a stretch ends before it begins", fix="give the earlier end of it first")
            return self._first_answer(name, plan, lambda source: source.answer_between(plan, starts, ends, keys))
        instants = self.final_instant(name, plan) if at is None else parse_instants(at, domain)
        refuse_too_many("windows", len(instants) * len(plan.levels))
        return self._first_answer(name, plan, lambda source: source.answer_at(plan, instants, keys))

    def lookup_sources(self, name: str | None, plan: PanePlan) -> list[LookupSource]:
        """The sources that may answer a query, the best one first; refuses a query for which no panes are kept."""
        candidates = list(self._candidates(name, plan))
        found = [source for _, sources in candidates for source in sources]
        reasons = [reason for reason, _ in candidates if reason is not None]
        if not found and reasons:
            raise BindProblem(f"no panes that are kept can answer this ({'; '.join(reasons)})", fix=self.fix)
        return found

    @abstractmethod
    def _candidates(self, name: str | None, plan: PanePlan) -> Iterator[tuple[str | None, list[LookupSource]]]:
        """For each registered query whose panes may answer: why they cannot, or the sources over them."""

    def _pane_source(
        self,
        kept: PanePlan,
        groups: GroupEncoder,
        archive: Archive,
        pending: Sequence[Pane] = (),
        since: int = MIN_POSITION,
    ) -> LookupSource:
        """The source over an archive, of the kind that its plan needs."""
        source = TierLookupSource if kept.positional else PaneLookupSource
        instants = self.pool.streams[kept.source.stream].instants
        return source(groups, self.pool.boundary, instants, archive, pending, since)

    @abstractmethod
    def final_instant(self, name: str | None, plan: PanePlan) -> Ticks:
        """The newest final instant as an array, empty if there is none."""

    def resolve_query(self, query: str) -> tuple[str | None, PanePlan]:
        """The name of a registered query, if it is one, and how it is answered."""
        registered = self.pool.queries.get(query)
        name = query if registered is not None else None
        if registered is None and (not isinstance(query, str) or len(query.split()) < 2):
            fix = did_you_mean(str(query), self.pool.queries or ["SELECT ..."])
            raise BindProblem(f"there is no query {query!r}", fix=fix)
        plan = self._read(query) if registered is None else registered.plan
        if not isinstance(plan, PanePlan):
            raise BindProblem(
                "a lookup is answered from panes, and this query is answered from rows",
                fix="look up grouped aggregates over one window",
            )
        return name, plan

    def _first_answer(
        self, name: str | None, plan: PanePlan, answer: Callable[[LookupSource], list[GroupAnswers]]
    ) -> list[GroupAnswers]:
        """The answer of the first source that has all that is needed."""
        self._refuse_own_instants(plan)
        problem: StateProblem | None = None
        for source in self.lookup_sources(name, plan):
            try:
                return answer(source)
            except StateProblem as found:
                problem = problem or found
        raise problem or StateProblem("no panes are kept yet", fix="feed rows first")

    def _refuse_own_instants(self, plan: PanePlan) -> None:
        if plan.window.retention is WindowRetention.FOLLOWS_SESSIONS:
            raise BindProblem("sessions end when their items say so, not when somebody asks", fix="use RANGE or ROWS")
        if plan.window.items_wait or (plan.window.levels and not plan.window.logical):
            raise BindProblem(
                "a counted window with a SLIDE has instants of its own, and is not looked up at others",
                fix="ask for the last rows without a SLIDE",
            )


def refuse_too_many(what: str, count: int, most: int = MAX_WINDOWS) -> None:
    """Refuse a lookup that asks for more than so many things."""
    if count > most:
        raise SchemaProblem(f"{count:,} {what} are too many for one lookup", fix=f"ask for at most {most:,}")


def _parse_between(between: Any, domain: Domain | None) -> tuple[Ticks, Ticks]:
    """Where stretches begin and end, in time or, without a domain, in row numbers; one on a side holds for all."""
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise BindProblem(f"between={between!r} is no pair", fix="give (starts, ends)")
    starts, ends = (parse_row_numbers(side) if domain is None else parse_instants(side, domain) for side in between)
    if len(starts) != len(ends) and 1 not in (len(starts), len(ends)):
        raise BindProblem(f"{len(starts)} starts do not go with {len(ends)} ends", fix="give as many of each")
    both = np.broadcast_arrays(starts, ends)
    return both[0], both[1]


def parse_row_numbers(given: Any) -> Ticks:
    """Row numbers as users write them, one or many."""
    try:
        numbers = np.atleast_1d(np.asarray(given))
        numbers = numbers.astype(np.int64, casting="safe") if numbers.size else numbers.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.zeros((0, 0), np.int64)
    if numbers.ndim != 1:
        raise BindProblem(f"{given!r} is no row number", fix="count rows, such as (0, 100) for the first hundred")
    return numbers


def parse_instants(when: InstantsLike, domain: Domain) -> Ticks:
    """Instants as users write them, one or many."""
    if isinstance(when, np.ndarray):
        return _ticks_from_array(when, domain)
    several = when if isinstance(when, Sequence) and not isinstance(when, str) else [when]
    return np.array([parse_instant(each, domain) for each in several], np.int64)


def _ticks_from_array(array: Ticks, domain: Domain) -> Ticks:
    """An array of ticks, or of datetime64 where time is a timestamp."""
    dated = array.dtype.kind == "M" and domain is Domain.TIMESTAMP
    if array.ndim != 1 or (len(array) and array.dtype.kind != "i" and not dated):
        raise TimeProblem(
            f"an array of {array.ndim} dimensions of {array.dtype} holds no instants",
            fix="use one dimension of int64, or of datetime64 where time is a timestamp",
        )
    whole = array.astype("datetime64[us]") if dated else array
    ticks = whole.astype(np.int64)
    strange = (whole.astype(array.dtype) != array) | (ticks <= MIN_TICK) | (ticks >= MAX_TICK)
    if strange.any():
        raise TimeProblem(
            f"instant {array[strange][0]} is outside of time" + " or finer than a microsecond" * dated,
            fix=f"use whole ticks between {MIN_TICK} and {MAX_TICK}",
        )
    return ticks


def parse_instant(value: InstantLike, domain: Domain) -> int:
    """A point in time as users write it."""
    found = Instant.parse(value.isoformat() if isinstance(value, datetime) else value, domain)
    if found.of_day:
        raise BindProblem(f"instant {value!r} has no date", fix="write a date and a time")
    return found.tick
