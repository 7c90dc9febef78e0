"""Esper is asked what `lanes` measures: by commands that a stand-in writes down and, where it was fetched, truly."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.harness.figure import Points, Row
from benchmarks.promises import lanes, lanes_esper
from benchmarks.promises.lanes_esper import CALLS, WINDOWS, Esper, esper_text, esper_version, esper_work
from benchmarks.promises.lanes_queries import LANES, Lane, Scale, Streams, answers, engine_of

STREAMS = Streams(Scale(rows=3000, keys=12, dense=1, sparse=2))
#: Writes down each command, answers how many there were, and ends where it is told to.
STAND_IN = """
import pathlib, shutil, sys
log = pathlib.Path(sys.argv[1])
for count, line in enumerate(sys.stdin, 1):
    with log.open("a") as told:
        told.write(line)
    command, *words = line.split()
    if command == "rows":
        shutil.copy(words[1], log.with_name("rows"))
    if line == "query end\\n":
        break
    print('{"results": %d, "sum": 0}' % count, flush=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def esper(log: Path) -> Iterator[Esper]:
    process = Esper([sys.executable, "-c", STAND_IN, str(log)])
    yield process
    process.close()


def table(*rows: tuple[int, int, int]) -> pa.Table:
    return pa.table(dict(zip("tkv", map(list, zip(*rows, strict=True)), strict=True)))


def test_a_query_is_handed_over_and_warmed_up_once(esper: Esper, log: Path) -> None:
    few, more = table((1, 2, 3)), table((1, 2, 3), (4, 5, -6))
    for rows in (few, more):
        esper.prepare("a", rows, warm_up=more)
        esper.run()
    told = [line.split()[:2] for line in log.read_text(encoding="utf-8").splitlines()]
    assert told == [["query", "a"], ["rows", "2"], *[["run"]] * 10, ["rows", "1"], ["run"], ["rows", "2"], ["run"]]
    assert np.fromfile(log.with_name("rows"), "<i8").tolist() == [1, 2, 3, 4, 5, -6]


def test_a_run_answers_with_what_was_found(esper: Esper) -> None:
    esper.prepare("a", table((1, 2, 3)), table((1, 2, 3)))
    assert esper.run() == {"results": 14, "sum": 0}


def test_a_process_that_ended_is_an_error(esper: Esper) -> None:
    with pytest.raises(RuntimeError, match="Esper ended at 'query end'"):
        esper.prepare("end", table((1, 2, 3)), table((1, 2, 3)))


def test_only_windows_that_esper_has_are_asked() -> None:
    asked = {lane for lane in LANES if esper_text(lane)}
    assert asked == {Lane(window, aggregate) for window in WINDOWS for aggregate in CALLS}
    assert esper_text(Lane("counted", "SUM")) == "select k, sum(v) as a from Row#length(1000) group by k"


def test_the_version_is_that_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "esper-runtime-9.0.0.jar").touch()
    assert esper_version(tmp_path) is None  # still being fetched
    (tmp_path / "ready").touch()
    assert esper_version(tmp_path) == "9.0.0"


def test_lanes_goes_on_without_esper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_esper, "start_esper", lambda: None)
    monkeypatch.setattr(lanes, "esper_version", lambda: None)
    lane = Lane("counted", "SUM")
    assert lanes.by_esper(lane, STREAMS, 10) is None
    *_, named = lanes.findings(Points([Row(lanes.OURS, lanes.place(5, lane.window, lane.asked), 1.0)]))
    assert named.ours.endswith("Esper is not installed")


@pytest.mark.skipif(esper_version() is None, reason="`make esper` fetches it")
@pytest.mark.parametrize("asked", CALLS)
@pytest.mark.parametrize("window", WINDOWS)
def test_esper_ends_with_our_answers(window: str, asked: str) -> None:
    """The sum of the last results of all keys, after windows have filled and rows have left them."""
    lane = Lane(window, asked)
    streams = STREAMS.first(lane, STREAMS.scale.rows)
    work = esper_work(lane, streams["S"], warm_up=streams["S"].slice(0, 10))
    assert work is not None
    theirs = work()
    assert theirs["results"] >= STREAMS.scale.rows
    assert math.isclose(theirs["sum"], sum_of_last(lane, streams), rel_tol=1e-12)


def sum_of_last(lane: Lane, streams: dict[str, pa.Table]) -> float:
    """Our answers when the last row has come; what leaves afterwards is not of interest."""
    end = streams["S"]["t"][-1].as_py()
    rows = answers(engine_of(lane, STREAMS.scale), streams).to_pylist()
    last = {row["k"]: row["a"] for row in rows if row["sign"] == 1 and row["ts"] <= end}
    return math.fsum(last.values())
