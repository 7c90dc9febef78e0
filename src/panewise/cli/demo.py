"""The demo: a generated stream, a script of standing queries, and a live table of their answers."""

from __future__ import annotations

import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from panewise.cli.network import connections
from panewise.cli.show import result_table, show_answer
from panewise.plan import explain
from panewise.runtime.local import HOST
from panewise.runtime.local.script import Answer, answer, load


def demo(console: Console, rows: int, seed: int, pace: float) -> None:
    """Generate, answer, replay: the stream becomes a file, the script reads it, the answers are shown by instant."""
    with tempfile.TemporaryDirectory(prefix="panewise-demo-") as name:
        folder = Path(name)
        script = folder / "demo.cql"
        text = files("panewise.cli").joinpath("demo.cql").read_text(encoding="utf-8")
        script.write_text(text, encoding="utf-8")
        console.print(f"[bold]1. A stream[/bold]: {rows:,} network connections, some of them late")
        pa.parquet.write_table(connections(rows, seed), folder / "connections.parquet")
        console.print("[bold]2. A script[/bold] of standing queries:")
        console.print(text, style="dim", markup=False)
        pipeline = load(script, HOST)
        console.print("[bold]3. How they are understood[/bold]:")
        for query in pipeline.queries.values():
            console.print(explain(query.name, query.query), markup=False, highlight=False, soft_wrap=True)
        with console.status("answering") as status:
            answers = answer(pipeline, folder, HOST, boundary="[)", progress=lambda s: status.update(s))
    console.print("[bold]4. The answers[/bold], instant by instant:")
    _replay(console, answers, pace)
    console.print("[bold]5. In the end[/bold]:")
    for each in answers:
        show_answer(console, each, rows=0)


def _replay(console: Console, answers: list[Answer], pace: float) -> None:
    """Show the answers of each instant in turn; a terminal sees them move, a file only the busiest instant."""
    instants = sorted({t for a in answers for t in a.outcome.table["w_end"].to_pylist()})
    if not console.is_terminal:
        console.print(_at(answers, instants[int(len(instants) * 0.6)]))
        return
    with Live(console=console, refresh_per_second=20, vertical_overflow="crop") as live:
        for instant in instants:
            live.update(_at(answers, instant))
            time.sleep(pace)


def _at(answers: list[Answer], instant: Any) -> Group:
    """What each query last said at or before an instant."""
    shown: list[Any] = [Text(f"at {str(instant).removesuffix('+00:00')}", style="bold")]
    for each in answers:
        table = each.outcome.table
        past = table.filter(pc.less_equal(table["w_end"], instant))
        if past.num_rows:
            latest = past.filter(pc.equal(past["w_end"], pc.max(past["w_end"])))
            shown.append(result_table(each.query.name, latest.slice(0, 8), clock=True))
    return Group(*shown)
