"""Paper "Data-driven windows", appendices A, C, F and H: policies, imperfect streams, and how frames are reported."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.core.errors import BindProblem, SchemaProblem, WindowProblem
from panewise.frame.frame import (
    BetweenFrames,
    BoundaryFrames,
    CustomFrames,
    DeltaFrames,
    DensityFrames,
    Direction,
    Duplicates,
    Frame,
    FrameLength,
    Missing,
    Saturation,
    Schedule,
    Scheme,
    Span,
    StartPolicy,
    TrendFrames,
    WhileFrames,
)
from panewise.frame.functions import register_framing
from panewise.frame.scan import scan_chance
from panewise.reference.framing import FrameResult, GroupItem, find_frames, merge_duplicates
from tests.framing_functions import Alternating
from tests.framings import (
    CONDITION,
    VALUE,
    Dividing,
    covering,
    extents,
    number,
    numbers,
    places,
    reports,
    rows,
    series,
    total,
    truths,
)

drawn = settings(max_examples=60, deadline=None, derandomize=True)

THRESHOLD = WhileFrames(CONDITION)
RISING = TrendFrames(VALUE, Direction.RISING)


# ---- A: policies and contradictions ----------------------------------------------------------------------------------


@drawn
@given(
    st.one_of(st.tuples(st.just(THRESHOLD), truths), st.tuples(st.sampled_from([RISING, DensityFrames(3, 6)]), numbers))
)
def test_maximal_frames_are_disjoint(case: tuple[Any, list[GroupItem]]) -> None:
    """Appendix A: maximal intervals that overlapped could be united, so there are none."""
    kind, items = case
    assert all(b < c for (_, b), (c, _) in pairwise(places(Frame(kind), items)))


def marked(line: str) -> list[GroupItem]:
    """A time-line from time 0 of starts S, ends E, items that are both B, and others."""
    return [GroupItem(n, (sign in "SB", sign in "EB")) for n, sign in enumerate(line)]


def between(policy: StartPolicy) -> Frame:
    return Frame(BetweenFrames(CONDITION, CONDITION, policy))


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        (StartPolicy.CLOSE, [(1, 2), (3, 5), (8, 9), (10, 11)]),
        (StartPolicy.DROP, [(3, 5), (8, 9)]),
        (StartPolicy.CONTINUE, [(1, 5), (3, 5), (8, 9)]),
    ],
)
def test_a_start_inside_an_open_frame(policy: StartPolicy, found: list[tuple[int, int]]) -> None:
    """Appendix A: it closes and reports the open frame, or drops it, or both go on and end together."""
    assert extents(between(policy), marked(".S.S.E.ESES.S")) == found


@pytest.mark.parametrize("policy", StartPolicy)
def test_an_item_that_is_both_start_and_end(policy: StartPolicy) -> None:
    """Appendix A: it opens a frame where none is open, and otherwise only closes."""
    assert extents(between(policy), marked("B.B.B")) == [(0, 2)]
    assert extents(between(policy), marked("BE")) == [(0, 1)]


def test_the_three_policies_differ_only_where_starts_come_too_early() -> None:
    """Appendix A: without a start inside an open frame there is nothing to decide."""
    assert len({tuple(extents(between(policy), marked("E.S.E.SE..B.E.S"))) for policy in StartPolicy}) == 1


@drawn
@given(st.text("SEB.", max_size=14))
def test_what_each_policy_gives_up(line: str) -> None:
    """Appendix A: closing reports frames without an end, dropping loses starts, continuing overlaps."""
    items = marked(line)
    closed, dropped, continued = (places(between(policy), items) for policy in StartPolicy)
    ended = [f for f in continued if items[f[1]].values[1]]
    assert continued == ended
    assert set(dropped) <= set(continued)
    assert set(dropped) <= set(closed)
    for found in (closed, dropped):
        assert all(b < c for (_, b), (c, _) in pairwise(found))
    assert {last for _, last in dropped} == {last for _, last in continued}


def test_unknown_neither_starts_nor_ends() -> None:
    """Appendix A: of what is unknown nobody can say that it holds."""
    items = [
        GroupItem(0, (None, None)),
        GroupItem(1, (True, None)),
        GroupItem(2, (None, None)),
        GroupItem(3, (None, True)),
    ]
    assert extents(between(StartPolicy.CLOSE), items) == [(1, 3)]


LEAST, MOST = FrameLength(5), FrameLength(3)

CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"kind": THRESHOLD, "least": FrameLength(-1)}, "AT LEAST -1 is not positive"),
    ({"kind": THRESHOLD, "most": FrameLength(0)}, "AT MOST 0 is not positive"),
    ({"kind": THRESHOLD, "fragments": FrameLength(0)}, "FRAGMENTS EVERY 0 is not positive"),
    ({"kind": THRESHOLD, "least": LEAST, "most": MOST}, "frames cannot last at least longer than they last at most"),
    ({"kind": DeltaFrames(VALUE, -2)}, "DELTA -2 is negative"),
    ({"kind": BoundaryFrames(VALUE, 0)}, "a boundary every 0 is not positive"),
    ({"kind": BoundaryFrames(VALUE, None, (2.0, 1.0))}, "the boundaries do not rise"),
    ({"kind": DensityFrames(1, 5)}, "a density of 1 says nothing"),
    ({"kind": DensityFrames(2, 5, chance=1.5, expected=1)}, "CHANCE 1.5 is no probability"),
    ({"kind": DensityFrames(2, 5, chance=0.1, expected=0)}, "EXPECTED 0 is not positive"),
    (
        {"kind": THRESHOLD, "scheme": Scheme.PARTITION},
        "PARTITION wants every item in a frame, but some are in none",
    ),
    ({"kind": RISING, "scheme": Scheme.COVER}, "COVER wants every item in a frame, but some are in none"),
    (
        {"kind": DeltaFrames(VALUE, 1), "scheme": Scheme.ADJACENT, "least": LEAST},
        "ADJACENT wants every item in a frame, but conditions drop some",
    ),
    (
        {"kind": total(">", 1), "span": Span.MAXIMAL},
        "frames whose aggregate is > a value grow without end once they qualify",
    ),
    ({"kind": total("<", 1), "span": Span.MINIMAL}, "frames whose aggregate is < a value hold a shorter one each"),
    ({"kind": THRESHOLD, "span": Span.MINIMAL}, "every single item would be a MINIMAL frame"),
    (
        {"kind": DeltaFrames(VALUE, 1), "scheme": Scheme.UNCONSTRAINED, "choice": Saturation.DRAINED},
        "no frame at all is DRAINED and UNCONSTRAINED",
    ),
    (
        {"kind": THRESHOLD, "span": Span.MAXIMUM, "fragments": LEAST},
        "the longest frame is known at the end only, so it has no fragments",
    ),
    (
        {"kind": THRESHOLD, "most": MOST, "fragments": LEAST},
        "a frame with AT MOST is certain only at its end, so it has no fragments",
    ),
    (
        {"kind": DeltaFrames(VALUE, 1), "scheme": Scheme.ADVANCING, "fragments": LEAST},
        "frames that overlap have no fragments",
    ),
    (
        {"kind": BetweenFrames(CONDITION, CONDITION, StartPolicy.CONTINUE), "fragments": LEAST},
        "these frames are certain only at their end, so they have no fragments",
    ),
    ({"kind": RISING, "schedule": Schedule(5)}, "reports can be missing from WHILE frames only"),
    ({"kind": THRESHOLD, "schedule": Schedule(0), "duplicates": Duplicates.ERROR}, "EVERY 0 is not positive"),
    (
        {"kind": THRESHOLD, "schedule": Schedule(5)},
        "EVERY expects one report at a time, but DUPLICATES KEEP allows more",
    ),
    ({"kind": DeltaFrames(VALUE, 0, open=True)}, "any two values are at least 0 apart"),
    ({"kind": DensityFrames(2, 5, chance=0.1)}, "CHANCE and EXPECTED need each other"),
]


@pytest.mark.parametrize(("spec", "sentence"), CONTRADICTIONS, ids=[sentence for _, sentence in CONTRADICTIONS])
def test_conflicting_conditions_are_refused(spec: dict[str, Any], sentence: str) -> None:
    """Appendix A: care has to be taken not to specify conflicting conditions."""
    with pytest.raises(WindowProblem) as refusal:
        Frame(**spec)
    assert refusal.value.message == sentence
    assert refusal.value.fix


def test_a_framing_function_of_somebody_else() -> None:
    """4.4, definition 5: a function opens, updates and closes frames, by a name that can be imported or registered."""
    register_framing("alternating", Alternating)
    for name in ("alternating", "tests.framing_functions:Alternating"):
        assert extents(Frame(CustomFrames(name, VALUE)), series(1, 2, 3, 5, 6, 8)) == [(1, 3), (4, 5), (6, 6)]


@pytest.mark.parametrize("name", ["nobody", "no.such.module:Thing", "tests.framing_functions:Nothing"])
def test_a_framing_function_that_is_nowhere(name: str) -> None:
    with pytest.raises(BindProblem, match="framing function"):
        find_frames(Frame(CustomFrames(name, VALUE)), series(1, 2))


# ---- C: missing data -------------------------------------------------------------------------------------------------


def scheduled(missing: Missing, every: int = 1, **more: Any) -> Frame:
    return Frame(THRESHOLD, schedule=Schedule(every, missing), duplicates=Duplicates.ERROR, **more)


def test_figure_9_two_reports_are_missing() -> None:
    """Appendix C, figure 9: if A is true and B false, 3 and 4 are true in a row; if both are true, 8 are."""
    neither, a_came = "T-T-TTTT", "TTT-TTTT"
    assert [f.rows for f in find_frames(scheduled(Missing.FAILS), reports(a_came))] == [3, 4]
    for missing in (Missing.QUALIFIES, Missing.NEIGHBOURS):
        assert rows(find_frames(scheduled(missing), reports(neither))) == [(0, 0, 7, 6, 2, True)]
    assert [f.rows for f in find_frames(scheduled(Missing.FAILS), reports(neither))] == [1, 1, 4]


@pytest.mark.parametrize(
    ("missing", "found"),
    [
        (Missing.FAILS, [(20, 20, 20, 1, 0, True), (80, 80, 80, 1, 0, True), (140, 140, 140, 1, 0, True)]),
        (Missing.QUALIFIES, [(20, 20, 100, 2, 3, True), (140, 140, 140, 1, 0, True)]),
        (Missing.NEIGHBOURS, [(20, 20, 80, 2, 2, True), (140, 140, 140, 1, 0, True)]),
    ],
)
def test_what_missing_reports_count_as(missing: Missing, found: list[Any]) -> None:
    """Appendices C and F: as not satisfying, as satisfying, or as satisfying in the midst of others that do."""
    assert rows(find_frames(scheduled(missing, 20), reports("FT--T-FT", 20))) == found


def test_a_frame_never_begins_with_a_missing_report() -> None:
    """Appendix F: a frame begins with a known value that satisfies the predicate."""
    assert extents(scheduled(Missing.QUALIFIES), reports("F-T-?-T")) == [(2, 3), (6, 6)]


def test_missing_reports_count_for_lengths() -> None:
    """Appendix C: how missing data is interpreted affects the extents of frames, and so which are long enough."""
    long = FrameLength(4, rows=True)
    assert extents(scheduled(Missing.QUALIFIES, least=long), reports("T--F")) == []
    assert extents(scheduled(Missing.QUALIFIES, least=long), reports("T---F")) == [(0, 3)]
    assert extents(scheduled(Missing.NEIGHBOURS, least=long), reports("T---F")) == []
    assert extents(scheduled(Missing.NEIGHBOURS, least=long), reports("T--T")) == [(0, 3)]


@drawn
@given(st.text("TTF?-", max_size=14).map(lambda line: line.lstrip("-")))
def test_missing_data_is_data_that_would_have_made_the_same_frames(line: str) -> None:
    """Appendix C: each policy is the framing of the stream with the missing reports filled in accordingly."""

    def filled(line: str, sign: str) -> list[tuple[int, int]]:
        return extents(Frame(THRESHOLD), reports(line.rstrip("-").replace("-", sign)))

    assert extents(scheduled(Missing.FAILS), reports(line)) == filled(line, "F")
    held, midst = qualifying(line.rstrip("-")), surrounded(line.rstrip("-"))
    assert extents(scheduled(Missing.QUALIFIES), reports(line)) == filled(held, "F")
    assert extents(scheduled(Missing.NEIGHBOURS), reports(line)) == filled(midst, "F")


def qualifying(line: str) -> str:
    """Missing reports become true after true ones."""
    for place, sign in enumerate(line):
        if sign == "-" and line[place - 1] == "T":
            line = f"{line[:place]}T{line[place + 1 :]}"
    return line


def surrounded(line: str) -> str:
    """Missing reports become true between true ones."""
    groups = ["".join(group) for _, group in groupby(line, key=lambda sign: sign == "-")]
    for before, gap, after in zip(range(len(groups)), range(1, len(groups)), range(2, len(groups)), strict=False):
        if groups[gap][0] == "-" and groups[before][-1] == groups[after][0] == "T":
            groups[gap] = "T" * len(groups[gap])
    return "".join(groups)


def test_a_report_off_the_schedule_is_refused() -> None:
    """Appendix C: a reporting schedule is a promise of the stream."""
    items = [GroupItem(time, (True,)) for time in (5, 25, 65, 70)]
    with pytest.raises(SchemaProblem, match="a report at 70 contradicts EVERY 20: the next was expected at 85"):
        find_frames(scheduled(Missing.FAILS, 20), items)


# ---- C: extents, data semantics, uniqueness of time, groups ----------------------------------------------------------


@pytest.mark.parametrize(
    ("liberal", "lasting", "found"),
    [
        (False, False, [(0, 10), (30, 40), (60, 60)]),
        (True, False, [(0, 20), (20, 50), (50, 60)]),
        (False, True, [(0, 20), (30, 50), (60, 60)]),
        (True, True, [(0, 20), (30, 50), (60, 60)]),
    ],
)
def test_how_far_frames_reach(liberal: bool, lasting: bool, found: list[tuple[int, int]]) -> None:
    """Appendix C: from what is sure to what is possible; and reports may stand until the next one."""
    assert extents(Frame(THRESHOLD, liberal=liberal, lasting=lasting), reports("TTFTTFT", 10)) == found


def test_durations_are_those_of_the_reported_extent() -> None:
    """Appendix C: different interpretations lead to different boundaries, and lengths are judged by these."""
    items, least = reports("FTTF", 10), FrameLength(20)
    assert extents(Frame(THRESHOLD, least=least), items) == []
    assert extents(Frame(THRESHOLD, least=least, lasting=True), items) == [(10, 30)]
    assert extents(Frame(THRESHOLD, least=FrameLength(30), lasting=True), items) == []
    assert extents(Frame(THRESHOLD, least=FrameLength(30), liberal=True), items) == [(0, 30)]


def test_the_longest_frame_is_the_longest_as_reported() -> None:
    """Appendix C and F2: by duration, then by reports, then the earliest."""
    items = [
        GroupItem(time, (truth,)) for time, truth in [(0, True), (2, True), (3, False), (4, True), (5, True), (6, True)]
    ]
    assert places(Frame(THRESHOLD, span=Span.MAXIMUM), items) == [(3, 5)]
    assert places(Frame(THRESHOLD, span=Span.MAXIMUM, lasting=True), items) == [(0, 1)]


@drawn
@given(covering, numbers)
def test_lasting_partitions_leave_no_time_between_frames(kind: Dividing, items: list[GroupItem]) -> None:
    """Appendix C and 4.2: where items stand until the next one, each frame begins when the one before ends."""
    assert all(b == c for (_, b), (c, _) in pairwise(extents(Frame(kind, lasting=True), items)))


TWICE = [GroupItem(1, (4,)), GroupItem(2, (1,)), GroupItem(2, (9,)), GroupItem(2, (None,)), GroupItem(3, (6,))]


@pytest.mark.parametrize(
    ("duplicates", "seen"),
    [
        (Duplicates.KEEP, [(4, [0]), (1, [1]), (9, [2]), (None, [3]), (6, [4])]),
        (Duplicates.FIRST, [(4, [0]), (1, [1]), (6, [4])]),
        (Duplicates.LAST, [(4, [0]), (None, [3]), (6, [4])]),
        (Duplicates.AVG, [(4, [0]), (5, [1, 2, 3]), (6, [4])]),
        (Duplicates.MIN, [(4, [0]), (1, [1, 2, 3]), (6, [4])]),
        (Duplicates.MAX, [(4, [0]), (9, [1, 2, 3]), (6, [4])]),
        (Duplicates.SUM, [(4, [0]), (10, [1, 2, 3]), (6, [4])]),
    ],
)
def test_several_reports_at_one_time(duplicates: Duplicates, seen: list[Any]) -> None:
    """Appendix C, uniqueness of time: several readings are kept, chosen from or aggregated before frames are made."""
    found = merge_duplicates(Frame(RISING, duplicates=duplicates), TWICE)
    assert [(item.values[0], stands_for) for item, stands_for in found] == seen


def test_treatment_of_duplicates_affects_which_frames_exist() -> None:
    """Appendix C, uniqueness of time: preprocessing can affect existence and duration of frames."""
    by_treatment = {d: places(Frame(RISING, duplicates=d), TWICE) for d in Duplicates if d is not Duplicates.ERROR}
    assert by_treatment[Duplicates.AVG] == [(0, 2)]
    assert by_treatment[Duplicates.MIN] == [(1, 2)]
    assert by_treatment[Duplicates.SUM] == by_treatment[Duplicates.MAX] == [(0, 1)]
    assert by_treatment[Duplicates.KEEP] == [(1, 2)]
    assert by_treatment[Duplicates.LAST] == []


@pytest.mark.parametrize(
    ("duplicates", "merged"),
    [
        (Duplicates.MIN, [False, False, True, None]),
        (Duplicates.MAX, [True, True, True, None]),
        (Duplicates.SUM, [True, True, True, None]),
        (Duplicates.AVG, [False, True, True, None]),
    ],
)
def test_conditions_are_merged_as_conditions(duplicates: Duplicates, merged: list[Any]) -> None:
    """Appendix C, uniqueness of time: all, any or most of the known ones must hold."""
    lines: list[list[bool | None]] = [[True, False], [True, True, False], [True, None], [None, None]]
    items = [GroupItem(time, (truth,)) for time, line in enumerate(lines) for truth in line]
    assert [item.values[0] for item, _ in merge_duplicates(Frame(THRESHOLD, duplicates=duplicates), items)] == merged


def test_duplicates_may_be_errors() -> None:
    """Appendix C, uniqueness of time: timestamps are required to be unique where nothing else is said."""
    with pytest.raises(SchemaProblem, match="two reports of one group have the time 2"):
        find_frames(Frame(RISING, duplicates=Duplicates.ERROR), TWICE)
    assert places(Frame(RISING, duplicates=Duplicates.ERROR), series(1, 2)) == [(0, 1)]


def test_groups_have_frames_of_their_own() -> None:
    """Appendix C, groupwise frames: starts, ends and numbers differ from group to group."""
    groups = {"a": reports("TTFFT"), "b": reports("FTTTF")}
    found = {key: [(f.number, f.start, f.end) for f in find_frames(Frame(THRESHOLD), g)] for key, g in groups.items()}
    assert found == {"a": [(0, 0, 1), (4, 4, 4)], "b": [(1, 1, 3)]}


# ---- F: the Frame operator: durations and fragments ------------------------------------------------------------------


def test_five_high_loss_reports_are_one_frame() -> None:
    """Appendix F: with at least 3 reports, 5 in a row are one frame and not three of length 3."""
    assert rows(find_frames(Frame(THRESHOLD, least=FrameLength(3, rows=True)), reports("FTTTTTF"))) == [
        (1, 1, 5, 5, 0, True)
    ]


def test_a_long_frame_is_told_in_fragments() -> None:
    """Appendix F: the initial one as soon as the least duration is reached, then incremental ones, then the final."""
    frame = Frame(THRESHOLD, least=FrameLength(2, rows=True), fragments=FrameLength(3, rows=True))
    assert rows(find_frames(frame, reports("FTTTTTTTTTFTF" + "TT"))) == [
        (1, 1, 2, 2, 0, False),
        (1, 1, 5, 5, 0, False),
        (1, 1, 8, 8, 0, False),
        (1, 1, 9, 9, 0, True),
        (13, 13, 14, 2, 0, False),
        (13, 13, 14, 2, 0, True),
    ]


def test_fragments_by_time_come_with_the_first_item_that_is_late_enough() -> None:
    """Appendices C and F: a frame is not told again every time it is extended."""
    items = [GroupItem(time, (True,)) for time in (0, 4, 9, 11, 20, 21, 30)]
    found = find_frames(Frame(THRESHOLD, fragments=FrameLength(10)), items)
    assert [(f.end, f.final) for f in found] == [(0, False), (11, False), (21, False), (30, True)]


def test_missing_reports_count_in_fragments() -> None:
    """Appendix F: the least duration and the growth include missing reports once the next report has come."""
    frame = scheduled(Missing.QUALIFIES, least=FrameLength(3, rows=True), fragments=FrameLength(2, rows=True))
    assert rows(find_frames(frame, reports("T--T-TT--F"))) == [
        (0, 0, 3, 2, 2, False),
        (0, 0, 5, 3, 3, False),
        (0, 0, 8, 4, 5, True),
    ]


def test_fragments_of_liberal_frames_begin_where_the_frame_does() -> None:
    """Appendices C and F: the start is known from the first item on, the end is that of the item that is told."""
    frame = Frame(THRESHOLD, liberal=True, least=FrameLength(20), fragments=FrameLength(10))
    found = find_frames(frame, reports("FTTTF", 10))
    assert [(f.start, f.end, f.final) for f in found] == [(0, 20, False), (0, 30, False), (0, 40, True)]


def test_fragments_wait_for_the_item_that_must_be_there() -> None:
    """Appendix F: before a frame is certain nothing is told."""
    items = [GroupItem(n, (True, n == 2)) for n in range(5)]
    found = find_frames(Frame(THRESHOLD, some=CONDITION, fragments=FrameLength(1)), items)
    assert [(f.end, f.final) for f in found] == [(2, False), (3, False), (4, False), (4, True)]


def test_trends_are_certain_with_their_first_two_items() -> None:
    """Appendix F: one item alone rises nowhere."""
    found = find_frames(Frame(RISING, fragments=FrameLength(1)), series(1, 2, 3, 4, 5))
    assert [f.end for f in found] == [2, 3, 4, 5, 5]


@pytest.mark.parametrize("kind", [number(">=", 4), BetweenFrames(CONDITION, CONDITION), DensityFrames(2, 5)])
def test_frames_that_only_their_end_makes_certain_have_no_fragments(kind: Any) -> None:
    """Appendix F: an initial fragment is told where a frame will certainly be."""
    with pytest.raises(WindowProblem, match="certain only at their end"):
        Frame(kind, fragments=FrameLength(1))


@drawn
@given(truths, st.integers(0, 6), st.integers(1, 6), st.booleans())
def test_fragments_grow_into_their_frame(items: list[GroupItem], least: int, every: int, in_rows: bool) -> None:
    """Appendix F: they share its number and start, rise by the amount asked for, and leave its end to the final one."""
    frame = Frame(THRESHOLD, least=FrameLength(least, in_rows), fragments=FrameLength(every, in_rows))
    found = find_frames(frame, items)
    assert [f for f in found if f.final] == find_frames(replace(frame, fragments=None), items)
    for _, told in groupby(found, key=lambda f: f.number):
        check_growth(list(told), frame)


def check_growth(told: list[FrameResult], frame: Frame) -> None:
    least, every = frame.least, frame.fragments
    assert least is not None
    assert every is not None
    *fragments, final = told
    assert final.final
    assert not any(f.final for f in fragments)
    assert {(f.start, f.first) for f in fragments} <= {(final.start, final.first)}
    assert all(f.length(least) >= least.amount and f.last <= final.last for f in fragments)
    assert all(b.length(every) - a.length(every) >= every.amount for a, b in pairwise(fragments))


# ---- B and H: density ------------------------------------------------------------------------------------------------


def instants(*times: int) -> list[GroupItem]:
    return [GroupItem(time, ()) for time in times]


def test_crowds_are_clusters_that_share_items() -> None:
    """Appendix H: frames by density; per so many ticks means that the first and the last are less than that apart."""
    items = instants(0, 10, 14, 18, 22, 40, 49, 58, 70, 71, 72)
    assert places(Frame(DensityFrames(3, 10)), items) == [(1, 4), (8, 10)]
    assert places(Frame(DensityFrames(2, 10)), items) == [(1, 4), (5, 7), (8, 10)]
    assert places(Frame(DensityFrames(3, 9)), items) == [(1, 4), (8, 10)]
    assert places(Frame(DensityFrames(3, 8)), items) == [(8, 10)]


@drawn
@given(numbers, st.integers(2, 4), st.integers(1, 12))
def test_an_item_is_in_a_crowd_if_it_is_in_a_cluster(items: list[GroupItem], count: int, per: int) -> None:
    """Appendix H: crowds hold what clusters hold, and no cluster lies across two crowds."""
    size = len(items)
    clusters = [
        range(first, first + count)
        for first in range(size - count + 1)
        if items[first + count - 1].time - items[first].time < per
    ]
    found = [range(first, last + 1) for first, last in places(Frame(DensityFrames(count, per)), items)]
    assert {p for crowd in found for p in crowd} == {p for cluster in clusters for p in cluster}
    assert all(any(set(cluster) <= set(crowd) for crowd in found) for cluster in clusters)


def test_crowds_that_chance_explains_are_no_frames() -> None:
    """Appendix H: a frame is told if the probability of such a cluster is small enough."""
    crowd, usual = range(100, 109), (200, 204, 208)
    items = instants(*crowd, *usual)
    assert places(Frame(DensityFrames(3, 10)), items) == [(0, 8), (9, 11)]
    assert places(Frame(DensityFrames(3, 10, chance=0.05, expected=1.0)), items) == [(0, 8)]
    assert places(Frame(DensityFrames(3, 10, chance=0.05, expected=0.1)), items) == [(0, 8), (9, 11)]
    assert places(Frame(DensityFrames(3, 10, chance=0.05, expected=9.0)), items) == []


def test_chance_is_judged_by_the_densest_part_and_the_length_of_a_frame() -> None:
    """Appendix H: a crowd is the less strange the longer the stretch that has it, and its ends are not both in it."""
    short, long = instants(*range(0, 12, 4)), instants(*range(0, 240, 4))
    likely = scan_chance(3, 0.5, 2), scan_chance(3, 0.5, (240 - 4) / 10)
    between_both = DensityFrames(3, 10, chance=sum(likely) / 2, expected=0.5)
    assert places(Frame(between_both), short) == [(0, 2)]
    assert places(Frame(between_both), long) == []
    pairs_only = DensityFrames(2, 10, chance=(scan_chance(2, 0.1, 2) + scan_chance(3, 0.1, 2)) / 2, expected=0.1)
    assert places(Frame(pairs_only), instants(0, 5, 10)) == []
    assert places(Frame(pairs_only), instants(0, 5, 9)) == [(0, 2)]
