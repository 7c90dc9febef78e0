"""`panewise run` and `panewise explain`: scripts in this process."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from panewise.cli.show import show_answer
from panewise.plan import explain
from panewise.runtime.local import HOST
from panewise.runtime.local.script import answer, drawn, found_columns, load, shared


def run_here(console: Console, path: Path, boundary: str | None, until: str | None, rows: int) -> None:
    """Answer every query of a script and show what became of it."""
    with console.status("reading the script") as status:
        script = load(path, HOST)
        answers = answer(script, path.parent, HOST, boundary=boundary, until=until, progress=status.update)
    for each in answers:
        show_answer(console, each, rows)


def explained(console: Console, path: Path, svg: Path | None, boundary: str | None = None) -> None:
    """Say how each query of a script is understood, then what they share."""
    script = load(path, HOST)
    for line in found_columns(script):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for query in script.queries.values():
        console.print(query.text, style="dim", markup=False)
        console.print(explain(query.name, query.query), markup=False, highlight=False, soft_wrap=True)
        console.print()
    pool = shared(script, HOST, boundary)
    console.print(pool.explain(), markup=False, highlight=False, soft_wrap=True)
    if svg is not None:
        for target in drawn(pool, svg):
            console.print(f"drawn: {target}", markup=False)
