"""Kept panes: every index answers as merging does, whatever comes, goes or comes late; and the planner's choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panewise.aggregate import Count, First, Items, Max, Median, Quantile, Sum
from panewise.core.errors import StateProblem
from panewise.core.time import Domain
from panewise.engine.lookups import archive as archives
from panewise.engine.lookups.archive import Archive
from panewise.plan.rules.choose_index import IndexChoice, LookupUsage, choose_index
from panewise.stores.dense import BaseArrayIndex, LandmarkIndex, RunningIndex
from panewise.stores.indexes import BaseIntervalIndex, PaneIndex, RecomputeIndex
from panewise.stores.pane import Pane
from panewise.stores.ranked import QuantileIndex

pytestmark = pytest.mark.slow

GROUPS = 4
COLUMNS = [
    Count(pa.int64()).state_arrays(),
    Sum(pa.int64()).state_arrays(),
    Max(pa.int64()).state_arrays(),
    Median(pa.int64()).state_arrays(),
    Quantile(pa.int64(), phi="0.3").state_arrays(),
]


@dataclass(frozen=True)
class Cell:
    """Some items of one group in one pane of width 2."""

    number: int
    group: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """Panes `first` to `last`, of some groups."""

    first: int
    last: int
    groups: tuple[int, ...]


GROUP = st.integers(0, GROUPS - 1)
CELLS = st.builds(Cell, st.integers(0, 20), GROUP, st.lists(st.integers(-9, 9), min_size=1).map(tuple))
SOME = st.sets(GROUP, min_size=1).map(sorted).map(tuple)
QUESTIONS = st.builds(Question, st.integers(0, 22), st.integers(0, 22), SOME)


def pane(cell: Cell) -> Pane:
    items = Items((pa.array(cell.values, pa.int64()),), *(np.zeros(len(cell.values), np.int64) for _ in range(2)))
    states = tuple(column.gather(np.zeros(len(cell.values), np.int64), items, 1) for column in COLUMNS)
    return Pane(2 * cell.number, 2 * cell.number + 2, np.array([cell.group]), states)


def answers(archive: Archive, questions: list[Question], groups: tuple[int, ...]) -> list[Any]:
    lows = np.array([2 * q.first for q in questions], np.int64)
    highs = np.maximum(lows, np.array([2 * q.last for q in questions], np.int64))
    found = archive.answers(lows, highs, np.array(groups), GROUPS, (), Domain.INTEGER)
    return [column.lower(words).to_pylist() for column, words in zip(COLUMNS, found, strict=True)]


def played(steps: list[Cell | list[Question]], keep: int | None, kind: type[PaneIndex]) -> list[Any]:
    """What an archive answers whose indexes are all of one kind, where laws allow it."""

    def forced(column: Any, *_: object) -> IndexChoice[PaneIndex]:
        if column.ranked_values is not None:
            return IndexChoice(
                kind if kind.__name__ in ("RecomputeIndex", "BaseIntervalIndex") else QuantileIndex, "it is tested"
            )
        return IndexChoice(kind if kind is not RunningIndex or column.exact else BaseArrayIndex, "it is tested")

    archive, found = Archive(COLUMNS, keep), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "choose_index", forced)
        for step in steps:
            if isinstance(step, Cell):
                archive.take(pane(step))
                continue
            try:
                found += answers(archive, step, step[0].groups)
            except StateProblem as problem:
                found.append(str(problem))
    return found


STEPS = st.lists(st.one_of(CELLS, CELLS, st.lists(QUESTIONS, min_size=1, max_size=3)), max_size=25)


@settings(max_examples=50)
@given(STEPS, st.sampled_from([None, 12]))
def test_every_index_answers_as_merging_does(steps: list[Cell | list[Question]], keep: int | None) -> None:
    expected = played(steps, keep, RecomputeIndex)
    for kind in (BaseIntervalIndex, BaseArrayIndex, LandmarkIndex, RunningIndex):
        assert played(steps, keep, kind) == expected


@pytest.mark.parametrize(
    ("column", "lookups", "updates", "widths", "expected"),
    [
        (Count(pa.int64()).state_arrays(), 1, 0, [3], RecomputeIndex),
        (Count(pa.int64()).state_arrays(), 10_000, 10, [100, 900], RunningIndex),
        (Max(pa.int64()).state_arrays(), 10_000, 10, range(1, 900), BaseArrayIndex),
        (Max(pa.int64()).state_arrays(), 100_000, 10, [500], LandmarkIndex),
        (Max(pa.int64()).state_arrays(), 1, 10_000, [4], RecomputeIndex),
        (Median(pa.int64()).state_arrays(), 10_000, 10, range(100, 900), QuantileIndex),
        (First(pa.string()).state_arrays(), 10_000, 10, [800], BaseIntervalIndex),
    ],
)
def test_the_planner_weighs_laws_widths_and_what_is_asked(
    column: Any, lookups: int, updates: int, widths: Any, expected: type[PaneIndex]
) -> None:
    usage = LookupUsage(updates=updates)
    every = np.resize(np.array(list(widths), np.int64), lookups)
    usage.record_lookups(every, 1, 1)
    assert choose_index(column, usage, 1000, 1000).index is expected


def test_the_planner_changes_its_mind_while_running() -> None:
    """Panes come and nobody asks; then many ask; then hardly anybody does any more."""
    archive, seen = Archive(COLUMNS, None), []
    for number in range(200):
        archive.take(pane(Cell(number, 0, (1,))))
    answers(archive, [Question(0, 3, (0,))], (0,))
    seen.append(archive.choices[1].index)
    for _ in range(20):
        answers(archive, [Question(n, 150, (0,)) for n in range(100)], (0,))
    seen.append(archive.choices[1].index)
    for number in range(200, 40_000):
        archive.take(pane(Cell(number, 0, (1,))))
        if number % 1000 == 0:
            answers(archive, [Question(number - 1, number, (0,))], (0,))
    seen.append(archive.choices[1].index)
    assert seen == [RecomputeIndex, RunningIndex, RecomputeIndex]
    assert "recompute" in archive.choices[1].reason
