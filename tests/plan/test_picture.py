"""The picture of a manager: well-formed, complete, and readable with many frames."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as Xml

import pytest

from panewise.core.time import Domain
from panewise.plan.explain.picture import COLOURS, LISTED_GROUPS, picture
from panewise.plan.rules.group_windows import GroupingPolicy, WindowManager, WindowRole, WindowShape

SMALL = WindowManager.subsume(
    [
        WindowShape(6, 2),
        WindowShape(6, 4),
        WindowShape(24, 8),
        WindowShape(9, 3),
        WindowShape(18, 3),
        WindowShape(32, 4),
    ]
)
LARGE = WindowManager.subsume(WindowShape(size, slide) for slide in range(7, 40) for size in range(slide, 90, 9))


def drawn(manager: WindowManager, title: str = "groups", domain: Domain = Domain.INTEGER) -> Xml.Element:
    return Xml.fromstring(picture(manager, title, domain))


def classes(svg: Xml.Element) -> Counter[str]:
    return Counter(element.get("class", "") for element in svg.iter())


def words(svg: Xml.Element, kind: str) -> list[str]:
    return [element.text or "" for element in svg.iter() if element.get("class") == kind]


@pytest.mark.parametrize("manager", [SMALL, LARGE], ids=["small", "large"])
def test_every_frame_has_the_mark_of_its_role(manager: WindowManager) -> None:
    roles = Counter(group.role(frame) for group in manager.groups for frame in group.shapes)
    found = classes(drawn(manager))
    assert {role: found[f"mark {role.value}"] for role in WindowRole} == {role: roles[role] for role in WindowRole}
    assert found["edge sequence"] == found["group"] == found["number"] == len(manager.groups)
    assert found["edge piggybacked"] == roles[WindowRole.PIGGYBACKED]


def test_a_sequence_is_drawn_in_order() -> None:
    svg = drawn(SMALL)
    lines = [element for element in svg.iter() if element.get("class") == "edge sequence"]
    for line, group in zip(lines, SMALL.groups, strict=True):
        places = [tuple(map(float, place.split(","))) for place in line.get("points", "").split()]
        assert len(places) == len(group.nodes)
        assert [x for x, _ in places] == sorted(x for x, _ in places)


def test_quotients_stand_on_the_edges() -> None:
    assert words(drawn(SMALL), "quotient") == ["q=2"]


def test_frames_have_names_while_there_is_room() -> None:
    named = words(drawn(SMALL), "frame")
    assert sorted(named) == sorted(str(frame) for frame in SMALL.shapes)
    large = drawn(LARGE)
    assert len(LARGE.shapes) > 60
    assert not words(large, "frame")
    assert not words(large, "quotient")


def test_every_mark_tells_its_frame_under_the_pointer() -> None:
    svg = drawn(LARGE)
    marks = [element for element in svg.iter() if element.get("class", "").startswith("mark ")]
    told = [mark.findtext("{*}title") for mark in marks]
    assert Counter(told) == Counter(str(frame) for frame in LARGE.shapes)


def test_groups_are_told_apart_by_number_where_colours_repeat() -> None:
    svg = drawn(LARGE)
    assert len(LARGE.groups) > len(COLOURS)
    assert words(svg, "number") == [str(group.number) for group in LARGE.groups]


def test_the_legend_names_roles_and_groups_and_stays_short() -> None:
    svg = drawn(SMALL)
    assert words(svg, "role") == [role.value for role in WindowRole]
    assert len(words(svg, "entry")) == len(SMALL.groups)
    assert words(svg, "entry")[0] == "0: 3 frames, cost 7"
    entries = words(drawn(LARGE), "entry")
    assert len(entries) == LISTED_GROUPS + 1
    assert entries[-1] == f"and {len(LARGE.groups) - LISTED_GROUPS} more groups"


def test_axes_have_names_and_round_ticks() -> None:
    svg = drawn(SMALL)
    assert words(svg, "axis-label") == ["range", "slide"]
    assert words(svg, "tick-label") == [str(n) for n in (*range(5, 33, 5), *range(1, 9))]


def test_lengths_of_time_are_written_as_such() -> None:
    minute = 60_000_000
    svg = drawn(WindowManager.pack([WindowShape(60 * minute, 5 * minute)]), domain=Domain.TIMESTAMP)
    assert words(svg, "frame") == ["<1 HOUR, 5 MINUTES>"]
    assert words(svg, "tick-label")[:2] == ["10 MINUTES", "20 MINUTES"]


@pytest.mark.parametrize("title", ["a < b & 'c' \"d\" > ]]>", "Ω ω β", ""])
def test_titles_are_escaped(title: str) -> None:
    svg = drawn(SMALL, title)
    assert svg.findtext("{*}title", "") == title
    assert words(svg, "title") == [title]


def test_titles_lose_what_xml_cannot_say() -> None:
    assert words(drawn(SMALL, "a\x00b\x1b\ud800c"), "title") == ["abc"]


@pytest.mark.parametrize("policy", list(GroupingPolicy))
def test_an_empty_manager_is_an_empty_plane(policy: GroupingPolicy) -> None:
    svg = drawn(WindowManager(policy))
    assert not [name for name in classes(svg) if name.startswith("mark")]
    assert words(svg, "axis-label") == ["range", "slide"]
