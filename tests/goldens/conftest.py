"""Where the results of other systems lie: beside the repository, never in it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import panewise as pw
from panewise.core.errors import PanewiseError

GOLDENS = Path(__file__).parents[2].parent / "shared" / "goldens"


@pytest.fixture(scope="session")
def goldens() -> Path:
    if not GOLDENS.is_dir():
        pytest.skip(f"the results of other systems are not at {GOLDENS}")
    return GOLDENS


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where RECORD_GOLDENS names a folder, every query that an engine answers is written there with its input and
    its result, so that other runners can be asked the same (`tests/spark/test_goldens.py`)."""
    folder = os.environ.get("RECORD_GOLDENS")
    if folder:
        run = pw.run

        def recording(query: str, streams: Mapping[str, Any], **options: Any) -> pa.Table:
            found = run(query, streams, **options)
            _record(Path(folder), query, streams, options, found)
            return found

        monkeypatch.setattr(pw, "run", recording)


def _record(folder: Path, query: str, streams: Mapping[str, Any], options: dict[str, Any], found: pa.Table) -> None:
    given = {
        name: s if isinstance(s, pw.Stream) else pw.Stream(s, options["time"], None) for name, s in streams.items()
    }
    boundary = options.get("boundary", "(]")
    pool = pw.Pool({name: s.schema for name, s in given.items()}, boundary, bounded=True)
    try:
        pool.register("q", query)
    except PanewiseError:
        return
    case = folder / f"{len(list(folder.iterdir())):04d}"
    (case / "streams").mkdir(parents=True)
    read = {name: given[name] for name in sorted(pool.queries["q"].streams)}
    for name, stream in read.items():
        pyarrow.parquet.write_table(stream.arrow, case / "streams" / f"{name}.parquet")
    pyarrow.parquet.write_table(found, case / "result.parquet")
    told = {"query": query, "boundary": boundary, "until": options.get("until")}
    told |= {"streams": {name: [stream.time, stream.delay] for name, stream in read.items()}}
    (case / "case.json").write_text(json.dumps(told, default=str))
