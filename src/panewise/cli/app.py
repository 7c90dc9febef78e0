"""The command: `run`, `query`, `check`, `explain`, `plot`, `demo`, `serve`, `lookup`; `status` and others for
pipelines.

Each command imports what it needs when it runs, so that help and completion are fast.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from panewise import __version__
from panewise.cli.output import Output
from panewise.core.errors import PanewiseError

app = typer.Typer(
    no_args_is_help=True,
    help="Continuous window queries over data streams.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console()
errors = Console(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
WaitOption = Annotated[float, typer.Option(help="Seconds to wait for the pipeline.")]
CheckpointArgument = Annotated[Path, typer.Argument(help="The checkpoint of the pipeline.", show_default=False)]
TokenFileOption = Annotated[
    Path | None, typer.Option(help="A file with the token; without it, the variable PANEWISE_TOKEN is used.")
]
ScriptArgument = Annotated[Path, typer.Argument(help="A .cql script; - is standard input.", show_default=False)]
BoundaryOption = Annotated[str, typer.Option("--boundary", help="'(]' as in the papers, '[)' as in Spark and Flink.")]
ScriptBoundaryOption = Annotated[
    str | None, typer.Option(help="'(]' as in the papers, '[)' as in Spark and Flink; the script may also set it.")
]
UntilOption = Annotated[str | None, typer.Option(help="Stop at this instant.")]
RowsOption = Annotated[int, typer.Option(help="Rows to print of a result.", min=0)]
OutputOption = Annotated[Output, typer.Option(help="A table for people, or a document for programs.")]


def _version(wanted: bool) -> None:
    if wanted:
        console.print(__version__, highlight=False)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Continuous window queries over data streams."""


@app.command()
def run(
    script: ScriptArgument,
    boundary: ScriptBoundaryOption = None,
    until: UntilOption = None,
    rows: RowsOption = 20,
    output: OutputOption = Output.TABLE,
    query: Annotated[str | None, typer.Option(help="Print the result of this query only.")] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Run it as a pipeline on Spark.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="On Spark: continue until interrupted.")] = False,
    checkpoint: Annotated[Path | None, typer.Option(help="On Spark: the folder that remembers everything.")] = None,
    packages: Annotated[
        str | None, typer.Option(help="On Spark: connectors, such as org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0.")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(help="On Spark: a setting KEY=VALUE; may be given several times.")
    ] = None,
) -> None:
    """Answer every query of a script over its sources."""
    if spark or follow:
        from panewise.cli.pipelines import run_on_spark, settings_of

        settings = settings_of(packages, conf or [])
        run_on_spark(console, errors, script, checkpoint, follow, boundary, until, rows, output, query, settings)
    else:
        from panewise.cli.scripts import run_locally

        run_locally(console, errors, script, boundary, until, rows, output, query)


@app.command()
def query(
    data: Annotated[Path, typer.Argument(help="A .parquet, .csv or .json file.", show_default=False)],
    text: Annotated[str, typer.Argument(help="A SELECT over S, or the file's name without ending.")],
    time: Annotated[str | None, typer.Option(help="The column that orders the data; guessed if not named.")] = None,
    boundary: BoundaryOption = "(]",
    until: UntilOption = None,
    rows: RowsOption = 20,
    output: OutputOption = Output.TABLE,
) -> None:
    """Answer one query over a file."""
    from panewise.cli.querying import query_file

    query_file(console, errors, data, text, time, boundary, until, rows, output)


@app.command()
def check(script: ScriptArgument) -> None:
    """Check whether a script can be bound and planned, and print what is wrong with it; its sources are not read."""
    from panewise.cli.scripts import check_script

    if not check_script(console, errors, script):
        raise typer.Exit(1)


@app.command()
def explain(
    script: ScriptArgument,
    svg: Annotated[Path | None, typer.Option(help="Also draw the groups of windows into this file.")] = None,
    boundary: ScriptBoundaryOption = None,
) -> None:
    """Print how the queries of a script are understood and what they share, with reasons."""
    from panewise.cli.scripts import explain_script

    explain_script(console, script, svg, boundary)


@app.command()
def register(
    checkpoint: CheckpointArgument,
    name: Annotated[str, typer.Argument(help="The name of the query.")],
    query: Annotated[str, typer.Argument(help="The query, in CQL.")],
    start_now: Annotated[bool, typer.Option("--start-now", help="Count only what comes from now on.")] = False,
    into: Annotated[
        str | None, typer.Option(help="Where its results go, such as parquet:FOLDER; else the checkpoint keeps them.")
    ] = None,
    wait: WaitOption = 10.0,
) -> None:
    """Register a query with a pipeline, which may run in another process or not at all yet."""
    from panewise.cli.controlling import absolute_address, request

    start, place = "now" if start_now else "backfill", None if into is None else absolute_address(into)
    request(console, checkpoint, "register", wait, name=name, text=query, start=start, into=place)


@app.command()
def revoke(
    checkpoint: CheckpointArgument,
    name: Annotated[str, typer.Argument(help="The name of the query.")],
    wait: WaitOption = 10.0,
) -> None:
    """Revoke a query of a pipeline; it stays revoked, even if the script has it, until it is resumed."""
    from panewise.cli.controlling import request

    request(console, checkpoint, "revoke", wait, name=name)


@app.command()
def resume(
    checkpoint: CheckpointArgument,
    name: Annotated[str, typer.Argument(help="The name of the query.")],
    wait: WaitOption = 30.0,
) -> None:
    """Resume a query that was suspended or revoked, or its sinks."""
    from panewise.cli.controlling import request

    request(console, checkpoint, "resume", wait, name=name)


@app.command(name="list")
def list_(checkpoint: CheckpointArgument, as_json: JsonOption = False) -> None:
    """Show the queries of a pipeline, and why some are suspended."""
    from panewise.cli.controlling import show_queries

    show_queries(console, checkpoint, as_json)


@app.command()
def status(checkpoint: CheckpointArgument, as_json: JsonOption = False) -> None:
    """Print the status of a pipeline; the exit code is 0 when it runs or is finished, and no query is suspended."""
    from panewise.cli.controlling import show_status

    if not show_status(console, checkpoint, as_json):
        raise typer.Exit(1)


@app.command()
def results(
    checkpoint: CheckpointArgument,
    name: Annotated[str, typer.Argument(help="The name of the query.")],
    follow: Annotated[bool, typer.Option("--follow", help="Continue with new results as they are written.")] = False,
    rows: RowsOption = 20,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the results of a query that a pipeline has written as files."""
    from panewise.cli.controlling import show_results

    show_results(console, checkpoint, name, follow, rows, output)


@app.command()
def serve(
    logs: Annotated[list[Path], typer.Argument(help="Folders that PANES INTO writes.", show_default=False)],
    host: Annotated[str, typer.Option(help="Where to listen; other machines need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 for any free one.", min=0, max=65535)] = 8765,
    token_file: TokenFileOption = None,
    keep: Annotated[
        str | None, typer.Option(help="How far back lookups reach, such as '1 day'; all by default.")
    ] = None,
    poll: Annotated[float, typer.Option(help="Seconds between looks at the logs.", min=0.01)] = 0.5,
) -> None:
    """Answer lookups over HTTP from the panes that pipelines have finished."""
    from panewise.cli.serving import read_token, serve_logs

    serve_logs(console, logs, host, port, read_token(token_file), keep, poll)


@app.command()
def lookup(
    place: Annotated[str, typer.Argument(help="The address of a server, or the folder of a log.", show_default=False)],
    query: Annotated[str | None, typer.Option(help="The name of a query, or any text over the same panes.")] = None,
    at: Annotated[
        list[str] | None, typer.Option(help="An instant; may be given several times. The newest if none.")
    ] = None,
    window: Annotated[str | None, typer.Option(help="How far back, instead of the query's own window.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="A group; may be given several times.")] = None,
    output: OutputOption = Output.TABLE,
    token_file: TokenFileOption = None,
) -> None:
    """Look up any window of a query whose panes are logged, with a server or without."""
    from panewise.cli.serving import read_token, show_lookup

    show_lookup(console, place, query, at or [], window, key or [], output, read_token(token_file))


@app.command()
def plot(
    data: Annotated[Path, typer.Argument(help="A .parquet, .csv or .json file.", show_default=False)],
    time: Annotated[str, typer.Option(help="The column that orders the data.")],
    value: Annotated[str, typer.Option(help="The column to draw.")],
    query: Annotated[list[str], typer.Option(help="A query over the data, in CQL; may be given several times.")],
    out: Annotated[Path, typer.Option(help="The picture: a .png or .svg file.")],
    title: Annotated[str | None, typer.Option(help="What is written above it.")] = None,
    stream: Annotated[str, typer.Option(help="What queries call the data.")] = "S",
    boundary: BoundaryOption = "(]",
) -> None:
    """Draw a series and, under it, the windows or frames of queries over it."""
    from panewise.cli.plotting import plot_file

    for line in plot_file(data, time, value, query, out, title=title, stream=stream, boundary=boundary):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def demo(
    rows: Annotated[int, typer.Option(help="Connections to generate.", min=100)] = 6000,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 7,
    embedded: Annotated[bool, typer.Option("--embedded", help="In this process, as without PySpark.")] = False,
) -> None:
    """Generate a stream of network connections and answer queries on it, live, on local Spark."""
    from panewise.cli.demo import demo as run_demo

    run_demo(console, rows, seed, embedded)


@app.command()
def version() -> None:
    """Print the version."""
    console.print(__version__)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    errors.print(f"[yellow]warning:[/yellow] {escape(str(message))}", highlight=False, soft_wrap=True)


def main() -> None:
    """Run the command; a Panewise error is one sentence on standard error and exit code 1, a warning is a sentence."""
    warnings.showwarning = _warn
    try:
        app()
    except PanewiseError as problem:
        errors.print(f"[red]error:[/red] {escape(str(problem))}", highlight=False, soft_wrap=True)
        raise SystemExit(1) from None
