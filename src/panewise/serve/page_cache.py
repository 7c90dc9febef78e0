"""Answers for all groups at once, kept while many requests need them.

Most requests are for the newest instant, each for another group. Looking up all groups costs a few times as much as
looking up one, and then every group is found by its key alone, until new panes come.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping

import pyarrow as pa

from panewise.algebra import Project
from panewise.runtime.log_readers import LogContents

#: Looking up all groups costs as much as this number of lookups of one group.
MIN_REQUESTS = 8
#: Rows of all kept answers together, and windows whose requests are counted.
MAX_ROWS, MAX_COUNTED = 2_000_000, 1024


class Page:
    """All rows of one answer, and the places of the rows of each group."""

    def __init__(self, table: pa.Table, keys: list[str]) -> None:
        self.table = table
        self._places: dict[tuple[object, ...], list[int]] = {}
        for place, key in enumerate(zip(*(table[name].to_pylist() for name in keys), strict=True)):
            self._places.setdefault(key, []).append(place)

    def rows_for(self, keys: Mapping[str, pa.Array]) -> pa.Table:
        """The rows of some groups, in the order of the whole answer."""
        wanted = set(zip(*(values.to_pylist() for values in keys.values()), strict=True))
        places = sorted(place for key in wanted for place in self._places.get(key, ()))
        if len(places) == 1:
            return self.table.slice(places[0], 1)
        return self.table.take(pa.array(places, pa.int64()))


class PageCache:
    """The kept answers of one server."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, Page] = OrderedDict()
        self._request_counts: OrderedDict[Hashable, int] = OrderedDict()
        self._changing = threading.Lock()

    def find_rows(
        self,
        contents: LogContents,
        instants: Hashable,
        keys: Mapping[str, pa.Array] | None,
        whole: Callable[[], pa.Table],
    ) -> pa.Table | None:
        """Rows of the log's own query for some groups; None for the first requests, and where pages do not help.

        `instants` names the windows, and `whole` looks them up for all groups.
        """
        if keys is None or list(keys) != contents.rows.keys or not can_page(contents):
            return None
        at = (contents.edition, instants)
        with self._changing:
            page = self._pages.get(at)
            if page is None and not self._is_requested_often(at):
                return None
        if page is None:
            page = Page(whole(), contents.rows.keys)
        with self._changing:
            self._store(at, page)
        return page.rows_for(keys)

    def has_newest(self, contents: LogContents) -> bool:
        """Whether there is a page of the newest instant, which needs no lookup in panes."""
        return (contents.edition, ()) in self._pages

    def _is_requested_often(self, at: Hashable) -> bool:
        """Count a request; returns whether there have been many."""
        self._request_counts[at] = self._request_counts.pop(at, 0) + 1
        if len(self._request_counts) > MAX_COUNTED:
            self._request_counts.popitem(last=False)
        return self._request_counts[at] > MIN_REQUESTS

    def _store(self, at: Hashable, page: Page) -> None:
        """Keep a page, and remove those that were not used for longest."""
        self._pages[at] = page
        self._pages.move_to_end(at)
        while len(self._pages) > 1 and sum(each.table.num_rows for each in self._pages.values()) > MAX_ROWS:
            self._pages.popitem(last=False)


def can_page(contents: LogContents) -> bool:
    """Whether the keys identify the rows of the query: all keys are selected, and equal exactly where Python compares
    them equal."""
    plain = all(pa.types.is_string(kind) or pa.types.is_integer(kind) for kind in contents.rows.types)
    after = contents.registered_query.aggregation.after
    selected = {scalar.column for _, scalar in after[-1].items} if after and isinstance(after[-1], Project) else set()
    return (
        plain
        and contents.group_count <= MAX_ROWS // 4
        and selected >= set(contents.registered_query.aggregation.group.keys)
    )
