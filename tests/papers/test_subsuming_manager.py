"""Paper "Subsuming windows" section 3: seeds, enclosing and piggybacked windows, embedding and revoking."""

from __future__ import annotations

from random import Random

import pytest

from panewise.core.errors import PlanProblem, WindowProblem
from panewise.plan.rules.group_windows import GroupingPolicy, WindowGroup, WindowManager, WindowRole, WindowShape

#: Figure 7 as far as the text tells it. Ranges and slides that it does not give are chosen to agree with what it says.
D, U, V, Z = WindowShape(6, 2), WindowShape(6, 4), WindowShape(24, 8), WindowShape(32, 4)
R, P, Y = WindowShape(9, 3), WindowShape(18, 3), WindowShape(27, 6)
B, H, F, E = WindowShape(10, 5), WindowShape(15, 5), WindowShape(20, 5), WindowShape(30, 10)
K = WindowShape(21, 3)
POOL = (D, U, V, Z, R, P, Y, B, H, F, E)


@pytest.fixture
def figure_7() -> WindowManager:
    return WindowManager.subsume(POOL)


def sequence(group: WindowGroup) -> list[WindowShape]:
    return [node.frame for node in group.nodes]


def sequences(manager: WindowManager) -> list[list[WindowShape]]:
    for group in manager.groups:
        group.check_subsumption()
    return sorted(sequence(group) for group in manager.groups)


def of(*pairs: tuple[int, int]) -> WindowManager:
    return WindowManager.subsume(WindowShape(*pair) for pair in pairs)


# ---- 3.1: frames and groups ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "outer", "subsumable"),
    [
        ((8, 2), (8, 2), True),
        ((8, 2), (8, 4), True),
        ((8, 2), (10, 2), True),
        ((8, 2), (10, 6), True),
        ((8, 2), (7, 2), False),
        ((8, 2), (10, 3), False),
        ((8, 4), (10, 2), False),
    ],
)
def test_definition_1(inner: tuple[int, int], outer: tuple[int, int], subsumable: bool) -> None:
    """Section 3.1, definition 1: the outer range is no shorter, the outer slide is a multiple."""
    assert WindowShape(*inner).subsumable_under(WindowShape(*outer)) is subsumable


@pytest.mark.parametrize(("size", "slide"), [(0, 1), (1, 0), (-3, 1), (2**61, 1), (1.5, 1)])
def test_frames_are_made_of_positive_lengths(size: int, slide: int) -> None:
    with pytest.raises(WindowProblem) as refused:
        WindowShape(size, slide)
    assert refused.value.fix


def test_every_window_is_in_one_group(figure_7: WindowManager) -> None:
    """Section 3.1: a grouping assigns each window to a single group."""
    assert sorted(frame for group in figure_7.groups for frame in group.shapes) == sorted(POOL)
    assert all(frame in figure_7.group_of(frame) for frame in POOL)


# ---- 3.2: a fixed pool -----------------------------------------------------------------------------------------------


def test_figure_6() -> None:
    """Section 3.2, figure 6: W1 and W3 slide every two units; W2, as wide as W3, speaks every fourth."""
    w1, w2, w3 = WindowShape(6, 2), WindowShape(8, 4), WindowShape(8, 2)
    (group,) = WindowManager.subsume([w1, w2, w3]).groups
    assert sequence(group) == [w1, w3]
    assert [group.role(w) for w in (w1, w2, w3)] == [WindowRole.SEED, WindowRole.PIGGYBACKED, WindowRole.ENCLOSING]
    assert group.nodes[1].piggybacked == (w2,)
    assert group.quotient(w2) == 2


def test_figure_7(figure_7: WindowManager) -> None:
    """Section 3.2, figure 7: four sequences; u rides on d, z is a seed of its own."""
    assert sequences(figure_7) == sorted([[D, V], [R, P, Y], [B, H, F, E], [Z]])


def test_windows_of_a_prime_slide_can_be_seeds(figure_7: WindowManager) -> None:
    """Section 3.2, (i): d, r and b are seeds, and their slide is the base slide of their group."""
    for seed in (D, R, B):
        assert figure_7.group_of(seed).role(seed) is WindowRole.SEED
        assert figure_7.group_of(seed).base_slide == figure_7.group_of(seed).common_slide == seed.slide


def test_an_enclosing_window_may_move_by_a_double_step(figure_7: WindowManager) -> None:
    """Section 3.2, (ii): e is partly served by f and moves twice as far each time."""
    group = figure_7.group_of(E)
    assert group is figure_7.group_of(F)
    assert group.role(E) is group.role(F) is WindowRole.ENCLOSING
    assert E.slide == 2 * F.slide


def test_a_piggybacked_window_is_an_annotation(figure_7: WindowManager) -> None:
    """Section 3.2, (iii): u is as wide as d and slides half as often: no node, no cost, q = 2."""
    group = figure_7.group_of(U)
    assert group is figure_7.group_of(D)
    assert group.role(U) is WindowRole.PIGGYBACKED
    assert (group.quotient(D), group.quotient(U)) == (1, 2)
    assert figure_7.cost == WindowManager.subsume(frame for frame in POOL if frame != U).cost


def test_stairs_that_move_in_tandem_need_no_buffers(figure_7: WindowManager) -> None:
    """Section 3.2: b, h and f are consecutive stairs of one slide; the only buffer is before e."""
    group = figure_7.group_of(B)
    assert group.ranges == (10, 15, 20, 30)
    assert group.granules == (5, 5, 5, 10)
    assert group.cost == 2 + 1 + 1 + 1 + 1


def test_a_base_slide_that_is_nested_already_needs_another_seed(figure_7: WindowManager) -> None:
    """Section 3.2: z<32, 4> cannot follow v<24, 8> and begins a group of its own."""
    assert figure_7.group_of(Z).seed == Z
    assert figure_7.group_of(V).seed == D
    again = of((24, 8), (4, 4), (32, 4))
    assert [group.seed for group in again.groups] == [WindowShape(4, 4), WindowShape(32, 4)]
    assert [group.base_slide for group in again.groups] == [4, 4]


def test_windows_of_one_slide_are_one_group_with_many_tails() -> None:
    """Section 3.2: windows of the same slide share a queue that is no longer than the widest of them."""
    (group,) = of((4, 2), (10, 2), (6, 2), (30, 2)).groups
    assert group.cost == 15


def test_nesting_gives_fewer_groups_than_slides() -> None:
    """Section 3.2: not all windows of a group have the same slide."""
    assert len(of((4, 1), (8, 2), (16, 4), (32, 8)).groups) == 1


def test_candidates_come_by_descending_base_slide() -> None:
    """Algorithm 1, line 7: of the groups that would do, the one of the longest base slide is taken."""
    manager = of((4, 2), (5, 3), (10, 12))
    assert manager.group_of(WindowShape(10, 12)).seed == WindowShape(5, 3)


def test_only_the_last_window_of_a_group_is_probed() -> None:
    """Algorithm 1, line 11: the seed would divide the slide of 6, the last window, of slide 4, does not."""
    assert len(of((4, 2), (8, 4), (12, 6)).groups) == 2


def test_a_repeated_window_is_counted(figure_7: WindowManager) -> None:
    """Algorithm 1, lines 18-22: equal range and slide, so q = 1: the same window for one more query."""
    twice = WindowManager.subsume([*POOL, *POOL, U])
    assert sequences(twice) == sequences(figure_7)
    assert (twice.multiplicity(D), twice.multiplicity(U), twice.multiplicity(K)) == (2, 3, 0)


@pytest.mark.parametrize(("longest", "most"), [(10, 10), (20, 25), (30, 40)])
@pytest.mark.parametrize("size", [1000, 10_000])
def test_figure_10_a_handful_of_groups(longest: int, most: int, size: int) -> None:
    """Section 5, figure 10: thousands of windows of range up to 60 are a few groups, fewer still by cost."""
    random = Random(longest)
    slides = [random.randint(1, longest) for _ in range(size)]
    frames = [WindowShape(random.randint(slide + 1, 60), slide) for slide in slides]
    grouped, packed = WindowManager.subsume(frames), WindowManager.pack(frames)
    assert len(grouped.groups) <= most
    assert len(packed.groups) == 1
    assert packed.cost == 60 <= grouped.cost


# ---- 3.3: embedding --------------------------------------------------------------------------------------------------


def test_embedding_between_two_nodes(figure_7: WindowManager) -> None:
    """Section 3.3: k<21, 3> comes between p and y."""
    group = figure_7.embed(K)
    assert sequence(group) == [R, P, K, Y]
    assert group.role(K) is WindowRole.ENCLOSING
    assert sequences(figure_7) == sorted([[D, V], [R, P, K, Y], [B, H, F, E], [Z]])


def test_embedding_as_the_last_of_a_group(figure_7: WindowManager) -> None:
    """Section 3.3, lines 34-36: no window is wider, and the widest divides."""
    assert sequence(figure_7.embed(WindowShape(40, 20))) == [B, H, F, E, WindowShape(40, 20)]


def test_embedding_a_new_seed(figure_7: WindowManager) -> None:
    """Section 3.3, line 32: a base slide that is a multiple of the new one counts too; the base slide changes."""
    group = figure_7.embed(WindowShape(5, 1))
    assert sequence(group) == [WindowShape(5, 1), B, H, F, E]
    assert group.base_slide == 1


def test_embedding_takes_the_longest_base_slide() -> None:
    """Section 3.3, line 32: candidates come by descending base slide."""
    manager = of((4, 2), (9, 3))
    assert manager.embed(WindowShape(12, 6)).seed == WindowShape(9, 3)
    assert manager.embed(WindowShape(12, 4)).seed == WindowShape(4, 2)


def test_embedding_what_fits_nowhere(figure_7: WindowManager) -> None:
    """Section 3.3, line 44: it is the seed of a new group."""
    assert sequence(figure_7.embed(WindowShape(14, 7))) == [WindowShape(14, 7)]


def test_a_window_does_not_go_after_a_wider_one() -> None:
    """Lines 39-40 as written: the slide of the wider one divides, but by definition 1 it is not subsumable."""
    manager = of((24, 2))
    assert sequence(manager.embed(WindowShape(10, 4))) == [WindowShape(10, 4)]
    assert len(manager.groups) == 2


def test_a_window_does_not_go_after_a_narrower_one_that_is_not_subsumable() -> None:
    """Lines 37-38 look at the wider neighbour only: here that would put slides 4, 2, 8 in a row."""
    manager = of((10, 4), (20, 8))
    assert sequence(manager.embed(WindowShape(15, 2))) == [WindowShape(15, 2)]
    assert sequences(manager) == [[WindowShape(10, 4), WindowShape(20, 8)], [WindowShape(15, 2)]]


def test_embedding_at_the_range_of_a_node() -> None:
    """Section 3.2, (iii), at run time: it rides on the node, even if the next one could not follow it."""
    manager = of((10, 2), (20, 4))
    group = manager.embed(WindowShape(10, 6))
    assert group.role(WindowShape(10, 6)) is WindowRole.PIGGYBACKED
    assert group.quotient(WindowShape(10, 6)) == 3
    assert len(manager.groups) == 1


def test_embedding_under_a_node_of_the_same_range() -> None:
    """A window that slides more often takes the place of the node, which then rides on it."""
    manager = of((5, 2), (10, 8), (10, 16), (20, 8))
    group = manager.embed(WindowShape(10, 4))
    assert sequence(group) == [WindowShape(5, 2), WindowShape(10, 4), WindowShape(20, 8)]
    assert [group.quotient(frame) for frame in group.nodes[1].piggybacked] == [2, 4]
    assert manager.embed(WindowShape(10, 1)) is not group, "the seed of slide 2 would have to come first"


def test_embedding_again_is_counted(figure_7: WindowManager) -> None:
    assert figure_7.embed(U) is figure_7.group_of(U)
    assert figure_7.multiplicity(U) == 2
    assert len(figure_7.shapes) == len(POOL)


# ---- 3.3: revoking ---------------------------------------------------------------------------------------------------


def test_revoking_a_piggybacked_window(figure_7: WindowManager) -> None:
    """Section 3.3: nothing but the annotation goes."""
    cost = figure_7.cost
    figure_7.revoke(U)
    assert sequences(figure_7) == sorted([[D, V], [R, P, Y], [B, H, F, E], [Z]])
    assert figure_7.cost == cost
    assert figure_7.group_of(D).nodes[0].piggybacked == ()


def test_revoking_an_enclosing_window(figure_7: WindowManager) -> None:
    """Section 3.3: the next node takes over its part of the state, here from (15, 20] to (10, 20]."""
    figure_7.revoke(H)
    group = figure_7.group_of(F)
    assert sequence(group) == [B, F, E]
    assert group.cost == 2 + 2 + 1 + 1


def test_revoking_a_seed_with_an_orphan(figure_7: WindowManager) -> None:
    """Section 3.3: d goes, u takes over as the new seed at a base slide of four, and nothing else changes."""
    group = figure_7.group_of(D)
    assert figure_7.revoke(D) == ()
    assert figure_7.group_of(U) is group
    assert group.role(U) is WindowRole.SEED
    assert group.base_slide == 4
    assert sequence(group) == [U, V]
    assert sequences(figure_7) == sorted([[U, V], [R, P, Y], [B, H, F, E], [Z]])


def test_revoking_a_seed_appoints_the_next(figure_7: WindowManager) -> None:
    """Section 3.3: new seeds may be appointed."""
    figure_7.revoke(D)
    figure_7.revoke(U)
    assert figure_7.group_of(V).seed == V
    assert figure_7.group_of(V).base_slide == 8


def test_the_orphan_of_the_shortest_slide_is_the_replacement() -> None:
    """Section 3.3: the other orphans ride on it."""
    manager = of((4, 1), (8, 1), (8, 2), (8, 4), (8, 6))
    assert manager.revoke(WindowShape(8, 1)) == ()
    group = manager.group_of(WindowShape(8, 2))
    assert sequence(group) == [WindowShape(4, 1), WindowShape(8, 2)]
    assert [group.quotient(frame) for frame in group.nodes[1].piggybacked] == [2, 3]


def test_orphans_that_the_replacement_does_not_divide_are_embedded_anew() -> None:
    """Section 3.3 leaves open what becomes of slide 6 when slide 4 is the replacement."""
    manager = of((8, 2), (8, 4), (8, 6))
    assert manager.revoke(WindowShape(8, 2)) == (WindowShape(8, 6),)
    assert sequences(manager) == [[WindowShape(8, 4)], [WindowShape(8, 6)]]


def test_a_replacement_has_to_be_subsumable_under_the_next_node() -> None:
    """Section 3.3 leaves open what happens if the shortest slide of the orphans does not divide that of the next."""
    manager = of((8, 2), (8, 6), (8, 8), (12, 8))
    assert manager.revoke(WindowShape(8, 2)) == (WindowShape(8, 6),)
    assert sequences(manager) == [[WindowShape(8, 6)], [WindowShape(8, 8), WindowShape(12, 8)]]


def test_an_empty_group_is_gone_and_its_number_with_it(figure_7: WindowManager) -> None:
    number = figure_7.group_of(Z).number
    figure_7.revoke(Z)
    assert number not in {group.number for group in figure_7.groups}
    assert figure_7.embed(WindowShape(33, 11)).number > number


def test_a_window_leaves_with_its_last_query(figure_7: WindowManager) -> None:
    figure_7.embed(Z)
    figure_7.revoke(Z)
    assert figure_7.group_of(Z).shapes == (Z,)
    figure_7.revoke(Z)
    with pytest.raises(PlanProblem, match="no query asks for the window <32, 4>"):
        figure_7.revoke(Z)


def test_embedding_and_revoking_in_turn_leaves_the_groups_as_they_were(figure_7: WindowManager) -> None:
    """Section 3.3: a window that comes and goes between two nodes leaves no trace."""
    before = sequences(figure_7)
    figure_7.embed(K)
    figure_7.revoke(K)
    assert sequences(figure_7) == before


# ---- 6: what the paper leaves for later ------------------------------------------------------------------------------


def test_degradation_is_noticed_and_cured() -> None:
    """Section 6: a fine window shares its panes with others; when it has gone, they are better apart."""
    fine, others = WindowShape(60, 1), [WindowShape(21, 7), WindowShape(33, 11), WindowShape(60, 20)]
    manager = WindowManager.pack([fine, *others])
    assert len(manager.groups) == 1
    assert manager.cost == 60
    manager.revoke(fine)
    assert not manager.is_degraded(), "a quarter has changed, not more"
    manager.embed(fine)
    manager.revoke(fine)
    assert manager.is_degraded()
    fresh = manager.repack()
    assert fresh.shapes == manager.shapes
    assert fresh.cost == 9 < manager.cost
    assert not fresh.is_degraded()


def test_degradation_by_an_unlucky_order() -> None:
    """Section 6: the paper's groups depend on the order of registration too."""
    manager = WindowManager(GroupingPolicy.PAPER)
    for frame in (WindowShape(12, 8), WindowShape(18, 4), WindowShape(12, 4)):
        manager.embed(frame)
    assert [sequence(group) for group in manager.groups] == [[WindowShape(12, 4)], [WindowShape(18, 4)]]
    assert manager.is_degraded()
    assert [sequence(group) for group in manager.repack().groups] == [[WindowShape(12, 4), WindowShape(18, 4)]]


def test_a_group_that_breaks_the_law_is_refused() -> None:
    with pytest.raises(PlanProblem, match="<4, 4> is not subsumable under <8, 2> in group 3"):
        WindowGroup(3, [WindowShape(4, 4), WindowShape(8, 2)]).check_subsumption()
    with pytest.raises(PlanProblem, match="<8, 2> is not subsumable under <8, 3>"):
        WindowGroup(0, [WindowShape(8, 2), WindowShape(8, 3)]).check_subsumption()
