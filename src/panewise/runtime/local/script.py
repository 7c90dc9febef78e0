"""A whole script in one process: read its sources, answer its queries, write its targets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from panewise import reference
from panewise.core.accounting import Outcome
from panewise.core.errors import BindProblem, PanewiseError, SourceProblem
from panewise.core.schema import Stream, type_name
from panewise.cql import BoundScript, NamedQuery, bind_script, script_and_problems
from panewise.engine import Engine, Pool
from panewise.engine.pool import plan_for_engine
from panewise.engine.state.pane_log import PaneCollector
from panewise.plan import Refusal
from panewise.runtime.local.embedded import feed_in_parts
from panewise.runtime.local.files import infer_schema, read, write
from panewise.runtime.local.host import DuckDBHost
from panewise.runtime.pane_log import Header, PaneLog, log_of, refuse_log


@dataclass(frozen=True)
class QueryAnswer:
    """The answer to one query: its outcome, and the file it was written to."""

    query: NamedQuery
    outcome: Outcome
    written: Path | None


def load(path: Path) -> BoundScript:
    """The bound script of a file."""
    return bind(read_text(path), path.parent)


def bind(text: str, base: Path) -> BoundScript:
    """A script whose addresses are relative to a folder."""
    return bind_script(text, lambda address: infer_schema(address, base))


def load_with_problems(path: Path) -> tuple[BoundScript, list[PanewiseError]]:
    """The part of a script that can be bound, and the problems of the rest."""
    return script_and_problems(read_text(path), lambda address: infer_schema(address, path.parent))


def read_text(path: Path) -> str:
    """The text of a script; `-` is standard input."""
    try:
        return sys.stdin.buffer.read().decode("utf-8") if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise SourceProblem(f"script '{path}' cannot be read: {reason}", fix="check the path") from None


def describe_inferred_columns(pipeline: BoundScript) -> list[str]:
    """One line for each stream whose columns were inferred from files instead of being declared."""
    listed = {name: pipeline.streams[name].schema for name in sorted(pipeline.inferred)}
    return [
        f"stream {name}: {', '.join(f'{f.name} {type_name(f.type)}' for f in schema)}, as in {pipeline.sources[name]!r}"
        for name, schema in listed.items()
    ]


def shared_pool(pipeline: BoundScript, host: DuckDBHost, boundary: str | None = None) -> Pool:
    """The queries of a script that the engine answers together."""
    pool = Pool(pipeline.streams, pipeline.boundary_or(boundary), host=host, bounded=True)
    for query in pipeline.queries.values():
        plan = plan_for_engine(query.query)
        if not isinstance(plan, Refusal):
            pool.add_query(pool.prepare_query(query.name, plan))
    return pool


def answer(
    pipeline: BoundScript,
    base: Path,
    host: DuckDBHost,
    *,
    boundary: str | None = None,
    until: int | str | datetime | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[QueryAnswer]:
    """Answer every query of a script over its file sources; `progress` is called with each step."""
    streams = {}
    for name, declared in pipeline.streams.items():
        if name not in pipeline.sources:
            raise SourceProblem(f"stream {name!r} has no source to read", fix="add FROM 'parquet:...' to it")
        progress(f"reading {name}")
        table = read(pipeline.sources[name], declared, base)
        streams[name] = Stream(table, declared.time, declared.delay)
    outcomes = _answer_together(pipeline, streams, base, host, boundary, until, progress)
    found = []
    for query in pipeline.queries.values():
        on_progress = partial(_report_percent, progress, query.name)
        outcome = outcomes.get(query.name) or reference.execute(
            query.query, streams, boundary=pipeline.boundary_or(boundary), until=until, host=host, progress=on_progress
        )
        written = write(outcome.table, query.into, query.name, base) if query.into else None
        found.append(QueryAnswer(query, outcome, written))
    return found


def _answer_together(
    pipeline: BoundScript,
    streams: Mapping[str, Stream],
    base: Path,
    host: DuckDBHost,
    boundary: str | None,
    until: int | str | datetime | None,
    progress: Callable[[str], None],
) -> dict[str, Outcome]:
    """All queries that the engine answers, in one pass over each stream."""
    pool = shared_pool(pipeline, host, boundary)
    engine = Engine(pool)
    logs = _claim_pane_logs(pipeline, pool, base)
    tap = PaneCollector(engine, logs)
    read = sorted({stream for registered in pool.queries.values() for stream in registered.streams})
    for name in read:
        for done in feed_in_parts(engine, name, streams[name]):
            progress(f"feeding {name}: {done:,} rows")
    progress("answering")
    tap.open()
    results = engine.finish(until)
    for name, panes in tap.collect().items():
        logs[name].write(panes, 0)
    late = {name: engine.late(name) for name in read}
    return {
        name: Outcome(
            results[name],
            {s: engine.accounting[s] for s in registered.streams},
            {s: late[s] for s in registered.streams},
        )
        for name, registered in pool.queries.items()
    }


def _claim_pane_logs(pipeline: BoundScript, pool: Pool, base: Path) -> dict[str, PaneLog]:
    """The pane logs, by query; a script that is run again replaces its own."""
    found = {}
    for name, query in pipeline.queries.items():
        if query.panes is None:
            continue
        if name not in pool.queries:
            fix = "log the panes of a query that the engine answers"
            raise BindProblem(f"query {name!r} has no panes to log", fix=fix, place=query.panes_place)
        registered = replace(pool.queries[name], text=query.alone)
        refuse_log(registered, query.panes, query.panes_place)
        found[name] = log_of(query.panes, base)
        found[name].claim(Header.of(registered, pool, "panewise run"))
    return found


def draw_window_groups(pool: Pool, svg: Path) -> list[Path]:
    """Draw the window groups as pictures, one file for each set of windows that may be grouped."""
    targets = []
    for number, drawing in enumerate(pool.pictures(), start=1):
        target = svg if number == 1 else svg.with_stem(f"{svg.stem}-{number}")
        try:
            target.write_text(drawing, encoding="utf-8")
        except OSError as problem:
            raise SourceProblem(f"'{target}' cannot be written: {problem.strerror}", fix="check the path") from None
        targets.append(target)
    return targets


def _report_percent(report: Callable[[str], None], name: str, done: int, total: int) -> None:
    report(f"answering {name}: {100 * done // total}%")
