"""The sessions of one window that have not been reported: what they hold, and how they are reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from panewise import kernels
from panewise.aggregate import Int64Array, Items, StateArrays, StateWords, bytes_of, concat_states, states_at
from panewise.engine.group_steps import GroupSteps
from panewise.engine.panes.chunks import ChangeRun
from panewise.engine.panes.evaluators import END_OF_TIME, Subscription
from panewise.engine.panes.held_rows import Flags, HeldRows
from panewise.engine.panes.open_panes import compact_slots
from panewise.engine.state.snapshot import Tree, pane_tree, panes_from
from panewise.kernels.sessions import Sessions
from panewise.stores.pane import Pane
from panewise.window import Session

NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class SessionGroups:
    """The groups of sessions: the number of the session or the instant at which it ends, the code, the states."""

    sessions: Int64Array
    codes: Int64Array
    states: Sequence[StateWords]

    def where(self, keep: Flags) -> SessionGroups:
        return SessionGroups(self.sessions[keep], self.codes[keep], [states_at(words, keep) for words in self.states])

    @classmethod
    def of_rows(
        cls, columns: Sequence[StateArrays], sessions: Int64Array, codes: Int64Array, items: Sequence[Items]
    ) -> SessionGroups:
        """The groups of rows, of which session and code are given."""
        only = np.full(int(sessions.max(initial=-1)) + 1, -1, np.int64)
        only[sessions] = codes
        if (only[sessions] == codes).all():
            # Where each session has one group, it is the slot.
            states = [column.gather(sessions, each, len(only)) for column, each in zip(columns, items, strict=True)]
            found = cls(np.arange(len(only)), only, states)
            return found if (only >= 0).all() else found.where(only >= 0)
        groups = int(codes.max()) + 1
        places, slots = compact_slots(sessions * groups + codes)
        states = [column.gather(slots, each, len(places)) for column, each in zip(columns, items, strict=True)]
        return cls(places // groups, places % groups, states)

    def join(self, columns: Sequence[StateArrays], other: SessionGroups) -> SessionGroups:
        """Both together, equal groups as one, ordered by group and session."""
        if not len(self.codes):
            return other
        sessions, codes = np.append(self.sessions, other.sessions), np.append(self.codes, other.codes)
        order = np.lexsort((sessions, codes))
        sessions, codes = sessions[order], codes[order]
        first = np.ones(len(order) + 1, bool)
        first[1:-1] = (np.diff(sessions) != 0) | (np.diff(codes) != 0)
        last = first[1:]
        states = []
        for column, some, others in zip(columns, self.states, other.states, strict=True):
            words = states_at(concat_states([some, others]), order)
            states.append(states_at(column.scan(words, first[:-1], False), last))
        return SessionGroups(sessions[last], codes[last], states)


class OpenSessions:
    """The sessions of one subscription, and their groups. Some may have ended and wait until that is final."""

    def __init__(self, columns: Sequence[StateArrays], subscription: Subscription, since: int) -> None:
        self.columns, self.subscription, self.gap = columns, subscription, Session.of(subscription.window).gap
        #: Rows up to this arrival number do not count.
        self.since = since
        self.sessions: Sessions = (NONE, NONE, NONE)
        self.groups = self._absent_groups(NONE, NONE)
        #: For changes: groups that a session has added, and the instants at which they are gone.
        self.fading = self.groups

    def _absent_groups(self, instants: Int64Array, codes: Int64Array) -> SessionGroups:
        return SessionGroups(instants, codes, [column.identity(len(codes)) for column in self.columns])

    @property
    def nbytes(self) -> int:
        words = (*self.sessions, self.groups.sessions, self.groups.codes)
        return sum(word.nbytes for word in words) + sum(map(bytes_of, self.groups.states))

    def assign(self, rows: HeldRows, late: Flags, partitions: int) -> Int64Array:
        """The session of each row, -1 where it has none. Rows come in the order in which they are visible.

        The sessions are those of the order of arrival, since a row on time extends only sessions that end no earlier
        than its time, and these are open to the late rows that are visible before it. In this order a partition has
        only one session that takes rows, or under `[)` two, so that many rows of any order are assigned quickly.
        """
        counts = rows.order > self.since
        chosen = slice(None) if counts.all() else counts
        numbers = np.full(len(rows), -1, np.int64)
        words = (word[chosen] for word in (rows.partitions, rows.times, np.where(late, rows.visible, rows.times)))
        numbers[chosen], fresh, self.sessions = kernels.session_numbers(*words, self.gap, partitions, self.sessions)
        self.groups = replace(self.groups, sessions=fresh[self.groups.sessions])
        return numbers

    def add(self, sessions: Int64Array, codes: Int64Array, items: Sequence[Items]) -> None:
        """Add rows that have a session and a group."""
        self.groups = self.groups.join(self.columns, SessionGroups.of_rows(self.columns, sessions, codes, items))

    def next_end(self, first: int) -> int:
        """The first instant at which a session is over, or gone, if nothing but rows from a time on may come."""
        _, _, lasts = self.sessions
        return min(int(lasts.min(initial=first)) + self.gap, int(self.fading.sessions.min(initial=END_OF_TIME)))

    def report(self, until: int) -> ChangeRun | None:
        """Remove the sessions that end no later than an instant, and report them."""
        partitions, firsts, lasts = self.sessions
        over = lasts + self.gap <= until
        done = over[self.groups.sessions]
        ended, self.groups = self.groups.where(done), self.groups.where(~done)
        self.groups = replace(self.groups, sessions=(np.cumsum(~over) - 1)[self.groups.sessions])
        self.sessions = partitions[~over], firsts[~over], lasts[~over]
        starts = firsts[ended.sessions]
        ended = replace(ended, sessions=lasts[ended.sessions] + self.gap)
        if self.subscription.changes:
            return self._report_changes(ended, until)
        if not len(ended.codes):
            return None
        steps = GroupSteps(ended.codes, ended.sessions, self.columns, ended.states)
        return ChangeRun(np.full(len(steps), self.subscription.number), steps, starts)

    def _report_changes(self, ended: SessionGroups, until: int) -> ChangeRun | None:
        """Report as changes: the groups of a session are present at its end, and gone at the next instant."""
        gone = self._absent_groups(ended.sessions + 1, ended.codes)
        changed = self.fading.join(self.columns, gone).join(self.columns, ended)
        due = changed.sessions <= until
        self.fading, changed = changed.where(~due), changed.where(due)
        if not len(changed.codes):
            return None
        steps = GroupSteps(changed.codes, changed.sessions, self.columns, changed.states)
        return ChangeRun(np.full(len(steps), self.subscription.number), steps)

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups."""
        self.groups = replace(self.groups, codes=codes[self.groups.codes])
        self.fading = replace(self.fading, codes=codes[self.fading.codes])

    def recode_partitions(self, codes: Int64Array) -> None:
        """Replace the codes of partitions."""
        partitions, firsts, lasts = self.sessions
        self.sessions = codes[partitions], firsts, lasts

    def state(self) -> Tree:
        groups, fading = self.groups, self.fading
        return {
            "feed": self.subscription.number,
            "since": self.since,
            "sessions": _word_table(self.sessions),
            "groups": _word_table((groups.sessions,)),
            "states": pane_tree(self.columns, [Pane(0, 0, groups.codes, tuple(groups.states))]),
            "fading": _word_table((fading.sessions, fading.codes)),
        }

    def restore(self, state: Tree) -> None:
        partitions, firsts, lasts = _words_of(state["sessions"])
        self.sessions = partitions, firsts, lasts
        (pane,) = panes_from(self.columns, state["states"])
        (sessions,) = _words_of(state["groups"])
        self.groups = SessionGroups(sessions, pane.codes, pane.states)
        self.fading = self._absent_groups(*_words_of(state["fading"]))


def _word_table(words: Sequence[Int64Array]) -> pa.Table:
    return pa.table([pa.array(word) for word in words], names=[str(number) for number in range(len(words))])


def _words_of(table: pa.Table) -> list[Int64Array]:
    return [np.array(column.to_numpy(), np.int64) for column in table.columns]
