"""`panewise register`, `revoke`, `resume`, `list`, `status` and `results`: pipelines that run elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from panewise.cli.output import Output, write_result
from panewise.cli.show import show_result
from panewise.core.errors import BindProblem, SourceProblem, did_you_mean
from panewise.runtime.checkpoint import Checkpoint, PipelinePlan
from panewise.runtime.control import QueryRecord
from panewise.runtime.results import ResultFiles

if TYPE_CHECKING:
    import pyarrow as pa

#: The last line of the metrics lies within this number of bytes from the end.
_LAST_LINE_BYTES = 1 << 16
_PAST_TENSE = {"register": "registered", "revoke": "revoked", "resume": "resumed"}


def request(console: Console, folder: Path, op: str, patience: float, **arguments: Any) -> None:
    """Write a request to the pipeline of a checkpoint, and wait for its answer."""
    checkpoint = Checkpoint(folder)
    _refuse_early(_read_plan(checkpoint), checkpoint, op, arguments)
    identity = checkpoint.control.request(op, **arguments)
    waited = 0.0
    while (fate := checkpoint.control.request_status(identity)) is None and waited < patience:
        time.sleep(0.2)
        waited += 0.2
    if fate:
        raise BindProblem(f"the pipeline refuses: {fate}")
    name = escape(str(arguments["name"]))
    after = "" if fate is not None else ", once the pipeline runs"
    console.print(f"{name} is {_PAST_TENSE[op]}{after}")
    if op != "revoke":
        console.print(f"  its results: panewise results {escape(str(folder))} {name}", style="dim", soft_wrap=True)


def _read_plan(checkpoint: Checkpoint) -> PipelinePlan:
    plan = checkpoint.plan()
    if plan is None:
        raise SourceProblem(f"'{checkpoint.folder}' is no checkpoint of a pipeline", fix="check the path")
    return plan


def _refuse_early(plan: PipelinePlan, checkpoint: Checkpoint, op: str, arguments: dict[str, Any]) -> None:
    """Refuse at once what the pipeline would refuse anyway."""
    known, name = checkpoint.control.known_queries(), arguments["name"]
    if op == "register":
        plan.empty_pool().prepare_query(name, arguments["text"])
        other = known.get(name)
        if other is not None and other.is_active and other.text != arguments["text"]:
            raise BindProblem(f"the name {name!r} is taken", fix="revoke it first, or choose another one")
        return
    asked = any(request.get("name") == name for request in checkpoint.control.pending_requests())
    if op == "revoke":
        known = {other: query for other, query in known.items() if not query.revoked}
    if name not in known and not asked:
        raise BindProblem(f"there is no query {name!r}", fix=did_you_mean(name, known or ["panewise register"]))
    if (
        op == "resume"
        and name in known
        and known[name].is_active
        and checkpoint.dead_letters.sink_suspension(name) is None
    ):
        raise BindProblem(f"query {name!r} is not suspended", fix="there is nothing to resume")


def queries_of(checkpoint: Checkpoint) -> dict[str, dict[str, Any]]:
    """All queries of a pipeline, with the status of each and its reason."""
    sinks = checkpoint.dead_letters.sink_suspensions()
    return {
        name: _query_status(query, str(sinks[name]) if name in sinks else None)
        for name, query in checkpoint.control.known_queries().items()
    }


def _query_status(query: QueryRecord, sink: str | None) -> dict[str, Any]:
    state = "revoked" if query.revoked else "suspended" if query.suspension or sink else "runs"
    status: dict[str, Any] = {"state": state, "text": query.text, "into": query.into}
    if query.suspension is not None:
        status |= {
            "reason": query.suspension.reason,
            "row": dict(query.suspension.row),
            "batch": query.suspension.batch,
            "since": query.suspension.at,
        }
    elif sink is not None:
        status["reason"] = sink
    return status


def show_queries(console: Console, folder: Path, as_json: bool) -> None:
    """Show the queries of a pipeline, and requests that have not been applied yet."""
    checkpoint = Checkpoint(folder)
    _read_plan(checkpoint)
    queries, waiting = queries_of(checkpoint), checkpoint.control.pending_requests()
    if as_json:
        asked = [{key: request.get(key) for key in ("op", "name", "text")} for request in waiting]
        print(json.dumps({"queries": queries, "waiting": asked}, indent=2))
        return
    for name, status in queries.items():
        if status["state"] != "revoked":
            console.print(f"[bold]{escape(name)}[/bold]  {escape(status['text'])}", highlight=False, soft_wrap=True)
            _show_suspension(console, status)
    for request in waiting:
        done = _PAST_TENSE.get(request["op"], request["op"])
        console.print(f"{escape(str(request.get('name')))}  waits to be {done}", style="dim", soft_wrap=True)


def _show_suspension(console: Console, status: dict[str, Any]) -> None:
    """Show why a query is suspended, and on which row it failed."""
    if status["state"] == "suspended":
        console.print(f"  [red]suspended[/red]: {escape(status['reason'])}", highlight=False, soft_wrap=True)
        row = ", ".join(f"{name}={value}" for name, value in status.get("row", {}).items())
        if row:
            console.print(
                f"  in batch {status['batch']}, on {escape(row)}", style="dim", highlight=False, soft_wrap=True
            )


def show_status(console: Console, folder: Path, as_json: bool) -> bool:
    """Show the status of a pipeline and of each query; returns whether all is well."""
    checkpoint = Checkpoint(folder)
    _read_plan(checkpoint)
    queries, metrics = queries_of(checkpoint), _last_metrics(checkpoint.metrics)
    owner = checkpoint.lease.owner()
    suspended = [name for name, status in queries.items() if status["state"] == "suspended"]
    health = "runs" if owner else "finished" if checkpoint.control.finished else "stopped"
    well = health != "stopped" and not suspended
    if as_json:
        print(json.dumps({"health": health, "well": well, "queries": queries, "metrics": metrics}, indent=2))
        return well
    colour = "green" if well else "red"
    console.print(f"[{colour}]{health}[/{colour}]{f', {owner}' if owner else ''}", highlight=False, soft_wrap=True)
    if metrics:
        behind = f", {metrics['lag_seconds']:,.0f} s behind" if metrics.get("lag_seconds") is not None else ""
        console.print(f"batch {metrics['batch']} at {metrics['at']}, watermark {metrics['watermark']}{behind}")
        console.print(
            f"{metrics['rows_in']:,} rows in = {metrics['used']:,} used + {metrics['late']:,} late + "
            f"{metrics['rejected']:,} rejected; {metrics['rows_out']:,} rows out"
        )
    for name, status in queries.items():
        into = f"  into {status['into']}" if status["into"] else ""
        console.print(f"[bold]{escape(name)}[/bold]  {status['state']}{escape(into)}", highlight=False, soft_wrap=True)
        _show_suspension(console, status)
    return well


def _last_metrics(path: Path) -> dict[str, Any]:
    """The last metrics of the pipeline; an incomplete line is ignored."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - _LAST_LINE_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return {}
    for line in reversed(lines):
        try:
            found: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        return found
    return {}


def absolute_address(address: str) -> str:
    """An absolute address, because the pipeline may have been started in another folder."""
    scheme, colon, rest = address.partition(":")
    files = scheme in ("parquet", "csv", "json", "delta") and "://" not in rest
    return f"{scheme}{colon}{Path(rest).absolute()}" if files else address


def show_results(console: Console, folder: Path, query: str, follow: bool, rows: int, output: Output) -> None:
    """Show the results of a query: all existing ones together, or batch by batch as they are written."""
    batches = results_of(folder, query, follow)
    if follow:
        with suppress(KeyboardInterrupt):
            for table in batches:
                _show_table(console, query, table, rows, output)
        return
    import pyarrow as pa

    tables = list(batches)
    if not tables:
        raise SourceProblem(f"{query!r} has no results yet", fix="wait for its first window to end, or use --follow")
    _show_table(console, query, pa.concat_tables(tables, promote_options="permissive"), rows, output)


def _show_table(console: Console, query: str, table: pa.Table, rows: int, output: Output) -> None:
    if output is Output.TABLE:
        show_result(console, query, table, rows)
    else:
        write_result(table, output)


def results_of(folder: Path, query: str, follow: bool, poll: float = 0.5) -> Iterator[pa.Table]:
    """The results of a query, batch by batch in their order; with `follow`, without end as they are written."""
    checkpoint = Checkpoint(folder)
    _read_plan(checkpoint)
    results = ResultFiles.of(checkpoint, query)
    seen: set[Path] = set()
    while True:
        for batch in results.batches():
            if batch not in seen and (table := results.read(batch)).num_rows:
                yield table
            seen.add(batch)
        if not follow:
            return
        time.sleep(poll)
