"""L-INT: intervals that begin at a landmark or end just before one ("Resource sharing" section 3.1.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from panewise.aggregate import Aggregate, Int64Array, Laws
from panewise.core.errors import PlanProblem
from panewise.stores.base import LookupKind, Store
from panewise.stores.ring import Ring

S = TypeVar("S")
#: A position, or an array of them.
N = TypeVar("N", int, Int64Array)

#: Widths share landmarks while the widest is at most this many times the narrowest: the paper's c.
SPREAD = 2


class LandmarkIntervals(Store[S]):
    """Requires associativity, and the widths of the windows: without them, every width up to `reach` is expected.

    Lookup O(1), one combination. Update O(gamma) amortised and space O(gamma * reach), where gamma is the number of
    partitions of the widths. Where all windows are suffixes, each partition reaches only as far as its widest window
    and the space is O(reach). A half-filled window, which begins at position one, may be narrower than declared.
    """

    name = "L-INT"
    requires = "an associative"
    answers = LookupKind.DECLARED
    update_cost, lookup_cost = "O(gamma)", "O(1)"

    def __init__(
        self, aggregate: Aggregate[S], reach: int, widths: Iterable[int] | None = None, suffix: bool = False
    ) -> None:
        super().__init__(aggregate, reach)
        declared = range(1, reach + 1) if widths is None else sorted(set(widths))
        if not declared or not 1 <= declared[0] <= declared[-1] <= reach:
            raise PlanProblem(
                f"L-INT cannot keep widths {', '.join(map(str, declared)) or '(none)'} of {reach} panes",
                fix=f"declare widths from 1 to {reach}",
            )
        self.suffix, self.widest = suffix, declared[-1]
        self.partitions: list[LandmarkPartition[S]] = []
        self._partition_of: dict[int, LandmarkPartition[S]] = {}
        for part in partition_widths(declared):
            landmarks = LandmarkPartition(aggregate, part[-1] if suffix else reach, part[0], part[-1])
            self.partitions.append(landmarks)
            self._partition_of |= dict.fromkeys(part, landmarks)

    @classmethod
    def accepts(cls, laws: Laws) -> bool:
        return laws.bounded

    def _append(self, state: S) -> None:
        for landmarks in self.partitions:
            landmarks.append(state)

    def _lookup(self, first: int, last: int) -> S:
        width = last - first + 1
        if width == 0:
            return self.aggregate.identity()
        if self.suffix:
            self._must_be_suffix(first, last)
        if first == 1 and width <= self.widest:
            return self.partitions[-1].lookup(first, last)
        if width not in self._partition_of:
            raise PlanProblem(
                f"interval ({first}, {last}) has width {width}, which was not declared to L-INT",
                fix=f"declare {width} among the widths",
            )
        return self._partition_of[width].lookup(first, last)


class LandmarkPartition(Generic[S]):
    """One instance of the paper's figure 5: widths from `narrowest` to `widest`, landmarks every `narrowest` positions.

    An interval of such a width contains a landmark. From there on its state was built as positions arrived; up to
    there it ends a block between two landmarks, whose states were built backwards once the block was complete.
    Position zero is a landmark that holds nothing, so that (0, r) answers (1, r).
    """

    def __init__(self, aggregate: Aggregate[S], reach: int, narrowest: int, widest: int) -> None:
        self.aggregate, self.reach, self.narrowest, self.widest = aggregate, reach, narrowest, widest
        self.position = 0
        #: By landmark, the states of the intervals that begin there, shortest first.
        self._since: dict[int, list[S]] = {0: [aggregate.identity()]}
        #: By position, the state of the interval that begins there and ends just before the next landmark.
        self._until: Ring[S] = Ring(reach)
        #: The states since the newest landmark.
        self._block: list[S] = [aggregate.identity()]

    @property
    def state_count(self) -> int:
        """How many states are kept."""
        return sum(map(len, self._since.values())) + len(self._until) + len(self._block)

    def append(self, state: S) -> None:
        self.position += 1
        oldest = max(self.position - self.widest, 0)
        for landmark in range(landmark_from(oldest, self.narrowest), self.position, self.narrowest):
            states = self._since[landmark]
            states.append(self.aggregate.combine(states[-1], state))
        if self.position % self.narrowest == 0:
            self._since[self.position] = [state]
            self._close_block()
        self._block.append(state)
        # A landmark is needed as long as a lookup can begin there; zero as long as one can begin at position one.
        self._since.pop(self.position - self.reach - 1, None)

    def _close_block(self) -> None:
        backwards = accumulate(reversed(self._block), lambda later, earlier: self.aggregate.combine(earlier, later))
        for state in reversed(list(backwards)):
            self._until.append(state)
        self._block.clear()

    def lookup(self, first: int, last: int) -> S:
        first = 0 if first == 1 else first
        landmark = landmark_from(first, self.narrowest)
        since = self._since[landmark][last - landmark]
        return since if landmark == first else self.aggregate.combine(self._until[first], since)


def landmark_from(position: N, narrowest: int) -> N:
    """The first landmark at or after a position: where an interval that begins there is cut in two.

    >>> landmark_from(3257, 1000)  # (3257, 5164) is (3257, 3999) and (4000, 5164)
    4000
    """
    return -(-position // narrowest) * narrowest


def partition_widths(widths: Sequence[int]) -> list[Sequence[int]]:
    """Ascending widths, cut into as few runs as possible that spread by no more than a factor of SPREAD.

    >>> partition_widths([5, 8, 10, 11, 60])
    [[5, 8, 10], [11], [60]]
    """
    found = []
    while widths:
        end = bisect_right(widths, SPREAD * widths[0])
        found.append(widths[:end])
        widths = widths[end:]
    return found
