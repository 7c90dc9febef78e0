"""Every figure program runs at its smallest size and leaves rows, a table and a plot.

A figure is discovered by being there. What it finds is not judged here: a busy machine would decide.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.harness.catalogue import figures
from benchmarks.harness.draw import draw
from benchmarks.harness.figure import SIZES, Figure, Points, Row
from benchmarks.harness.timing import rate
from benchmarks.promises.speed import SMALLEST
from benchmarks.promises.speed_rows import row_cases

FIGURES = figures()
ROOT = Path(__file__).parents[2]
each = pytest.mark.parametrize("name", FIGURES)


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    """Kernels are compiled when they are first used, which is no part of any figure."""
    list(row_cases(SMALLEST.rows))


@pytest.mark.slow
@each
def test_a_figure_runs_and_is_drawn(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--size", "smoke", "--into", str(tmp_path)]) == 0
    record, table, plot = (tmp_path / f"{name}.{kind}" for kind in ("json", "md", "svg"))
    held = json.loads(record.read_text(encoding="utf-8"))
    assert held["rows"]
    assert held["findings"]
    assert held["baseline"] in {row["series"] for row in held["rows"]}
    assert all(row["y"] > 0 for row in held["rows"])
    assert {"commit", "date", "machine", "size", "settings"} <= held.keys()
    written = table.read_text(encoding="utf-8")
    assert written in capsys.readouterr().out
    assert "| paper | ours | holds |" in written
    assert plot.read_text(encoding="utf-8").lstrip().startswith("<?xml")
    for path in (record, table, plot):
        text = path.read_text(encoding="utf-8")
        assert not any(str(place) in text for place in (ROOT, tmp_path, Path.home())), path.name


@each
def test_a_figure_says_what_it_claims_in_plain_words(name: str) -> None:
    figure: Figure[Any] = FIGURES[name]
    assert set(figure.sizes) == set(SIZES)
    assert figure.claim
    assert figure.paper
    assert not figure.claim.endswith(".")


@pytest.mark.slow
def test_a_record_is_drawn_the_same_each_time(tmp_path: Path) -> None:
    name = next(iter(FIGURES))
    assert main([name, "--size", "smoke", "--into", str(tmp_path)]) == 0
    once = [path.read_bytes() for path in draw(tmp_path / f"{name}.json")]
    assert main([name, "--draw", "--into", str(tmp_path)]) == 0
    assert [path.read_bytes() for path in draw(tmp_path / f"{name}.json")] == once


def test_figures_are_listed_and_named_by_a_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{name}: {figure.claim}" for name, figure in FIGURES.items()]
    assert main(["no such figure"]) == 2
    assert "'no such figure' names 0 figures; use one of" in capsys.readouterr().err
    assert main([]) == 2


def test_points_compare_series() -> None:
    points = Points([Row("a", 1, 4.0), Row("a", 2, 2.0), Row("b", 1, 1.0), Row("b", 2, 1.0)])
    assert (points.series, points.xs) == (["a", "b"], [1, 2])
    assert (points.growth("a"), points.swing("a"), points.lead("a", "b")) == (0.5, 2.0, 2.0)


def test_a_rate_counts_operations() -> None:
    counts: list[int] = []

    def work(count: int) -> None:
        # More operations take longer: otherwise a fast machine would double their number beyond all bounds.
        counts.append(sum(1 for _ in range(count)))

    assert rate(work, seconds=1e-4, repeats=3) > 0
    assert len(counts) > 3
    assert len(set(counts[-4:])) == 1
