"""The stair chains of a family: one for each window group, and the stand-ins that answer until these are filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

from panewise.aggregate import StateArrays
from panewise.core.time import Boundary
from panewise.engine.panes.evaluators import Subscription
from panewise.engine.panes.sliding import ChainEvaluator
from panewise.engine.state.snapshot import Tree
from panewise.plan import PanePlan, shape_of, window_managers
from panewise.plan.rules.group_windows import GroupingPolicy, WindowGroup, WindowManager, WindowShape
from panewise.stores.chain import MIN_POSITION, StairChain, StairLevel, TotalKinds
from panewise.stores.pane import Pane, PaneSpans
from panewise.window import Sliding

#: Fewer windows than this that come together find groups one after another.
MANY_NEWCOMERS = 64


@dataclass(frozen=True, eq=False)
class FamilyProgress:
    """How far a family has come when a window joins or leaves."""

    #: The origin of all sliding windows of the family: windows with another START AT are another family.
    origin: int
    #: The end of the newest pane that has been closed, and the last instant that has been answered.
    closed: int
    passed: int
    keys: int
    #: The panes that are still open.
    coming: Sequence[Pane]

    def levels(self, lag: int, ranges: Sequence[int], granules: Sequence[int]) -> list[StairLevel]:
        """The stairs of windows with these ranges and granules, as positions of the family."""
        return [StairLevel(*each, self.origin - lag) for each in zip(ranges, granules, strict=True)]


class Chains:
    """Window managers by lag, and a chain for each of their window groups."""

    def __init__(
        self, columns: Sequence[StateArrays], kinds: TotalKinds, boundary: Boundary, policy: GroupingPolicy
    ) -> None:
        self.columns, self.kinds, self.boundary, self.policy = columns, kinds, boundary, policy
        self.managers: dict[int, WindowManager] = {}
        self.chains: dict[tuple[int, int], ChainEvaluator] = {}
        #: Chains that answer windows until the chain of their window group has seen enough panes.
        self.standins: list[ChainEvaluator] = []

    @property
    def evaluators(self) -> list[ChainEvaluator]:
        return [*self.chains.values(), *self.standins]

    def begin(self, plans: Iterable[PanePlan], here: FamilyProgress) -> None:
        """Put all windows into window groups at once."""
        self.managers = window_managers(plans, self.policy)
        for lag in self.managers:
            self._match_chains(lag, here)

    def serve(self, subscription: Subscription, window: Sliding) -> None:
        """Answer a window from the first instant on."""
        self.chains[self._chain_key(window)].serve(subscription)

    def change(self, changes: Sequence[tuple[Subscription, bool, Sliding]], here: FamilyProgress) -> None:
        """Let windows come and go, in this order, while chains run."""
        coming: dict[int, tuple[Subscription, Sliding]] = {}
        gone: set[int] = set()
        regrouped = self._group_many(window for _, comes, window in changes if comes)
        embedded = set(regrouped)
        for subscription, comes, window in changes:
            if comes:
                if window.lag not in embedded:
                    self._manager(window.lag).embed(shape_of(window))
                coming[subscription.number] = subscription, window
            else:
                if self.managers[window.lag].revoke(shape_of(window)):
                    regrouped.add(window.lag)
                gone.add(subscription.number)
        for chain in self.evaluators:
            for number in gone & chain.serving.keys():
                chain.leave(number)
        self.standins = [standin for standin in self.standins if standin.serving]
        for lag in {window.lag for _, _, window in changes}:
            if lag in regrouped:
                self._hand_over(lag, here)
            else:
                self._match_chains(lag, here)
        self._serve_newcomers([each for number, each in coming.items() if number not in gone], here)

    def _group_many(self, windows: Iterable[Sliding]) -> set[int]:
        """Group all windows of a lag anew where most of them are new: finding a group for each takes longer.

        Returns the lags for which this was done.
        """
        shapes: dict[int, list[WindowShape]] = {}
        for window in windows:
            shapes.setdefault(window.lag, []).append(shape_of(window))
        many = {lag: some for lag, some in shapes.items() if len(some) > MANY_NEWCOMERS}
        found = {lag for lag, some in many.items() if len(some) > len(self._manager(lag).shapes)}
        for lag in found:
            self.managers[lag] = self._manager(lag).repack(many[lag])
        return found

    def _serve_newcomers(self, coming: Sequence[tuple[Subscription, Sliding]], here: FamilyProgress) -> None:
        """Answer windows from running chains; where panes were not cut for one, a stand-in starts half-filled."""
        waiting: dict[tuple[int, int, int], list[tuple[Subscription, WindowShape, int]]] = {}
        unfinished, spans = PaneSpans.of(here.coming), self._spans(here)
        for subscription, window in coming:
            key, shape = self._chain_key(window), shape_of(window)
            chain = self.chains[key]
            since = chain.exact_since(shape, spans[key])
            if subscription.since > MIN_POSITION:
                since = max(since, subscription.since + window.lag + window.range)
            chain.serve(subscription, since=since)
            if since > here.passed:
                begins = max(here.closed, subscription.since, chain.newest_cut(shape, unfinished))
                waiting.setdefault((begins, *key), []).append((subscription, shape, since))
        for (begins, lag, number), served in waiting.items():
            group = WindowGroup(number, {shape for _, shape, _ in served})
            standin = self._new_chain(lag, here.levels(lag, group.ranges, group.granules), here)
            standin.begins = begins
            for subscription, _, until in served:
                standin.serve(subscription, until=until)
            self.standins.append(standin)

    def repack(self, here: FamilyProgress) -> None:
        """Make new window groups where old ones are too costly; old chains answer until the new ones can."""
        for lag, manager in self.managers.items():
            if manager.is_degraded():
                self.managers[lag] = manager.repack()
                self._hand_over(lag, here)

    def _hand_over(self, lag: int, here: FamilyProgress) -> None:
        """Make new chains for the window groups of a manager; old ones stand in until these can answer."""
        old = {key: chain for key, chain in self.chains.items() if key[0] == lag}
        self.chains = {key: chain for key, chain in self.chains.items() if key[0] != lag}
        self._match_chains(lag, here)
        spans = self._spans(here)
        for chain in old.values():
            for number, serving in chain.serving.items():
                key = self._chain_key(Sliding.of(serving.subscription.window))
                heir = self.chains[key]
                since = heir.exact_since(serving.shape, spans[key])
                heir.serve(serving.subscription, since=since)
                chain.serve_until(number, since)
        self.standins += [chain for chain in old.values() if chain.serving]

    def drop_finished_standins(self) -> None:
        """Drop stand-ins that are not needed any more."""
        self.standins = [standin for standin in self.standins if not standin.is_over()]

    def _match_chains(self, lag: int, here: FamilyProgress) -> None:
        """Give every window group of a manager the chain that it needs, and drop all others."""
        groups = {(lag, group.number): group for group in self.managers[lag].groups}
        for key in [key for key in self.chains if key[0] == lag and key not in groups]:
            del self.chains[key]
        for key, group in groups.items():
            levels = here.levels(lag, group.ranges, group.granules)
            if key not in self.chains:
                self.chains[key] = self._new_chain(lag, levels, here)
            elif self.chains[key].chain.levels != levels:
                self.chains[key].reshape(levels)

    def _new_chain(self, lag: int, levels: Sequence[StairLevel], here: FamilyProgress) -> ChainEvaluator:
        chain = StairChain(self.columns, self.kinds, levels)
        chain.lost = here.closed
        evaluator = ChainEvaluator(chain, self.boundary, lag, here.closed)
        evaluator.start(here.passed, here.keys)
        return evaluator

    def _manager(self, lag: int) -> WindowManager:
        if lag not in self.managers:
            self.managers[lag] = WindowManager(self.policy)
        return self.managers[lag]

    def _chain_key(self, window: Sliding) -> tuple[int, int]:
        return window.lag, self.managers[window.lag].group_of(shape_of(window)).number

    def _spans(self, here: FamilyProgress) -> dict[tuple[int, int], PaneSpans]:
        """All panes of each chain, and those still to come."""
        return {key: chain.spans(here.coming) for key, chain in self.chains.items()}

    # ---- restarts ----------------------------------------------------------------------------------------------

    def state(self) -> Tree:
        grouped = [
            {
                "lag": lag,
                "groups": [[group.number, [astuple(frame) for frame in group.shapes]] for group in manager.groups],
                "asked": [[*astuple(frame), manager.multiplicity(frame)] for frame in manager.shapes],
            }
            for lag, manager in self.managers.items()
        ]
        return {
            "managers": grouped,
            "chains": [[*key, chain.state()] for key, chain in self.chains.items()],
            "standins": [[standin.lag, standin.state()] for standin in self.standins],
        }

    def restore(self, state: Tree, subscriptions: Mapping[int, Subscription], here: FamilyProgress) -> None:
        for saved in state["managers"]:
            groups = {number: [WindowShape(*frame) for frame in frames] for number, frames in saved["groups"]}
            asked = Counter({WindowShape(length, slide): count for length, slide, count in saved["asked"]})
            self.managers[saved["lag"]] = WindowManager.restore(self.policy, groups, asked)
        self.chains = {
            (lag, n): self._restore_chain(lag, saved, subscriptions, here) for lag, n, saved in state["chains"]
        }
        self.standins = [self._restore_chain(lag, saved, subscriptions, here) for lag, saved in state["standins"]]

    def _restore_chain(
        self, lag: int, saved: Tree, subscriptions: Mapping[int, Subscription], here: FamilyProgress
    ) -> ChainEvaluator:
        chain = ChainEvaluator(
            StairChain(self.columns, self.kinds, here.levels(lag, *saved["shape"])), self.boundary, lag
        )
        chain.start(MIN_POSITION, here.keys)
        for number, since, until in saved["serving"]:
            chain.serve(subscriptions[number], since, until)
        chain.restore(saved)
        return chain
