"""What a pipeline puts aside: the rows that queries failed on, and results that their sinks did not take.

`dead_letters` in the checkpoint has a folder for each query: numbered letters, one for each time it was suspended, and
while its sinks are suspended `sink.json` and the results that wait for them, a folder a batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from panewise.core.errors import Failure
from panewise.runtime.atomic_files import create_atomic, private_folder, write_atomic


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class DeadLetter:
    """Why a query was suspended: the row it failed on, as text, and the number of its batch."""

    query: str
    reason: str
    row: Mapping[str, str] = field(default_factory=dict)
    batch: int | None = None
    at: str = field(default_factory=now)

    @classmethod
    def of(cls, failure: Failure) -> DeadLetter:
        return cls(failure.query, failure.reason, failure.row)

    def __str__(self) -> str:
        on = ", ".join(f"{name}={value}" for name, value in self.row.items())
        return f"{self.reason}{f' (on {on})' if on else ''}"


@dataclass(frozen=True)
class DeadLetterFolder:
    """The folder of all dead letters."""

    folder: Path

    def write(self, letter: DeadLetter, text: str) -> Path:
        """Write a dead letter, with the text of its query."""
        folder = self._query_folder(letter.query)
        private_folder(folder)
        number = len(list(folder.glob("[0-9]*.json"))) + 1
        while not create_atomic(path := folder / f"{number:06d}.json", _json_bytes(asdict(letter) | {"text": text})):
            number += 1
        return path

    # ---- sinks -------------------------------------------------------------------------------------------------

    def suspend_sink(self, letter: DeadLetter) -> None:
        folder = self._query_folder(letter.query)
        private_folder(folder)
        write_atomic(folder / "sink.json", _json_bytes(asdict(letter)))

    def sink_suspension(self, query: str) -> DeadLetter | None:
        """Why the sinks of a query are suspended; None where they are not."""
        try:
            return DeadLetter(**json.loads((self._query_folder(query) / "sink.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def sink_suspensions(self) -> dict[str, DeadLetter]:
        """All queries whose sinks are suspended."""
        folders = sorted(path.parent for path in self.folder.glob("*/sink.json"))
        return {
            name: letter
            for folder in folders
            if (letter := self.sink_suspension(name := unquote(folder.name))) is not None
        }

    def waiting_results(self, query: str) -> Path:
        """The folder of the results that the sinks of a query did not take."""
        return self._query_folder(query) / "results"

    def resume_sink(self, query: str) -> None:
        """Record that the sinks of a query have taken everything that waited."""
        (self._query_folder(query) / "sink.json").unlink(missing_ok=True)

    def _query_folder(self, query: str) -> Path:
        return self.folder / quote(query, safe="").replace(".", "%2E")


def _json_bytes(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, indent=2).encode()
