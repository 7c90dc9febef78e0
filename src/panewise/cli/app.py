"""`panewise run`, `panewise explain` and `panewise demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from panewise import __version__
from panewise.cli.demo import demo as run_demo
from panewise.cli.show import show_answer
from panewise.errors import PanewiseError
from panewise.plan import explain as explain_query
from panewise.runtime.local import HOST
from panewise.runtime.local.script import answer, drawn, load, shared

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Continuous window queries over data streams.")
console = Console()
errors = Console(stderr=True)

Script = Annotated[Path, typer.Argument(help="A .cql script.", show_default=False)]


@app.command()
def run(
    script: Script,
    boundary: Annotated[str, typer.Option(help="'(]' as in the papers, '[)' as in Spark and Flink.")] = "(]",
    until: Annotated[str | None, typer.Option(help="Stop at this instant.")] = None,
    rows: Annotated[int, typer.Option(help="Rows to print of a query without INTO.")] = 20,
) -> None:
    """Answer every query of a script over its files."""
    with console.status("reading the script") as status:
        answers = answer(
            load(script, HOST), script.parent, HOST, boundary=boundary, until=until, progress=lambda s: status.update(s)
        )
    for each in answers:
        show_answer(console, each, rows)


@app.command()
def explain(
    script: Script,
    svg: Annotated[Path | None, typer.Option(help="Also draw the groups of windows into this file.")] = None,
) -> None:
    """Say how the queries of a script are understood and what they share, with reasons."""
    pipeline = load(script, HOST)
    for query in pipeline.queries.values():
        console.print(query.text, style="dim", markup=False)
        console.print(explain_query(query.name, query.query), markup=False, highlight=False, soft_wrap=True)
        console.print()
    pool = shared(pipeline, HOST)
    console.print(pool.explain(), markup=False, highlight=False, soft_wrap=True)
    if svg is not None:
        for target in drawn(pool, svg):
            console.print(f"drawn: {target}", markup=False)


@app.command()
def demo(
    rows: Annotated[int, typer.Option(help="Connections to generate.", min=1)] = 6000,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 7,
    pace: Annotated[float, typer.Option(help="Seconds to show each instant.", min=0)] = 0.04,
) -> None:
    """Generate a stream of network connections and answer a script of queries on it, live."""
    run_demo(console, rows, seed, pace)


@app.command()
def version() -> None:
    """Print the version."""
    console.print(__version__)


def main() -> None:
    """Run the command; a Panewise error is one sentence on standard error and exit code 1."""
    try:
        app()
    except PanewiseError as problem:
        errors.print(f"[red]error:[/red] {escape(str(problem))}", highlight=False, soft_wrap=True)
        raise SystemExit(1) from None
