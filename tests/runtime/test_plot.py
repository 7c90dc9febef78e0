"""`panewise plot` as a user meets it, and the drawing itself."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from matplotlib.collections import LineCollection, PolyCollection

import panewise as pw
from panewise.cli import main
from panewise.cli.plotting import levels, panel
from panewise.core.time import Domain
from panewise.plot import DPI, HEIGHT, WIDTH, Floats, Panel, Series, Times, figure, figure_bytes

FIXED = "SELECT AVG(v) AS v FROM S [RANGE 10 SLIDE 10]"
ROWS = pa.table(
    {
        "t": pa.array([*range(1, 31)]),
        "k": pa.array(["a", "b", "c"] * 10),
        "v": pa.array([None if t % 7 == 0 else float(t > 12) + t % 3 / 10 for t in range(1, 31)]),
    }
)
#: As a query with [FRAME ...] answers: one frame of a single item, one without a value.
FRAMES = pa.table(
    {
        "level": pa.array([0.1, None, 1.2]),
        "frame_id": pa.array([0, 1, 2]),
        "w_start": pa.array([1, 12, 13]),
        "w_end": pa.array([11, 12, 30]),
        "duration": pa.array([10, 0, 17]),
        "count": pa.array([11, 1, 18]),
        "final": pa.array([True, True, False]),
    }
)
Plot = Callable[..., Path]


@pytest.fixture
def plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plot:
    """The command over ROWS, drawn into the file returned."""

    def run(*queries: str, out: str = "out.svg", data: str = "in.parquet", **options: str) -> Path:
        pa.parquet.write_table(ROWS, tmp_path / "in.parquet")
        words = [word for query in queries or (FIXED,) for word in ("--query", query)]
        for name, chosen in {"time": "t", "value": "v", **options}.items():
            words += [f"--{name}", chosen]
        monkeypatch.setattr(
            sys, "argv", ["panewise", "plot", str(tmp_path / data), *words, "--out", str(tmp_path / out)]
        )
        with pytest.raises(SystemExit) as ended:
            main()
        if ended.value.code:
            raise Refused(ended.value.code)
        return tmp_path / out

    return run


class Refused(Exception):
    """The command ended with this code."""


def size(png: bytes) -> tuple[int, int]:
    """What the header of a PNG says."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def shapes(svg: bytes, name: str) -> list[int]:
    """How many shapes each group of that name has in an SVG."""
    groups = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g")
    return [len(group.findall(".//{http://www.w3.org/2000/svg}path")) for group in groups if group.get("id") == name]


def made(times: Times, values: Floats, *panels: Panel) -> tuple[list[int], list[int]]:
    """How many spans and steps each panel has; the picture is drawn both ways to see that it can be."""
    drawn = figure(Series("a series", times, values), panels)
    ElementTree.fromstring(figure_bytes(drawn, "svg"))
    assert size(figure_bytes(drawn, "png")) == (WIDTH * DPI, round(HEIGHT * DPI * (1 + len(panels))))
    found = [axes.collections for axes in drawn.axes[1:]]
    return (
        [len(c.get_paths()) for held in found for c in held if isinstance(c, PolyCollection)],
        [len(c.get_paths()) for held in found for c in held if isinstance(c, LineCollection)],
    )


def test_every_window_is_a_span_and_a_step(plot: Plot) -> None:
    sliding = "SELECT AVG(v) AS v FROM S [RANGE 10 SLIDE 5]"
    svg = plot(FIXED, sliding).read_bytes()
    answers = [pw.run(query, {"S": ROWS}, time="t").num_rows for query in (FIXED, sliding)]
    assert answers == [3, 7]
    assert shapes(svg, "spans") == shapes(svg, "levels") == answers


def test_a_picture_has_the_size_of_its_panels(plot: Plot) -> None:
    assert size(plot(FIXED, out="out.png").read_bytes()) == (1500, 720)
    assert size(plot(FIXED, FIXED, out="out.PNG").read_bytes()) == (1500, 1080)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_input_gives_the_same_bytes(plot: Plot, kind: str) -> None:
    here = plot(out=f"here.{kind}")
    there = here.with_stem("there")
    arguments = [here.parent / "in.parquet", "--time", "t", "--value", "v", "--query", FIXED, "--out", there]
    command = [sys.executable, "-c", "from panewise.cli import main; main()", "plot", *map(str, arguments)]
    # Another process, with other hashes and in another zone.
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"})
    assert here.read_bytes() == there.read_bytes()


def test_csv_is_drawn_as_parquet_is(plot: Plot, tmp_path: Path) -> None:
    # A column without any value is no obstacle.
    pa.csv.write_csv(ROWS.append_column("none", pa.nulls(ROWS.num_rows)), tmp_path / "in.csv")
    drawn = plot(data="in.csv", title="v", out="csv.svg").read_bytes()
    assert drawn == plot(title="v", out="parquet.svg").read_bytes()


def test_timestamps_are_read_in_utc(plot: Plot, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("ts,v\n2026-01-31T07:00:00,1\n2026-01-31T07:10:00,2\n")
    query = "SELECT MAX(v) AS v FROM S [RANGE 5 MINUTES SLIDE 5 MINUTES]"
    svg = plot(query, data="in.csv", time="ts").read_text()
    # Outlines of letters have their text beside them as a comment.
    assert all(f"<!-- {text} -->" in svg for text in ("ts (UTC)", "07:05", "2026-Jan-31"))


def test_the_first_of_several_numbers_is_drawn_and_said(plot: Plot, capsys: pytest.CaptureFixture[str]) -> None:
    out = plot("SELECT MIN(v) AS low, MAX(v) AS high, COUNT(*) AS count FROM S [RANGE 10 SLIDE 10]")
    assert capsys.readouterr().out.splitlines() == [
        "query 1: of low, high, count the first is drawn; select the one you want first",
        f"drawn: {out}",
    ]


def test_groups_share_the_span_of_their_window(plot: Plot) -> None:
    svg = plot("SELECT k, MAX(v) AS v FROM S [RANGE 10 SLIDE 10] GROUP BY k").read_bytes()
    assert (shapes(svg, "spans"), shapes(svg, "levels")) == ([3], [9])


def test_without_a_number_there_are_only_spans(plot: Plot) -> None:
    svg = plot("SELECT k FROM S [RANGE 10 SLIDE 10] GROUP BY k").read_bytes()
    assert (shapes(svg, "spans"), shapes(svg, "levels")) == ([3], [])


def test_queries_may_call_the_data_otherwise(plot: Plot) -> None:
    assert shapes(plot("SELECT MAX(v) AS v FROM R [RANGE 10 SLIDE 10]", stream="R").read_bytes(), "spans") == [3]


def test_a_boundary_may_be_chosen(plot: Plot) -> None:
    # Item 30 opens a window of its own where the end is out.
    assert shapes(plot(boundary="[)").read_bytes(), "spans") == [4]


def test_frames_are_drawn_as_windows_are() -> None:
    assert levels(FRAMES) == ["level"]
    values = np.asarray(ROWS["v"].to_numpy(), dtype=np.float64)
    assert made(ROWS["t"].to_numpy(), values, panel("frames", FRAMES, Domain.INTEGER)) == ([3], [2])
    alone = panel("frames", FRAMES.drop_columns(["level"]), Domain.INTEGER)
    assert made(ROWS["t"].to_numpy(), values, alone) == ([3], [])


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_can_be_drawn(rows: int) -> None:
    times, values = np.arange(rows), np.full(rows, np.nan)
    # One window is an instant, one reaches beyond all time.
    edges = np.array([0, -(2**61)]), np.array([0, 2**61])
    spans, steps = made(
        times, values, Panel("some", *edges, np.array([1e308, np.inf])), Panel("none", times[:0], times[:0])
    )
    assert (spans, steps) == ([2, 0], [1])


def test_windows_out_of_sight_are_not_drawn_at_the_edge() -> None:
    starts = np.array([-500, -400, 0])
    drawn = figure(Series("a series", np.arange(11), np.zeros(11)), [Panel("windows", starts, starts + 5)])
    (spans,) = drawn.axes[1].collections
    low, high = drawn.axes[1].get_xlim()
    seen = [path for path in spans.get_paths() if path.get_extents().x1 >= low and path.get_extents().x0 <= high]
    assert (len(spans.get_paths()), len(seen)) == (3, 1)


def test_dates_beyond_the_calendar_can_be_drawn() -> None:
    times = np.array([-(2**60), 2**60]).astype("datetime64[us]")
    assert made(times, np.zeros(2), Panel("all", times[:1], times[1:])) == ([1], [])


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_picture_of_much_is_small(kind: Literal["png", "svg"]) -> None:
    times = np.arange(100_000)
    values = np.cumsum(np.random.default_rng(7).normal(size=len(times)))
    starts = times[::20]
    drawn = figure(Series("much", times, values), [Panel("windows", starts, starts + 40, values[::20])])
    assert len(figure_bytes(drawn, kind)) < 500_000


def test_a_title_is_only_text() -> None:
    title = "cost in $ < $x_1^ \x01 <b>\n" + "and so on " * 100
    ElementTree.fromstring(figure_bytes(figure(Series(title, np.arange(2), np.zeros(2)), []), "svg"))


@pytest.mark.parametrize(
    ("query", "options", "sentence"),
    [
        (FIXED, {"data": "no.csv"}, "no.csv' is no file; check the path"),
        (FIXED, {"data": "in.xls"}, "in.xls' is no kind of file Panewise reads; name a .parquet, .csv or .json file"),
        (FIXED, {"out": "out.gif"}, "out.gif' is no kind of picture Panewise draws; end its name in .png or .svg"),
        (FIXED, {"out": "no/out.svg"}, "out.svg' cannot be written: no such file or directory; check the path"),
        (FIXED, {"time": "tt"}, "there is no time column 'tt'; use one of t, k, v"),
        (FIXED, {"value": "w"}, "there is no column 'w' to draw; use one of t, k, v"),
        (FIXED, {"value": "k"}, "column 'k' is STRING, which has no height; draw a column of numbers"),
        (FIXED, {"data": "empty.csv"}, "empty.csv' has no rows, so there is nothing to draw; check the file"),
        (FIXED, {"data": "timeless.csv"}, "no row has a 't', so there is nothing to draw; check the data"),
        (FIXED, {"boundary": "[]"}, "boundary '[]' is unknown; use '(]' (the papers) or '[)' (Spark, Flink)"),
        ("SELECT ISTREAM v FROM S", {}, "have no start and end; ask about a window with a SLIDE"),
        ("SELECT AVG(w) AS w FROM S [RANGE 9 SLIDE 9]", {}, "in SELECT: there is no column 'w'"),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plot: Plot, query: str, options: dict[str, str], sentence: str
) -> None:
    (tmp_path / "empty.csv").write_text("t,v\n")
    (tmp_path / "timeless.csv").write_text("t,v\n,1\n")
    with pytest.raises(Refused, match="1"):
        plot(query, **options)
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("error: ")
    assert sentence in said
