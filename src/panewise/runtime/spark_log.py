"""Checks Spark's own checkpoint before Spark reads it: an incomplete or foreign file is named in one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path

from panewise.core.errors import StateProblem

_VERSION = re.compile(r"v\d+")


def check_log(folder: Path) -> None:
    """Refuse a checkpoint of Spark in which a file is damaged."""
    if not folder.exists():
        return
    logs = [folder / "offsets", folder / "commits", *(folder / "sources").glob("[0-9]*")]
    entries = [path for log in logs for path in log.glob("[0-9]*") if path.name.removesuffix(".compact").isdecimal()]
    metadata = folder / "metadata"
    for path in [*([metadata] if metadata.exists() else []), *sorted(entries)]:
        try:
            whole = _is_whole(path)
        except OSError as problem:
            raise StateProblem(f"'{path}' cannot be read: {problem.strerror}", fix="check permissions") from None
        if not whole:
            raise StateProblem(
                f"'{path}' is damaged: it is cut off, or Spark did not write it",
                fix="restore it from a copy of the checkpoint, or start with an empty checkpoint; "
                "what was written to sinks stays",
            )


def _is_whole(path: Path) -> bool:
    """Whether a file has the shape that Spark gives it: an identity, or a version and its entries."""
    try:
        lines = path.read_bytes().decode().strip("\0").splitlines()
        if path.name == "metadata":
            return bool(json.loads("\n".join(lines))["id"])
        # An incomplete file ends within an entry; other sources may have entries of another shape.
        for line in (lines[1], lines[-1]):
            if line.startswith("{"):
                json.loads(line)
        return bool(_VERSION.fullmatch(lines[0]))
    except (ValueError, KeyError, TypeError, IndexError):
        return False
