"""Grouping against its definitions: Algorithm 1 transcribed line by line, the cost counted level by level."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.core.errors import PlanProblem
from panewise.plan.rules.group_windows import GroupingPolicy, WindowGroup, WindowManager, WindowRole, WindowShape
from panewise.plan.rules.group_windows.cost import cost_of, least_merged_cost, merge_stairs

# Few different slides, so that many divide each other and many do not; some lengths of a timestamp's size.
SMALL = st.builds(WindowShape, st.integers(1, 40), st.integers(1, 16))
ALIGNED = st.builds(lambda slide, times: WindowShape(slide * times, slide), st.integers(1, 12), st.integers(1, 8))
HUMAN = st.builds(
    lambda size, slide: WindowShape(size * 1_000_000, slide * 1_000_000),
    st.sampled_from([1, 5, 15, 60, 300, 900, 3600, 5400, 86400]),
    st.sampled_from([1, 2, 5, 10, 15, 60, 90, 300, 3600]),
)
FRAMES = st.one_of(SMALL, ALIGNED, HUMAN)
POOLS = st.one_of(st.lists(SMALL, max_size=40), st.lists(ALIGNED, max_size=40), st.lists(HUMAN, max_size=40))
POLICIES = st.sampled_from(list(GroupingPolicy))
#: Frames to embed, each with whether to revoke something first.
CHANGES = st.lists(st.tuples(FRAMES, st.booleans()), max_size=30)


# ---- Algorithm 1, literally ------------------------------------------------------------------------------------------


@dataclass
class Plain:
    """A group as Algorithm 1 has it: its windows in order, and the annotations (window, q) of each."""

    windows: list[WindowShape]
    annotations: dict[WindowShape, list[tuple[WindowShape, int]]]

    def keeps_the_law(self) -> bool:
        """Each window is narrower than the next; its slide divides that of the next and of those that ride on it."""
        rows = all(a.range < b.range and b.slide % a.slide == 0 for a, b in pairwise(self.windows))
        riding = [(host, guest) for host, guests in self.annotations.items() for guest, _ in guests]
        return rows and all(a.range == b.range and b.slide % a.slide == 0 for a, b in riding)

    def copy(self) -> Plain:
        return Plain(list(self.windows), {host: list(guests) for host, guests in self.annotations.items()})


def can_embed(g: Plain, wi: WindowShape, wj: WindowShape) -> bool:
    """Lines 17-29."""
    if wi.slide % wj.slide == 0:
        if wi.range == wj.range:
            g.annotations.setdefault(wj, []).append((wi, wi.slide // wj.slide))
            return True
        if wi.range > wj.range:
            g.windows = sorted({*g.windows, wi, wj})
            return True
    return False


def subsume_windows(pool: list[WindowShape]) -> list[Plain]:
    """Lines 1-16."""
    groups: list[Plain] = []
    for wk in sorted(pool, key=lambda w: (w.range, w.slide)):
        candidates = [g for g in groups if wk.slide % g.windows[0].slide == 0]
        candidates.sort(key=lambda g: -g.windows[0].slide)
        nested = False
        for g in candidates:
            nested = can_embed(g, wk, g.windows[-1])
            if nested:
                break
        if not nested:
            groups.append(Plain([wk], {}))
    return groups


def literal_attempt(g: Plain, wk: WindowShape) -> bool:
    """Lines 33-41."""
    wm = next((w for w in g.windows if w.range > wk.range), None)
    if wm is None:
        return can_embed(g, wk, g.windows[-1])
    if wm.slide % wk.slide == 0:
        return can_embed(g, wm, wk)
    if wk.slide % wm.slide == 0:
        return can_embed(g, wk, wm)
    return False


def equal_range_attempt(g: Plain, wk: WindowShape) -> bool:
    """What the text leaves out: the window rides on the node of its range, or takes its place."""
    same = next((w for w in g.windows if w.range == wk.range), None)
    if same is None:
        return False
    if can_embed(g, wk, same):
        return True
    g.windows[g.windows.index(same)] = wk
    guests = [same, *(guest for guest, _ in g.annotations.pop(same, []))]
    g.annotations[wk] = [(guest, guest.slide // wk.slide) for guest in guests]
    return True


def embed_window(groups: list[Plain], wk: WindowShape) -> int | None:
    """Lines 30-46: which group takes the window. An attempt that breaks the law does not count."""
    related = [n for n, g in enumerate(groups) if divides_either_way(wk.slide, g.windows[0].slide)]
    for n in sorted(related, key=lambda n: (-groups[n].windows[0].slide, n)):
        for attempt in (equal_range_attempt, literal_attempt):
            trial = groups[n].copy()
            if attempt(trial, wk) and trial.keeps_the_law():
                return n
    return None


def divides_either_way(one: int, other: int) -> bool:
    return one % other == 0 or other % one == 0


def as_plain(group: WindowGroup) -> Plain:
    annotations = {
        node.frame: [(guest, group.quotient(guest) or 0) for guest in node.piggybacked] for node in group.nodes
    }
    return Plain([node.frame for node in group.nodes], annotations)


@settings(max_examples=300)
@given(POOLS)
def test_subsume_is_algorithm_1(pool: list[WindowShape]) -> None:
    manager = WindowManager.subsume(pool)
    expected = subsume_windows(pool)
    assert [[node.frame for node in group.nodes] for group in manager.groups] == [g.windows for g in expected]
    for group, plain in zip(manager.groups, expected, strict=True):
        for host, guests in plain.annotations.items():
            for guest, q in guests:
                assert manager.group_of(guest) is group
                assert guest.range == host.range
                assert group.quotient(guest) == q
    assert {frame: manager.multiplicity(frame) for frame in pool} == Counter(pool)


@given(POLICIES, POOLS, st.data())
def test_the_order_of_the_pool_does_not_matter(
    policy: GroupingPolicy, pool: list[WindowShape], data: st.DataObject
) -> None:
    one, other = WindowManager(policy, pool), WindowManager(policy, data.draw(st.permutations(pool)))
    assert [group.shapes for group in one.groups] == [group.shapes for group in other.groups]


@settings(max_examples=300)
@given(POOLS, CHANGES)
def test_embed_is_embed_window(pool: list[WindowShape], changes: list[tuple[WindowShape, bool]]) -> None:
    manager = WindowManager.subsume(pool)
    for frame, _ in changes:
        groups = manager.groups
        if any(frame in group for group in groups):
            assert manager.embed(frame) in groups
            continue
        expected = embed_window([as_plain(group) for group in groups], frame)
        found = manager.embed(frame)
        assert (groups.index(found) if found in groups else None) == expected


# ---- any sequence of changes -----------------------------------------------------------------------------------------


def counted_cost(frames: tuple[WindowShape, ...]) -> int:
    """Panes and buffers of a chain, level by level as the cost is defined."""
    panes = buffers = below = 0
    widths = []
    for size in sorted({frame.range for frame in frames}):
        width = gcd(*(n for frame in frames if frame.range >= size for n in (frame.slide, frame.range)))
        panes += -((below - size) // width)
        below = size
        widths.append(width)
    buffers = sum(a != b for a, b in pairwise(widths))
    return panes + buffers


def check(manager: WindowManager, pool: Counter[WindowShape]) -> None:
    held = [frame for group in manager.groups for frame in group.shapes]
    assert sorted(held) == sorted(+pool) == list(manager.shapes)
    assert all(manager.multiplicity(frame) == pool[frame] for frame in held)
    for group in manager.groups:
        check_group(group)
        assert all(manager.group_of(frame) is group for frame in group.shapes)
        if manager.policy is GroupingPolicy.PAPER:
            assert as_plain(group).keeps_the_law()
            group.check_subsumption()
    assert manager.cost == sum(counted_cost(group.shapes) for group in manager.groups)
    numbers = [group.number for group in manager.groups]
    assert numbers == sorted(set(numbers))


def check_group(group: WindowGroup) -> None:
    """Roles, levels and granules follow from the frames."""
    frames = group.shapes
    assert len(group) == len(frames) > 0
    assert group.ranges == tuple(sorted({frame.range for frame in frames}))
    assert group.common_slide == gcd(*(frame.slide for frame in frames))
    for size, width in zip(group.ranges, group.granules, strict=True):
        assert width == gcd(*(n for frame in frames if frame.range >= size for n in (frame.slide, frame.range)))
    assert group.role(min(frames)) is WindowRole.SEED
    assert group.seed == min(frames)
    assert group.base_slide == group.seed.slide
    hosts = {size: min(frame for frame in frames if frame.range == size) for size in group.ranges}
    for frame in frames:
        assert (group.role(frame) is WindowRole.PIGGYBACKED) == (frame != hosts[frame.range])
        assert group.shapes_of_range(frame.range)[0] == hosts[frame.range]
        times, rest = divmod(frame.slide, hosts[frame.range].slide)
        assert group.quotient(frame) == (None if rest else times)


@settings(max_examples=200)
@given(POLICIES, POOLS, CHANGES, st.data())
def test_every_window_is_in_one_lawful_group_at_all_times(
    policy: GroupingPolicy, pool: list[WindowShape], changes: list[tuple[WindowShape, bool]], data: st.DataObject
) -> None:
    manager, held = WindowManager(policy, pool), Counter(pool)
    check(manager, held)
    for frame, revoking in changes:
        before = homes(manager)
        if revoking and held:
            gone = data.draw(st.sampled_from(sorted(held)))
            moved = manager.revoke(gone)
            held -= Counter([gone])
            after = homes(manager)
            assert {other for other in held if after[other] != before[other]} == set(moved)
        else:
            manager.embed(frame)
            held[frame] += 1
            assert homes(manager).items() >= before.items()
        check(manager, held)


@settings(max_examples=100)
@given(POLICIES, POOLS, CHANGES)
def test_no_number_is_given_twice(
    policy: GroupingPolicy, pool: list[WindowShape], changes: list[tuple[WindowShape, bool]]
) -> None:
    manager = WindowManager(policy, pool)
    alive = set(homes(manager).values())
    ever = alive
    for frame, revoking in changes:
        if revoking and manager.shapes:
            manager.revoke(manager.groups[-1].shapes[0])
        else:
            manager.embed(frame)
        numbers = set(homes(manager).values())
        assert all(number > max(ever) for number in numbers - alive if ever)
        alive, ever = numbers, ever | numbers


def homes(manager: WindowManager) -> dict[WindowShape, int]:
    return {frame: group.number for group in manager.groups for frame in group.shapes}


@given(POLICIES, POOLS)
def test_revoking_all_leaves_nothing(policy: GroupingPolicy, pool: list[WindowShape]) -> None:
    manager = WindowManager(policy, pool)
    for frame in pool:
        manager.revoke(frame)
    assert not manager.groups
    assert not manager.shapes
    assert manager.cost == 0


@given(POLICIES, POOLS, FRAMES)
def test_what_is_not_there_cannot_go(policy: GroupingPolicy, pool: list[WindowShape], frame: WindowShape) -> None:
    manager = WindowManager(policy, (other for other in pool if other != frame))
    with pytest.raises(PlanProblem, match="no query asks"):
        manager.revoke(frame)
    assert manager.multiplicity(frame) == 0


# ---- cost ------------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(POOLS)
def test_packing_never_costs_more_than_algorithm_1(pool: list[WindowShape]) -> None:
    paper, packed = WindowManager.subsume(pool), WindowManager.pack(pool)
    assert packed.cost <= paper.cost
    assert len(packed.groups) <= len(paper.groups)
    check(packed, Counter(pool))


@settings(max_examples=200)
@given(POOLS)
def test_no_merger_of_two_packed_groups_is_free(pool: list[WindowShape]) -> None:
    for one, other in combinations(WindowManager.pack(pool).groups, 2):
        assert counted_cost(one.shapes + other.shapes) > counted_cost(one.shapes) + counted_cost(other.shapes)


@settings(max_examples=200)
@given(POOLS, FRAMES)
def test_embedding_by_cost_adds_least(pool: list[WindowShape], frame: WindowShape) -> None:
    manager = WindowManager.pack(other for other in pool if other != frame)
    before = manager.cost
    groups = [group.shapes for group in manager.groups]
    choices = [counted_cost((*frames, frame)) - counted_cost(frames) for frames in groups]
    alone = counted_cost((frame,))
    manager.embed(frame)
    assert manager.cost - before == min([*choices, alone])
    assert len(manager.groups) == len(groups) + all(alone < added for added in choices)


@settings(max_examples=300)
@given(st.lists(FRAMES, min_size=1, max_size=12), st.lists(FRAMES, min_size=1, max_size=12))
def test_stairs_say_all_about_the_cost(some: list[WindowShape], others: list[WindowShape]) -> None:
    """Joining stairs is joining groups, the cost of stairs is that of the levels, and the quick bound is one."""
    one, other, both = WindowGroup(0, set(some)), WindowGroup(1, set(others)), WindowGroup(2, {*some, *others})
    assert merge_stairs(one.stairs, other.stairs) == merge_stairs(other.stairs, one.stairs) == both.stairs
    assert cost_of(both.stairs) == counted_cost(both.shapes)
    assert least_merged_cost(one.stairs, other.stairs) <= both.cost


# ---- degradation -----------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(POLICIES, POOLS, CHANGES)
def test_degradation_is_measured_after_a_quarter_has_changed(
    policy: GroupingPolicy, pool: list[WindowShape], changes: list[tuple[WindowShape, bool]]
) -> None:
    manager = WindowManager(policy, pool)
    assert not manager.is_degraded()
    checked, changed, said = len(manager.shapes), 0, False
    for frame, asked in changes:
        changed += manager.multiplicity(frame) == 0
        manager.embed(frame)
        if asked:
            if 4 * changed > checked:
                said = 100 * manager.cost > 125 * manager.repack().cost
                checked, changed = len(manager.shapes), 0
            assert manager.is_degraded() == said


@given(POLICIES, POOLS)
def test_packing_again_keeps_the_queries(policy: GroupingPolicy, pool: list[WindowShape]) -> None:
    manager = WindowManager(policy)
    for frame in pool:
        manager.embed(frame)
    fresh = manager.repack()
    assert fresh.policy is policy
    check(fresh, Counter(pool))
    assert [group.shapes for group in fresh.groups] == [group.shapes for group in WindowManager(policy, pool).groups]
