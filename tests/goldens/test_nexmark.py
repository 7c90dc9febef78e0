"""Nexmark q5, q7 and q8 as RisingWave answers them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

import panewise as pw

TEN_SECONDS = "[RANGE 10 SECONDS SLIDE 10 SECONDS]"
moment = datetime.fromisoformat


def test_q5_the_auctions_with_most_bids_in_each_hop(goldens: Path) -> None:
    bids = "SELECT auction, COUNT(*) AS num FROM bid [RANGE 10 SECONDS SLIDE 2 SECONDS] GROUP BY auction"
    query = f"""
        SELECT B.auction, B.num
        FROM ({bids}) B, (SELECT MAX(num) AS most FROM ({bids}) C) M
        WHERE B.num >= M.most"""
    assert _answers(goldens, query, ["auction", "num"]) == _expected(goldens, "q5", [int, int])


def test_q7_the_highest_bids_of_ten_seconds(goldens: Path) -> None:
    query = f"""
        SELECT B.auction, B.price, B.bidder, B.date_time
        FROM bid {TEN_SECONDS} B, (SELECT MAX(price) AS highest FROM bid {TEN_SECONDS}) M
        WHERE B.price = M.highest"""
    found = _answers(goldens, query, ["auction", "price", "bidder", "date_time"])
    assert found == _expected(goldens, "q7", [int, int, int, moment])


def test_q8_people_who_sell_as_soon_as_they_come(goldens: Path) -> None:
    query = f"""
        SELECT DISTINCT P.id, P.name
        FROM person {TEN_SECONDS} P, auction {TEN_SECONDS} A
        WHERE P.id = A.seller"""
    assert _answers(goldens, query, ["id", "name", "w_start"]) == _expected(goldens, "q8", [int, str, moment])


def _answers(goldens: Path, query: str, columns: list[str]) -> Counter[tuple[Any, ...]]:
    streams = {name: _read(goldens / "nexmark_risingwave" / f"{name}.csv") for name in ("auction", "bid", "person")}
    found = pw.run(query, streams, time="date_time", boundary="[)")
    return Counter(tuple(row.values()) for row in found.select(columns).to_pylist())


def _expected(goldens: Path, query: str, readers: list[Callable[[str], Any]]) -> Counter[tuple[Any, ...]]:
    """The rows of a result: tabs between columns, or single spaces where the last one is a timestamp."""
    lines = (goldens / "nexmark_risingwave" / f"{query}.expected.txt").read_text().splitlines()
    cells = [line.split("\t") if "\t" in line else line.split(" ", len(readers) - 1) for line in lines if line]
    return Counter(tuple(read(cell) for read, cell in zip(readers, row, strict=True)) for row in cells)


def _read(path: Path) -> pa.Table:
    with path.open(newline="") as text:
        rows = [{name: _value(name, cell) for name, cell in row.items()} for row in csv.DictReader(text)]
    return pa.Table.from_pylist(rows)


def _value(name: str, cell: str) -> Any:
    if name in ("date_time", "expires"):
        return moment(cell)
    return int(cell) if cell.isdigit() else cell
