"""Lookups of positional aggregates: kept panes are put into the tiers of the window again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from panewise.aggregate import StateWords, concat_states, states_at
from panewise.core.errors import BindProblem
from panewise.core.time import Ticks, floor_to_grid
from panewise.engine.lookups.pane_source import GroupAnswers, KeyValues, PaneLookupSource, bounds_of, scope_of
from panewise.engine.panes.tiers import TierChain
from panewise.plan import PanePlan
from panewise.plan.rules.choose_store import pane_totals
from panewise.window import Sliding


class TierLookupSource(PaneLookupSource):
    """Panes that were cut for the levels of one window."""

    def answer_at(self, plan: PanePlan, instants: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        codes = self._group_codes(plan, keys)
        drafts = []
        # A window of several ranges reports the level of each, also where it has only one.
        numbers = [level for level, _ in plan.levels]
        for number, window in enumerate(plan.views.levels):
            seen = floor_to_grid(instants, window.start, window.step)
            every = [self._states(plan, number, int(at), window) for at in seen]
            found = [column.identity(0) for column in self.groups.columns]
            if every:
                found = [concat_states([states_at(states[n], codes) for states in every]) for n in range(len(found))]
            bounds = bounds_of(window, instants, self.instants)
            drafts.append(self._group_answers(plan, found, codes, bounds, numbers[number]))
        return drafts

    def answer_between(self, plan: PanePlan, starts: Ticks, ends: Ticks, keys: KeyValues | None) -> list[GroupAnswers]:
        raise BindProblem("a stretch of time has no tiers to look at", fix="ask for the window of the query")

    def _states(self, plan: PanePlan, level: int, at: int, window: Sliding) -> list[StateWords]:
        """The states of every group at an instant of a level."""
        views = replace(plan.views, shift=self.boundary.shift)
        lows, highs = scope_of(window, np.array([at], np.int64), self.boundary)
        panes = self.archive.panes_within(
            max(int(lows[0]), self.since), int(highs[0]), self.pending_panes, views.domain
        )
        kinds = pane_totals(self.groups.columns, plan.rules_off)
        chain = TierChain(self.groups.columns, kinds, views, len(self.groups.keys))
        chain.advance(at - views.lag, [])
        chain.load(panes)
        return next(states for _, states in chain.answers([level]))
