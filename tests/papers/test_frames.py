"""Paper "Data-driven windows": what frames are (section 4 and the examples of appendix B), by the literal meaning."""

from __future__ import annotations

import math
from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.frame.frame import (
    BoundaryFrames,
    DeltaFrames,
    DensityFrames,
    Direction,
    Frame,
    FrameLength,
    Saturation,
    Scheme,
    Span,
    TrendFrames,
    WhileFrames,
)
from panewise.reference.framing import GroupItem, find_frames
from tests.framings import (
    CONDITION,
    VALUE,
    Dividing,
    above,
    amounts,
    covering,
    extents,
    gappy,
    growing,
    number,
    numbers,
    places,
    reports,
    series,
    streams,
    total,
    truths,
)

drawn = settings(max_examples=60, deadline=None, derandomize=True)

THRESHOLD = WhileFrames(CONDITION)
#: The sequence S of appendix B: temperatures at the times 1 to 10.
TEMPERATURES = series(30, 31, 33, 34, 30, 34, 33, 34, 35, 32)


def candidate(kind: Any, items: list[GroupItem], first: int, last: int) -> bool:
    """Whether a stretch satisfies the local condition: alone, it is one frame."""
    return places(Frame(kind), items[first : last + 1]) == [(0, last - first)]


def candidates(kind: Any, items: list[GroupItem]) -> list[tuple[int, int]]:
    size = len(items)
    return [(i, j) for i in range(size) for j in range(i, size) if candidate(kind, items, i, j)]


# ---- 4.1: possible, candidate and final frames ---------------------------------------------------------------------


@drawn
@given(truths)
def test_final_threshold_frames_are_the_candidates_that_no_other_contains(items: list[GroupItem]) -> None:
    """4.1, definitions 2 to 4: possible frames, those that satisfy the predicate, and the maximal ones of these."""
    found = candidates(THRESHOLD, items)
    maximal = [(i, j) for i, j in found if not any(a <= i and j <= b and (a, b) != (i, j) for a, b in found)]
    assert places(Frame(THRESHOLD), items) == maximal


@drawn
@given(truths, st.integers(0, 8), st.integers(0, 8), st.booleans())
def test_durations_are_judged_on_maximal_frames(items: list[GroupItem], low: int, more: int, in_rows: bool) -> None:
    """4.1, data-independent predicates: least and most durations, in time or in items; runs are not cut to fit."""
    least, most = FrameLength(low, in_rows), FrameLength(low + more + 1, in_rows)
    runs = find_frames(Frame(THRESHOLD), items)
    kept = [f for f in runs if low <= (f.count if in_rows else f.end - f.start) <= low + more + 1]
    assert places(Frame(THRESHOLD, least=least, most=most), items) == [(f.first, f.last) for f in kept]


def test_reported_frames_are_numbered_by_the_time_of_their_first_item() -> None:
    found = find_frames(Frame(THRESHOLD, least=FrameLength(2, rows=True)), reports("TFTTFTFTTT"))
    assert [(f.number, f.start, f.end) for f in found] == [(2, 2, 3), (7, 7, 9)]


def test_frames_that_begin_at_one_time_have_different_numbers() -> None:
    items = [GroupItem(time, (value,)) for time, value in ((3, 1), (3, 5), (3, 9), (4, 13), (9, 17))]
    found = find_frames(Frame(BoundaryFrames(VALUE, 4)), items)
    assert [(f.number, f.start) for f in found] == [(3, 3), (4, 3), (5, 3), (6, 4), (9, 9)]


def test_unknown_does_not_satisfy_a_predicate() -> None:
    """4.1: the predicate has to hold for every tuple; of an unknown one nobody can say so."""
    assert extents(Frame(THRESHOLD), reports("T?TTF?")) == [(0, 0), (2, 3)]


def test_one_item_must_satisfy_a_further_condition() -> None:
    """4.1: a local condition may be a conjunction; SOME asks one item of the frame only."""
    items = [GroupItem(n, (run, hot)) for n, (run, hot) in enumerate(zip("TTFTTT", "FFFFTF", strict=True))]
    known = [GroupItem(i.time, tuple(v == "T" for v in i.values)) for i in items]
    assert extents(Frame(THRESHOLD, some=CONDITION), known) == [(3, 5)]


def test_no_items_no_frames() -> None:
    """4.1: an empty stream has no possible frames."""
    for kind in (
        THRESHOLD,
        DeltaFrames(VALUE, 1),
        total(">", 1),
        DensityFrames(2, 5),
        TrendFrames(VALUE, Direction.FLAT),
    ):
        assert find_frames(Frame(kind), []) == find_frames(Frame(kind, span=Span.MAXIMUM), []) == []


# ---- 4.1: saturated and drained ------------------------------------------------------------------------------------


@drawn
@given(covering, numbers)
def test_a_saturated_cover_takes_no_further_frame(kind: Dividing, items: list[GroupItem]) -> None:
    """4.1: to a saturated set nothing can be added: the longest frame of every start is in it."""
    found = places(Frame(kind, scheme=Scheme.COVER, choice=Saturation.SATURATED), items)
    assert [first for first, _ in found] == list(range(len(items)))
    assert all(last + 1 == len(items) or not candidate(kind, items, first, last + 1) for first, last in found)


@drawn
@given(covering, numbers)
def test_a_drained_cover_can_spare_no_frame(kind: Dividing, items: list[GroupItem]) -> None:
    """4.1 and 4.3.1: without any one of its frames, a drained cover leaves items uncovered."""
    found = places(Frame(kind, scheme=Scheme.COVER, choice=Saturation.DRAINED), items)
    assert covered(found) == set(range(len(items)))
    assert all(covered([f for f in found if f != spared]) < covered(found) for spared in found)


def covered(found: list[tuple[int, int]]) -> set[int]:
    return {place for first, last in found for place in range(first, last + 1)}


# ---- 4.2: framing schemes ------------------------------------------------------------------------------------------


@drawn
@given(covering, numbers)
def test_partitions_have_no_gaps(kind: Dividing, items: list[GroupItem]) -> None:
    """4.2, partition: each frame begins where the one before ended, and all items are in one."""
    found = places(Frame(kind), items)
    assert Frame(kind).effective_scheme is Scheme.PARTITION
    assert [place for first, last in found for place in range(first, last + 1)] == list(range(len(items)))


@drawn
@given(growing, numbers)
def test_partitions_that_grow_leave_only_an_unfinished_tail(kind: Dividing, items: list[GroupItem]) -> None:
    """4.2, partition: what never qualifies before the stream ends is no frame; before it there is no gap."""
    found = places(Frame(kind), items)
    tail = found[-1][1] + 1 if found else 0
    assert [place for first, last in found for place in range(first, last + 1)] == list(range(tail))
    assert not any(candidate(kind, items, tail, last) for last in range(tail, len(items)))


@drawn
@given(covering, numbers, st.sampled_from([Saturation.SATURATED, Saturation.DRAINED, None]))
def test_covers_hold_every_item(kind: Dividing, items: list[GroupItem], choice: Saturation | None) -> None:
    """4.2, cover: every item is in some frame, whatever the choice."""
    assert covered(places(Frame(kind, scheme=Scheme.COVER, choice=choice), items)) == set(range(len(items)))


@drawn
@given(covering, numbers, st.integers(0, 6))
def test_adjacent_frames_overlap_by_a_fixed_time(kind: Dividing, items: list[GroupItem], overlap: int) -> None:
    """4.2, adjacent: a frame begins so long before the end of the one before, at the first item from there on."""
    found = find_frames(Frame(kind, scheme=Scheme.ADJACENT, overlap=overlap), items)
    for before, after in pairwise(found):
        due = [n for n, item in enumerate(items) if item.time >= before.end - overlap]
        assert after.first == max(due[0], before.first + 1)
    assert covered([(f.first, f.last) for f in found]) == set(range(len(items)))


def test_adjacent_frames_without_overlap_share_their_ends() -> None:
    """4.2 and appendix A: a start that equals the end before it is adjacent, one later is a partition."""
    frame = Frame(number("<=", 3), scheme=Scheme.ADJACENT)
    assert places(frame, series(*range(7))) == [(0, 2), (2, 4), (4, 6)]
    assert places(Frame(number("<=", 3)), series(*range(7))) == [(0, 2), (3, 5), (6, 6)]


@drawn
@given(covering | growing, numbers)
def test_advancing_frames_begin_and_end_later_each(kind: Dividing, items: list[GroupItem]) -> None:
    """4.2, advancing: starts and ends move on; dropped is only what ends no later than an earlier one."""
    found = places(Frame(kind, scheme=Scheme.ADVANCING), items)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(found))
    everything = places(Frame(kind, scheme=Scheme.UNCONSTRAINED), items)
    assert all(any(a < i and j <= b for a, b in found) for i, j in set(everything) - set(found))


@drawn
@given(covering, numbers, st.integers(1, 4))
def test_disjoint_frames_share_nothing_and_may_leave_gaps(kind: Dividing, items: list[GroupItem], least: int) -> None:
    """4.2, disjoint: a condition drops frames of the partition, and the others stay as they are."""
    found = places(Frame(kind, least=FrameLength(least, rows=True)), items)
    assert all(b < c for (_, b), (c, _) in pairwise(found))
    assert found == [(i, j) for i, j in places(Frame(kind), items) if j - i + 1 >= least]


@drawn
@given(covering | growing, numbers)
def test_unconstrained_frames_start_everywhere(kind: Dividing, items: list[GroupItem]) -> None:
    """4.2, unconstrained: every item starts the frame that a partition of what follows would start with."""
    found = dict(places(Frame(kind, scheme=Scheme.UNCONSTRAINED), items))
    for start in range(len(items)):
        alone = places(Frame(kind), items[start:])
        assert found.get(start) == (alone[0][1] + start if alone else None)


# ---- 4.3: examples -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("high", "low", "waves"), [(1, 1, 5), (3, 2, 4), (7, 1, 3)])
def test_a_square_wave_has_a_threshold_frame_for_each_crest(high: int, low: int, waves: int) -> None:
    """4.3, threshold frames: they neither partition nor cover the stream; each crest is one."""
    items = reports(("T" * high + "F" * low) * waves)
    period = high + low
    assert extents(Frame(THRESHOLD), items) == [(n * period, n * period + high - 1) for n in range(waves)]
    assert len(extents(Frame(THRESHOLD, least=FrameLength(high, rows=True)), items)) == waves
    assert not extents(Frame(THRESHOLD, least=FrameLength(high + 1, rows=True)), items)


@drawn
@given(streams(st.none()), st.integers(1, 12))
def test_boundary_frames_over_time_itself_are_tumbling_windows(items: list[GroupItem], step: int) -> None:
    """4.3, boundary frames: over the progressing attribute they are equivalent to windows."""
    timed = [GroupItem(item.time, (item.time,)) for item in items]
    windows = [[i.time for i in group] for _, group in groupby(timed, key=lambda i: i.time // step)]
    assert extents(Frame(BoundaryFrames(VALUE, step)), timed) == [(w[0], w[-1]) for w in windows]


def test_a_boundary_belongs_to_what_is_above_it() -> None:
    """4.3, boundary frames: crossing in either direction segments, and so does crossing several at once."""
    items = series(8, 9, 10, 19, 9, 35, -1, 0)
    assert places(Frame(BoundaryFrames(VALUE, 10)), items) == [(0, 1), (2, 3), (4, 4), (5, 5), (6, 6), (7, 7)]
    assert places(Frame(BoundaryFrames(VALUE, None, (0.0, 10.0))), items) == [
        (0, 1),
        (2, 3),
        (4, 4),
        (5, 5),
        (6, 6),
        (7, 7),
    ]


def test_infinite_values_lie_beyond_all_boundaries_and_not_apart_from_themselves() -> None:
    """4.3: an infinity has a place among boundaries, and its delta to itself is nothing."""
    items = series(1.0, math.inf, math.inf, -math.inf)
    for kind in (BoundaryFrames(VALUE, 10), BoundaryFrames(VALUE, None, (0.0, 5.0)), DeltaFrames(VALUE, 3)):
        assert places(Frame(kind), items) == [(0, 0), (1, 2), (3, 3)]


@pytest.mark.parametrize(("size", "limit"), [(12, 3), (13, 3), (10, 1), (7, 20)])
def test_a_ramp_is_cut_by_its_rise(size: int, limit: int) -> None:
    """4.3, delta and boundary frames: a ramp of slope one has as many as its rise holds limits."""
    ramp = series(*range(size))
    assert len(places(Frame(DeltaFrames(VALUE, limit)), ramp)) == math.ceil(size / (limit + 1))
    assert len(places(Frame(DeltaFrames(VALUE, limit, open=True)), ramp)) == math.ceil(size / limit)
    assert len(places(Frame(BoundaryFrames(VALUE, limit)), ramp)) == math.ceil(size / limit)
    assert extents(Frame(TrendFrames(VALUE, Direction.RISING)), ramp) == [(1, size)]


@pytest.mark.parametrize(("size", "value", "limit"), [(10, 3, 9), (11, 3, 9), (12, 4, 7)])
def test_a_constant_is_cut_by_its_sum_only(size: int, value: int, limit: int) -> None:
    """4.3, delta and aggregate frames: a constant never moves, but its sum does."""
    flat = series(*[value] * size)
    assert len(places(Frame(DeltaFrames(VALUE, 0)), flat)) == len(places(Frame(BoundaryFrames(VALUE, 1)), flat)) == 1
    assert len(places(Frame(total(">=", limit)), flat)) == size // math.ceil(limit / value)
    assert len(places(Frame(total("<=", limit)), flat)) == math.ceil(size / (limit // value))
    assert places(Frame(TrendFrames(VALUE, Direction.FLAT)), flat) == [(0, size - 1)]


def test_items_without_a_value_stay_with_the_frame_before_them() -> None:
    """4.3, boundary and delta frames: nothing is known to have moved; before the first value there is no frame."""
    items = series(None, 1, None, 2, 9, math.nan, None)
    for kind in (BoundaryFrames(VALUE, 5), DeltaFrames(VALUE, 3)):
        assert places(Frame(kind), items) == [(1, 3), (4, 6)]
        assert places(Frame(kind, scheme=Scheme.UNCONSTRAINED), items) == [(1, 3), (3, 3), (4, 6)]


def test_an_aggregate_frame_closes_with_the_item_that_reaches_its_limit() -> None:
    """4.3, aggregate frames, minimal: a tail that reaches nothing is no frame."""
    assert places(Frame(total(">", 100)), series(60, 40, 1, 101, 50, 60, 99)) == [(0, 2), (3, 3), (4, 5)]


def test_an_aggregate_frame_ends_before_the_item_that_breaks_its_limit() -> None:
    """4.3, aggregate frames, maximal: an item that is too much alone is in no frame."""
    assert places(Frame(total("<=", 10)), series(4, 6, 1, 11, 12, 10, None, 0)) == [(0, 1), (2, 2), (5, 7)]
    assert places(Frame(total("<=", 10)), series(None, 11, None, 3)) == [(0, 0), (2, 3)]


def test_an_aggregate_without_a_value_has_not_reached_a_limit_nor_left_it() -> None:
    """4.3, aggregate frames: a sum of nothing is NULL."""
    assert places(Frame(total(">=", 0)), series(None, None, 3)) == [(0, 2)]
    assert places(Frame(total("<", 5)), series(None, None, 3)) == [(0, 2)]


@drawn
@given(numbers, st.sampled_from(["<", "<="]), st.integers(-5, 15))
def test_maximal_aggregate_frames_are_cut_at_their_first_violation(items: list[GroupItem], op: str, limit: int) -> None:
    """4.3, aggregate frames: the sum is within its limit at every item of a frame, and not with the one after it."""

    def within(first: int, last: int) -> bool:
        held: int = sum(item.values[0] for item in items[first : last + 1])
        return held <= limit if op == "<=" else held < limit

    for first, last in places(Frame(total(op, limit)), items):
        assert all(within(first, here) for here in range(first, last + 1))
        assert last + 1 == len(items) or not within(first, last + 1)


@drawn
@given(growing, numbers)
def test_minimal_aggregate_frames_have_no_shorter_beginning(kind: Dividing, items: list[GroupItem]) -> None:
    """4.3, aggregate frames: a minimal frame qualifies, and no beginning of it does."""
    for first, last in places(Frame(kind), items):
        assert candidate(kind, items, first, last)
        assert not any(candidate(kind, items, first, shorter) for shorter in range(first, last))


# ---- 4.3.1: notes --------------------------------------------------------------------------------------------------


@drawn
@given(st.one_of(st.tuples(st.just(THRESHOLD), truths), st.tuples(st.just(BoundaryFrames(VALUE, 4)), numbers)))
def test_the_union_of_overlapping_candidates_is_a_candidate(case: tuple[Any, list[GroupItem]]) -> None:
    """4.3.1, threshold and boundary frames."""
    kind, items = case
    found = set(candidates(kind, items))
    assert all((i, max(j, b)) in found for i, j in found for a, b in found if i <= a <= j)


@drawn
@given(covering, numbers)
def test_every_item_is_a_candidate_alone(kind: Dividing, items: list[GroupItem]) -> None:
    """4.3.1, boundary frames: coverage follows from single items that satisfy the predicate."""
    assert all(candidate(kind, items, place, place) for place in range(len(items)))


@drawn
@given(
    st.one_of(
        st.builds(DeltaFrames, st.just(VALUE), st.integers(1, 8)),
        st.builds(total, st.sampled_from(["<=", ">="]), st.integers(9, 30)),
    ),
    amounts,
)
def test_frames_from_later_starts_do_not_end_earlier(kind: Dividing, items: list[GroupItem]) -> None:
    """4.3.1, delta and aggregate frames: so none from a start properly contains one from an earlier start.

    Sums must not shrink for this: the amounts are not negative.
    """
    found = places(Frame(kind, scheme=Scheme.UNCONSTRAINED), items)
    assert all(b <= d for (_, b), (_, d) in pairwise(found))


@drawn
@given(covering, numbers)
def test_the_first_frame_of_a_drained_cover_decides_all_others(kind: Dividing, items: list[GroupItem]) -> None:
    """4.3.1: the framing is unique, because each frame gives the start of the next."""
    start, found = 0, []
    while start < len(items):
        last = dict(places(Frame(kind, scheme=Scheme.UNCONSTRAINED), items))[start]
        found.append((start, last))
        start = last + 1
    assert places(Frame(kind, scheme=Scheme.COVER, choice=Saturation.DRAINED), items) == found


# ---- 4.4: framing functions ----------------------------------------------------------------------------------------


@drawn
@given(st.integers(0, 9), st.one_of(truths.map(lambda s: (THRESHOLD, s)), st.tuples(covering | growing, numbers)))
def test_frames_once_closed_stay(cut: int, case: tuple[Any, list[GroupItem]]) -> None:
    """4.4, definition 5: the framing after an item extends the one before it."""
    kind, items = case
    closed = [f for f in find_frames(Frame(kind), items[:cut]) if f.last < cut - 1]
    assert find_frames(Frame(kind), items)[: len(closed)] == closed


def template(items: list[GroupItem], holds: Any) -> list[tuple[int, int]]:
    """The PARTITION template: one open frame, which the next item extends or closes."""
    closed: list[tuple[int, int]] = []
    opened: tuple[int, int] | None = None
    for place in range(len(items)):
        if opened is not None and holds([item.values[0] for item in items[opened[0] : place + 1]]):
            opened = opened[0], place
        else:
            closed += [opened] if opened else []
            opened = place, place
    return closed + ([opened] if opened else [])


@drawn
@given(numbers, st.integers(1, 9))
def test_partitions_are_what_the_template_makes_of_their_predicates(items: list[GroupItem], limit: int) -> None:
    """4.4, PARTITION: boundary, delta and aggregate frames are the template with their predicates."""
    predicates: list[tuple[Dividing, Any]] = [
        (DeltaFrames(VALUE, limit), lambda values: max(values) - min(values) <= limit),
        (DeltaFrames(VALUE, limit, open=True), lambda values: max(values) - min(values) < limit),
        (BoundaryFrames(VALUE, limit), lambda values: len({value // limit for value in values}) == 1),
        (number("<=", limit), lambda values: len(values) <= limit),
        (total("<=", limit + 8), lambda values: all(sum(values[:n]) <= limit + 8 for n in range(1, len(values) + 1))),
    ]
    for kind, holds in predicates:
        assert places(Frame(kind), items) == template(items, holds)


@drawn
@given(amounts, st.integers(1, 30))
def test_minimal_frames_are_the_template_asked_about_the_item_before(items: list[GroupItem], limit: int) -> None:
    """4.4, PARTITION: frames that grow are extended until what they hold qualifies; the tail may not."""
    found = template(items, lambda values: sum(values[:-1]) < limit)
    complete = [(i, j) for i, j in found if sum(item.values[0] for item in items[i : j + 1]) >= limit]
    assert places(Frame(total(">=", limit)), items) == complete


@drawn
@given(gappy, covering)
def test_missing_values_change_no_partition_of_the_others(items: list[GroupItem], kind: Dividing) -> None:
    """4.4: without the items that have no value, boundary and delta frames hold the same values."""
    if isinstance(kind, BoundaryFrames | DeltaFrames):
        known = [item for item in items if item.values[0] is not None]
        starts = [found.start for found in find_frames(Frame(kind), items)]
        assert starts == [found.start for found in find_frames(Frame(kind), known)]


# ---- appendix B: framing schemes over a sequence of temperatures -----------------------------------------------------


def test_f1_maximal_periods_above_freezing() -> None:
    """Appendix B, F1: (7, 9) is none, because (6, 9) contains it."""
    assert extents(Frame(THRESHOLD), above(32, TEMPERATURES)) == [(3, 4), (6, 9)]


def test_f2_the_maximum_period_above_freezing() -> None:
    """Appendix B, F2: only the longest of all; it is known when the stream has ended."""
    frame = Frame(THRESHOLD, span=Span.MAXIMUM)
    assert extents(frame, above(32, TEMPERATURES)) == [(6, 9)]
    assert frame.known_at_end
    assert not Frame(THRESHOLD).known_at_end


def test_f2_cannot_be_said_before_the_stream_ends() -> None:
    """Appendix B: a later, longer period takes the place of an earlier one; the earliest of equals stays."""
    frame = Frame(THRESHOLD, span=Span.MAXIMUM)
    assert extents(frame, reports("TTF")) == [(0, 1)]
    assert extents(frame, reports("TTFTT")) == [(0, 1)]
    assert extents(frame, reports("TTFTTT")) == [(3, 5)]


def test_f3_maximal_periods_of_rising_temperature() -> None:
    """Appendix B, F3: three time units are three reports there: (7, 9) holds those of 7, 8 and 9 and lasts two."""
    rising = TrendFrames(VALUE, Direction.RISING)
    assert extents(Frame(rising, least=FrameLength(3, rows=True)), TEMPERATURES) == [(1, 4), (7, 9)]
    assert extents(Frame(rising, least=FrameLength(3)), TEMPERATURES) == [(1, 4)]
    assert extents(Frame(rising), TEMPERATURES) == [(1, 4), (5, 6), (7, 9)]


def test_f1_with_a_least_duration() -> None:
    """Appendix B, F1': only the longer period lasts three time units, in time as in reports."""
    items = above(32, TEMPERATURES)
    assert extents(Frame(THRESHOLD, least=FrameLength(3)), items) == [(6, 9)]
    assert extents(Frame(THRESHOLD, least=FrameLength(3, rows=True)), items) == [(6, 9)]


def test_overlapping_high_loss_periods_are_one() -> None:
    """Appendix B: 10:13 to 10:20 and 10:18 to 10:23 cannot both be frames, because 10:13 to 10:23 is."""
    minutes = [GroupItem(minute, (13 <= minute <= 23,)) for minute in range(10, 30)]
    assert extents(Frame(THRESHOLD, least=FrameLength(5)), minutes) == [(13, 23)]


def test_trends_end_at_items_without_a_value() -> None:
    """Appendix B, F3 in other directions: the item that breaks a trend may begin the next; one without value none."""
    items = series(5, 4, 3, 4, 2, None, 1, 0, 0)
    assert places(Frame(TrendFrames(VALUE, Direction.FALLING)), items) == [(0, 2), (3, 4), (6, 7)]
    assert places(Frame(TrendFrames(VALUE, Direction.FLAT, 1)), items) == [(0, 3), (6, 8)]
    assert places(Frame(TrendFrames(VALUE, Direction.FLAT)), items) == [(7, 8)]
