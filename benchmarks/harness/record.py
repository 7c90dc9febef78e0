"""Runs a figure and writes down what came out of it, with the commit and the machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.harness.figure import Figure, Points

Record = dict[str, Any]


def run(name: str, figure: Figure[Any], size: str) -> Record:
    """Measures a figure. The record holds all that a table or a plot needs."""
    settings = figure.sizes[size]
    start = time.perf_counter()
    points = Points(figure.measure(settings))
    return {
        "name": name,
        "title": figure.title,
        "claim": figure.claim,
        "paper": figure.paper,
        "size": size,
        "settings": asdict(settings),
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "seconds": round(time.perf_counter() - start, 1),
        "x": figure.x,
        "y": figure.y,
        "log": sorted(figure.log),
        "plot": figure.plot,
        "baseline": figure.baseline,
        "findings": [asdict(finding) for finding in figure.findings(points)],
        "rows": [_with_ratio(row.series, row.x, row.y, points.get(figure.baseline, row.x)) for row in points.rows],
    }


def write(record: Record, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['name']}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return path


def commit() -> str:
    """The short name of the commit, and whether the code differs from it."""
    head = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--", "src", ":(glob)benchmarks/**/*.py")
    return f"{head or 'unknown'}{' with local changes' if changed else ''}"


def machine() -> dict[str, str | int]:
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _with_ratio(series: str, x: float | str, y: float, base: float | None) -> Record:
    return {"series": series, "x": x, "y": y, "ratio": y / base if base else None}


def _git(*arguments: str) -> str:
    root = Path(__file__).parents[2]
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or "unknown"
