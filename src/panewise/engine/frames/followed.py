"""Frames that do not overlap, followed by kernels: what they hold is aggregated on the way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from panewise.aggregate import Longs
from panewise.engine.frames.contents import Contents
from panewise.engine.frames.framer import Framer
from panewise.engine.frames.ordering import Framable
from panewise.engine.frames.reported import Reported
from panewise.engine.snapshot import Tree
from panewise.plan.framing import Framing

_NOTHING = np.zeros((0, 5), np.int64)


class Followed:
    """All groups of a query whose frames do not overlap."""

    def __init__(self, plan: Framing, contents: Contents | None) -> None:
        self.framer, self.contents = Framer(plan.frame), contents
        self._told = _NOTHING

    def seen(self, groups: int) -> Longs:
        """The time of the last item of each group."""
        self.framer.at.fit(groups)
        return self.framer.at["seen"]

    def earliest(self) -> int:
        """No frame that is yet to be reported begins before this time, unless its first item is yet to come."""
        return self.framer.earliest()

    def take(self, items: Framable, groups: int) -> None:
        """Let items of so many groups in."""
        step, rows, owner = self.framer.take(items.codes, items.times, items.values, groups), items.rows, items.owner
        if self.contents is not None:
            self.contents.take(step if owner is None else step.spread(owner), rows.table, rows.times, rows.order)
        self._told = step.told

    def report(self, last: int, finishing: bool) -> Iterator[Reported]:
        """Fragments, and frames that have ended and are good; all that have ended are forgotten.

        Nothing up to the time `last` is expected any more.
        """
        told, self._told = self._told, _NOTHING
        self.framer.silenced(last)
        closed = self.framer.closed(finishing)
        ended = np.flatnonzero(closed & self.framer.qualified())
        if self.framer.waits:
            ended = self.framer.longest(ended)
            closed[ended] = finishing
            ended = ended[closed[ended]]
        # Together, since a frame may be known to be one only after the next has been told of.
        self.framer.number(np.union1d(told[:, 0], ended))
        if len(told):
            yield Reported(self.framer.fragments(told), (self.contents.told(),) if self.contents else ())
        if len(ended):
            yield Reported(self.framer.bounds(ended), (self.contents.of(ended),) if self.contents else ())
        if closed.any():
            fresh = self.framer.forget(~closed)
            if self.contents is not None:
                self.contents.forget(fresh)

    def live(self, last: int) -> Longs:
        """The groups of which something is remembered, where nothing up to a time is expected any more."""
        return self.framer.live(last)

    def recode(self, codes: Longs) -> None:
        """Groups have new codes, or are not known any more."""
        self.framer.recode(codes)

    def state(self) -> Tree:
        return {"framer": self.framer.state(), "contents": self.contents and self.contents.state()}

    def restore(self, state: Tree) -> None:
        self.framer.restore(state["framer"])
        if self.contents is not None:
            self.contents.restore(state["contents"])
