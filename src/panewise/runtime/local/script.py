"""A whole script in one process: read its sources, answer its queries, write its targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from panewise.accounting import Outcome
from panewise.errors import SourceProblem
from panewise.lang import NamedQuery, Pipeline, bind_script
from panewise.runtime.local.embedded import execute
from panewise.runtime.local.files import read, write
from panewise.runtime.local.host import DuckDBHost
from panewise.schema import Stream


@dataclass(frozen=True)
class Answer:
    """What became of one query: its outcome, and the file it went to."""

    query: NamedQuery
    outcome: Outcome
    written: Path | None


def load(path: Path, host: DuckDBHost) -> Pipeline:
    """The bound script of a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise SourceProblem(f"script '{path}' cannot be read: {reason}", fix="check the path") from None
    return bind_script(text, host.describe)


def answer(
    pipeline: Pipeline,
    base: Path,
    host: DuckDBHost,
    *,
    boundary: str = "(]",
    until: str | int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Answer]:
    """Answer every query of a script over its file sources; `progress` hears what is being done."""
    streams = {}
    for name, declared in pipeline.streams.items():
        if name not in pipeline.sources:
            raise SourceProblem(f"stream {name!r} has no source to read", fix="add FROM 'parquet:...' to it")
        progress(f"reading {name}")
        table = read(pipeline.sources[name], declared, base)
        streams[name] = Stream(table, declared.time, declared.delay)
    found = []
    for query in pipeline.queries.values():
        heard = partial(_percent, progress, query.name)
        outcome = execute(query.query, streams, boundary=boundary, until=until, host=host, progress=heard)
        written = write(outcome.table, query.into, query.name, base) if query.into else None
        found.append(Answer(query, outcome, written))
    return found


def _percent(say: Callable[[str], None], name: str, done: int, total: int) -> None:
    say(f"answering {name}: {100 * done // total}%")
