"""Readers of pane logs: the panes that pipelines have finished, kept for lookups.

A log is read batch by batch and never beyond a batch that cannot be read: its answers may be old, but they are never
wrong. A reader stores nothing on disk; after a restart the log is read again.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import pyarrow as pa

from panewise.core.errors import BindProblem, PanewiseError, SourceProblem, StateProblem, did_you_mean
from panewise.core.time import DurationLike
from panewise.engine import Pool
from panewise.engine.lookups.pane_lookups import PaneLookups
from panewise.engine.pool import RegisteredQuery
from panewise.engine.state.pane_log import PaneLogFormat
from panewise.plan import PanePlan
from panewise.runtime.pane_log import Header, PaneLog, rows_of
from panewise.stores.pane import Pane

log = logging.getLogger("panewise.serve")

_SERIALS = itertools.count()


class LogContents:
    """A log that has been begun: its query, and those of its panes that have been read."""

    def __init__(self, header: Header, keep: DurationLike | None) -> None:
        self.header = header
        self.pool: Pool = header.build_pool()
        self.rows: PaneLogFormat = rows_of(self.pool, header.name)
        self.lookups = PaneLookups(self.pool, keep)
        #: The newest batch that has been read, and its version.
        self.batch = -1
        self.version: object = None
        #: Every instant up to this one is final: all panes of a batch are finished together.
        self.final: int | None = None
        self._serial = next(_SERIALS)

    @property
    def edition(self) -> tuple[int, int]:
        """A value that changes whenever answers may change."""
        return self._serial, self.batch

    @property
    def registered_query(self) -> RegisteredQuery:
        return self.pool.queries[self.header.name]

    @property
    def group_count(self) -> int:
        """The number of groups, or one more; groups that have left may be counted."""
        return self.lookups.groups(self.header.name)

    def plan_query(self, query: str) -> PanePlan:
        """The plan of a query, by its name or its text; refuses what these panes cannot answer."""
        name, plan = self.lookups.resolve_query(query)
        if name is None:
            self.lookups.lookup_sources(name, plan)
        return plan

    def add_panes(self, keys: Sequence[pa.Array], panes: Sequence[Pane]) -> None:
        """Add panes to those that are kept."""
        if panes:
            self.lookups.take(self.header.name, keys, panes)
            self.final = self.lookups.newest(self.header.name)


class LogReader:
    """Reads one log, which need not exist yet. `poll` and lookups may run in different threads."""

    def __init__(self, source: PaneLog, keep: DurationLike | None = None) -> None:
        self.source, self.keep = source, keep
        #: Why the log cannot be read any further; None without a problem.
        self.problem: PanewiseError | None = None
        self._contents: LogContents | None = None
        #: When the folder had last changed before all of it was read; None where some of it may be unread.
        self._complete: object = None
        #: Held while panes are added or removed, and for nothing else.
        self.lock = threading.Lock()

    @property
    def contents(self) -> LogContents | None:
        """The log as it was last read; None before it has been begun."""
        return self._contents

    @property
    def name(self) -> str | None:
        """The name of its query."""
        return self._contents.header.name if self._contents is not None else None

    def poll(self) -> bool:
        """Read what is new; returns whether there was anything."""
        before, changed = self._edition, self.source.last_change
        if changed is not None and changed == self._complete:
            return False
        self._complete = None
        try:
            if self._read_new():
                self._complete = changed
            self.problem = None
        except PanewiseError as problem:
            if str(problem) != str(self.problem):
                log.warning("%s", problem)
            self.problem = problem
        return self._edition != before

    @property
    def _edition(self) -> object:
        """What has been read so far."""
        return self._contents.edition if self._contents is not None else None

    def _read_new(self) -> bool:
        """Read further; returns whether nothing is left."""
        header, known = self.source.header(), self._contents
        if header is None and known is not None:
            raise SourceProblem(f"the pane log '{self.source.folder}' has gone", fix="put it back, or serve another")
        if header is None:
            return False
        if known is None or header != known.header or self._is_rewritten(known):
            return self._read_from_start(header)
        return self._read_on(known)

    def _is_rewritten(self, known: LogContents) -> bool:
        """Whether the newest batch has been written again, as after a crash: the panes it replaces must be removed."""
        newest = self.source.batches().get(known.batch)
        version = newest.version if newest is not None else None
        return version is not None and version != known.version

    def _read_from_start(self, header: Header) -> bool:
        """Read a log from its start; until that is done, lookups are answered from the earlier contents."""
        fresh = LogContents(header, self.keep)
        try:
            return self._read_on(fresh)
        finally:
            # As far as it could be read.
            with self.lock:
                self._contents = fresh

    def _read_on(self, contents: LogContents) -> bool:
        for number, batch in self.source.batches().items():
            if number <= contents.batch:
                continue
            version, table = batch.version, batch.read(contents.rows.schema)
            if table is None:
                return False  # It is being replaced; the next poll reads it.
            found = contents.rows.read(table)
            with self.lock:
                contents.add_panes(*found)
                contents.batch, contents.version = number, version
        return True

    @property
    def begun_contents(self) -> LogContents:
        """The log as it was last read. Its panes must be used under the `lock`."""
        if self._contents is None:
            raise UnknownQuery("the pane log has not been begun yet", fix="start the pipeline that writes it")
        return self._contents

    @property
    def free(self) -> bool:
        """Whether a lookup can use the log without waiting for a lock."""
        return not self.lock.locked()


class LogReaders:
    """Several log readers, and further queries over their panes."""

    def __init__(self, folders: Sequence[Path | str], keep: DurationLike | None = None) -> None:
        self.logs = [LogReader(PaneLog(Path(folder)), keep) for folder in folders]
        #: Further queries, by name, with their text.
        self.named: dict[str, str] = {}
        #: When all logs were last polled.
        self.polled = monotonic()

    def poll(self) -> bool:
        """Read what is new in any log; returns whether there was anything."""
        changed = [reader.poll() for reader in self.logs]
        self.polled = monotonic()
        return any(changed)

    @property
    def problems(self) -> list[PanewiseError]:
        """The problems that keep logs from being read."""
        names = [reader.name for reader in self.logs if reader.name is not None]
        twice = {name for name in names if names.count(name) > 1}
        same = [StateProblem(f"several logs hold a query {name!r}", fix="serve them apart") for name in sorted(twice)]
        return [*same, *(reader.problem for reader in self.logs if reader.problem is not None)]

    @property
    def names(self) -> list[str]:
        """The names of all queries that a lookup can name."""
        own = [reader.name for reader in self.logs if reader.name is not None]
        return list(dict.fromkeys([*own, *self.named]))

    def find_log(self, query: str) -> tuple[LogReader, str]:
        """The log that answers a query, and the query: a known name, or a text."""
        for reader in self.logs:
            if reader.name == query:
                return reader, query
        text = self.named.get(query, query)
        if len(text.split()) < 2:
            raise UnknownQuery(
                f"there is no query {query!r}", fix=did_you_mean(query, self.names or ["a query of a log"])
            )
        return self.find_log_for_text(text), text

    def find_log_for_text(self, text: str) -> LogReader:
        """The first log whose panes can answer a text; the refusal of the first one where there is none."""
        problem: PanewiseError | None = None
        for reader in self.logs:
            try:
                reader.begun_contents.plan_query(text)
                return reader
            except PanewiseError as found:
                problem = problem or found
        raise problem or UnknownQuery("there is no pane log", fix="name one")


class UnknownQuery(BindProblem):
    """There is no such query."""
