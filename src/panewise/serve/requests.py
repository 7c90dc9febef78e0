"""A lookup request and its answer, within the limits of the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.core.errors import BindProblem, SchemaProblem, StateProblem
from panewise.core.time import Domain, Duration, instant_text
from panewise.engine.lookups.lookups import parse_instants, refuse_too_many
from panewise.engine.lookups.pane_source import key_array
from panewise.engine.state.pane_log import PaneLogFormat
from panewise.plan import PanePlan
from panewise.runtime.log_readers import LogContents, LogReaders
from panewise.serve.limits import Limits, TooLarge
from panewise.serve.page_cache import PageCache
from panewise.serve.scheduler import RequestBudget

When = int | str


@dataclass(frozen=True)
class LookupRequest:
    """A query by its name or text, the requested instants, and the requested groups."""

    query: str
    #: The newest final instant if none is given.
    at: Sequence[When] | None = None
    #: How far back each window reaches, instead of the query's own.
    window: When | None = None
    #: Where each window begins; it ends at the instant.
    since: Sequence[When] | None = None
    #: Values of the key columns, row by row.
    keys: Mapping[str, Sequence[Any]] | None = None
    #: The same as text: one value, or a JSON list of values for several keys.
    texts: Sequence[str] | None = None


@dataclass(frozen=True)
class LookupAnswer:
    """The answer to a lookup: a table, and the instant up to which everything is final."""

    query: str
    table: pa.Table
    final: int
    domain: Domain


#: A lookup of at most the first number of cells runs at once; a larger one runs in another thread, in parts of the
#: second number.
LIGHT_CELLS, SLICE_CELLS = 128, 1 << 13


class ResolvedLookup:
    """A lookup request with the log that answers it."""

    def __init__(
        self, request: LookupRequest, readers: LogReaders, limits: Limits, pages: PageCache | None = None
    ) -> None:
        self.request, self.limits, self.pages = request, limits, pages
        self.reader, self.text = readers.find_log(request.query)

    @property
    def is_light(self) -> bool:
        """Whether it is answered in a moment, once no other lookup uses the panes."""
        contents = self.reader.contents
        if contents is None or not self.is_own_query:
            return False
        groups = len(self.request.texts) if self.request.texts else contents.group_count
        return len(self.request.at or (0,)) * groups <= LIGHT_CELLS

    @property
    def is_free(self) -> bool:
        """Whether it can be answered without waiting for another lookup."""
        newest = self.request.at is None and self.request.window is None and self.request.since is None
        paged = (
            newest
            and self.request.texts is not None
            and self.pages is not None
            and self.pages.has_newest(self.reader.begun_contents)
        )
        return self.reader.free or paged

    @property
    def is_own_query(self) -> bool:
        """Whether it asks for the log's own query, which the owner of the log wrote."""
        return self.text == self.reader.name

    def answer(self, budget: RequestBudget, instant: int | None = None) -> LookupAnswer:
        """Look up the requested instants, or one instant."""
        contents = self.reader.begun_contents
        name, plan = contents.lookups.resolve_query(self.text)
        final = contents.final
        if final is None:
            raise StateProblem("nothing is final yet", fix="wait for the first panes")
        domain = plan.query.domain
        keys = self._keys(contents.rows)
        arguments = self._instants(final, domain) if instant is None else {"at": np.array([instant], np.int64)}
        groups = len(next(iter(keys.values()), ())) if keys is not None else contents.group_count
        self._refuse_many(plan, arguments, groups)
        cells = max(groups, 1) * len(plan.levels)

        def look_up_part(part: Mapping[str, Any], keys: Mapping[str, pa.Array] | None) -> list[pa.Table]:
            """Some windows, level by level; other lookups may run meanwhile, except while states are read."""
            budget.check()
            with self.reader.lock:
                found = contents.lookups.group_answers(name, plan, keys=keys, **part)
            return [each.finish(budget.host(contents.pool.host)) for each in found]

        def look_up(keys: Mapping[str, pa.Array] | None) -> pa.Table:
            parts = _split_windows(arguments, max(SLICE_CELLS // cells, 1))
            return self._concat_parts(look_up_part(part, keys) for part in parts)

        return LookupAnswer(
            self.request.query, self._answer_from_page(contents, keys, arguments, look_up), final, domain
        )

    def _answer_from_page(
        self,
        contents: LogContents,
        keys: dict[str, pa.Array] | None,
        arguments: Mapping[str, Any],
        look_up: Callable[[Mapping[str, pa.Array] | None], pa.Table],
    ) -> pa.Table:
        """The answer from a page, if many requests need the same instant; otherwise for these groups alone."""
        found = None
        if self.pages is not None and self.is_own_query and _window_count(arguments) == 1:
            windows = tuple((name, repr(value)) for name, value in arguments.items())
            found = self.pages.find_rows(contents, windows, keys, lambda: look_up(None))
        return look_up(keys) if found is None else found

    def _concat_parts(self, parts: Iterable[list[pa.Table]]) -> pa.Table:
        """All windows of a level, then those of the next; stops at the limit of rows."""
        levels: list[list[pa.Table]] = []
        rows = size = 0
        for tables in parts:
            levels.append(tables)
            rows += sum(table.num_rows for table in tables)
            size += sum(table.nbytes for table in tables)
            if rows > self.limits.rows:
                raise TooLarge(
                    f"the answer has more than {self.limits.rows:,} rows",
                    fix="ask for fewer windows or groups",
                )
            if size > self.limits.bytes:
                raise TooLarge(
                    f"the answer has more than {self.limits.bytes:,} bytes", fix="ask for fewer windows or groups"
                )
        return pa.concat_tables(table for level in zip(*levels, strict=True) for table in level)

    def _instants(self, final: int, domain: Domain) -> dict[str, Any]:
        """The requested instants, none of them later than the newest final one."""
        if self.request.at is None:
            if self.request.window is None and self.request.since is None:
                return {}
            ends = np.array([final], np.int64)
        else:
            ends = parse_instants(self.request.at, domain)
        if len(ends) and int(ends.max()) > final:
            raise StateProblem(
                f"{instant_text(int(ends.max()), domain)} is not final yet",
                fix=f"ask for instants up to {instant_text(final, domain)}",
            )
        if self.request.since is not None and self.request.window is not None:
            raise BindProblem("since and window are both given", fix="give one of them")
        if self.request.since is not None:
            starts = parse_instants(self.request.since, domain)
            if len(starts) != len(ends):
                raise BindProblem("there are not as many beginnings as instants", fix="give one for each")
            return {"between": (starts, ends)}
        if self.request.window is not None:
            length = Duration.parse(self.request.window).ticks(domain)
            if length <= 0:
                raise BindProblem(f"window {self.request.window!r} is not above zero", fix="use a longer one")
            return {"between": (ends - length, ends)}
        return {"at": ends}

    def _keys(self, rows: PaneLogFormat) -> dict[str, pa.Array] | None:
        kinds = dict(zip(rows.keys, rows.types, strict=True))
        given = self.request.keys
        if self.request.texts:
            given = _key_columns(self.request.texts, rows.keys)
        if given is None:
            return None
        if not given:
            raise SchemaProblem("no key is given", fix="name the keys of GROUP BY, or leave keys out")
        return {
            name: key_array(name, values, kinds[name], from_text=True) if name in kinds else values
            for name, values in given.items()
        }

    def _refuse_many(self, plan: PanePlan, arguments: Mapping[str, Any], groups: int) -> None:
        limits, windows = self.limits, _window_count(arguments)
        refuse_too_many("windows", windows, limits.windows)
        if self.request.keys is not None or self.request.texts:
            refuse_too_many("groups", groups, limits.keys)
        refuse_too_many("windows of groups", windows * max(groups, 1) * len(plan.levels), limits.cells)
        if limits.reach is None:
            return
        spans = [window.longest for _, window in plan.levels if window.longest is not None]
        if "between" in arguments:
            starts, ends = arguments["between"]
            spans = [int((ends - starts).max())] if len(ends) else []
        if not spans or max(spans) > limits.reach:
            raise BindProblem(
                "the window reaches over more time than this server allows", fix=f"use at most {limits.reach} ticks"
            )


def _split_windows(arguments: Mapping[str, Any], most: int) -> Iterator[Mapping[str, Any]]:
    """The same windows, in parts of this length."""
    count = _window_count(arguments)
    if count <= most:
        yield arguments
        return
    for start in range(0, count, most):
        some = slice(start, start + most)
        if "between" in arguments:
            starts, ends = arguments["between"]
            yield {"between": (starts[some], ends[some])}
        else:
            yield {"at": arguments["at"][some]}


def _window_count(arguments: Mapping[str, Any]) -> int:
    """The number of windows that a lookup requests."""
    return len(arguments["between"][1] if "between" in arguments else arguments.get("at", (0,)))


def _key_columns(texts: Sequence[str], names: Sequence[str]) -> dict[str, list[Any]]:
    """Keys written as text, by column."""
    if not names:
        raise SchemaProblem("the query has no groups", fix="leave key out")
    if len(names) == 1:
        return {names[0]: list(texts)}
    rows = [_parse_key(text, len(names)) for text in texts]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _parse_key(text: str, size: int) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or len(found) != size:
        raise SchemaProblem(f"key {text!r} is no JSON list of {size} values", fix='write one such as ["a", 1]')
    return found


def query_info(readers: LogReaders, name: str) -> dict[str, Any]:
    """The description of a query."""
    reader, text = readers.find_log(name)
    contents = reader.begun_contents
    plan = contents.plan_query(text)

    return {
        "name": name,
        "query": contents.registered_query.text if text == contents.header.name else text,
        "stream": plan.source.stream,
        "boundary": contents.pool.boundary.value,
        "keys": [{"name": n, "type": str(k)} for n, k in zip(contents.rows.keys, contents.rows.types, strict=True)],
        "final": contents.final,
        "domain": plan.query.domain,
    }
