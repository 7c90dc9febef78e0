"""Grouping as in the paper: sequences of frames, each subsumable under the next.

Paper: "Subsuming windows", Algorithm 1 and section 3.3.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from panewise.plan.rules.group_windows.groups import WindowGroup
from panewise.plan.rules.group_windows.shapes import WindowShape, by_size


@dataclass(slots=True)
class _Sequence:
    """A group while the sweep is building it: its base slide and the last node."""

    base: int
    slide: int
    range: int
    frames: list[WindowShape]


def subsume(frames: Iterable[WindowShape]) -> list[list[WindowShape]]:
    """SubsumeWindows: distinct frames, in any order, as groups in the order in which they were begun.

    A sweep over growing ranges probes the last node of each group whose base slide divides the frame's, by descending
    base slide; of equal base slides, the older group first.
    """
    ascending = sorted(frames, key=by_size)
    #: For each slide, the groups whose base slide divides it, in the order in which they are probed.
    candidates: dict[int, list[_Sequence]] = {frame.slide: [] for frame in ascending}
    longest = max(candidates, default=0)
    groups: list[_Sequence] = []
    for frame in ascending:
        slide = frame.slide
        for group in candidates[slide]:
            if slide % group.slide == 0:  # the sweep has seen to the ranges
                group.frames.append(frame)
                if frame.range > group.range:  # enclosing; otherwise it rides on the node there is
                    group.range, group.slide = frame.range, slide
                break
        else:
            group = _Sequence(slide, slide, frame.range, [frame])
            groups.append(group)
            for multiple in _multiples(slide, candidates, longest):
                insort(candidates[multiple], group, key=_negative_base)
    return [group.frames for group in groups]


def _multiples(slide: int, slides: Collection[int], longest: int) -> list[int]:
    """Those of the slides that a slide divides, found by whichever is shorter: counting up, or trying all."""
    multiples = range(slide, longest + 1, slide)
    if len(multiples) < len(slides):
        return [multiple for multiple in multiples if multiple in slides]
    return [multiple for multiple in slides if multiple % slide == 0]


def _negative_base(group: _Sequence) -> int:
    return -group.base


def find_group(groups: Iterable[WindowGroup], frame: WindowShape) -> WindowGroup | None:
    """embedWindow: the group that takes in a new frame, or None if the frame has to begin one.

    Looks at groups with a base slide that divides the frame's or is a multiple of it, by descending base slide.
    """
    slide = frame.slide
    related = []
    for group in groups:
        seed = group.seed
        # Under a longer base slide, the frame can be nothing but the new seed.
        if slide % seed.slide == 0 or (seed.slide % slide == 0 and frame.range <= seed.range):
            related.append((-seed.slide, group.number, group))
    return next((group for _, _, group in sorted(related) if can_embed(group, frame)), None)


def can_embed(group: WindowGroup, frame: WindowShape) -> bool:
    """Whether the sequence of a group stays one of subsumable frames when a new frame is put at its place in it.

    This is the paper's canEmbed for the first wider node, with two conditions its text leaves out. A frame put before
    the first wider node also comes after a narrower one, which must be subsumable under it. And a node of the very
    same range comes before both: the frame rides on it, or, if it slides more often, takes its place. Putting a frame
    after the first wider node, the third case of the text, contradicts Definition 1 and never succeeds.
    """
    below, same, above = group.neighbours(frame.range)
    if same is not None and same.subsumable_under(frame):
        return True
    if below is not None and not below.subsumable_under(frame):
        return False
    wider = above if same is None else same
    return wider is None or frame.subsumable_under(wider)


def misfits(group: WindowGroup, size: int) -> list[WindowShape]:
    """The frames of one range that cannot stay in the sequence after the node they rode on has left.

    The one with the shortest slide replaces the node. The text leaves out that this slide has to divide that of the
    next node, and those of the other orphans: an orphan that cannot be the node nor ride on it has to go.
    """
    orphans = list(group.shapes_of_range(size))
    _, _, above = group.neighbours(size)
    fitting = (frame for frame in orphans if above is None or frame.subsumable_under(above))
    replacement = next(fitting, None)
    if replacement is None:
        return orphans
    return [frame for frame in orphans if not replacement.subsumable_under(frame)]
