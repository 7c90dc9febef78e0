"""`panewise run`, `explain` and `check`: scripts in this process."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from panewise.cli.output import Output, choose_queries, write_results
from panewise.cli.show import show_account, show_answer
from panewise.core.errors import PanewiseError
from panewise.cql import BoundScript
from panewise.engine import Pool
from panewise.engine.pool import plan_for_engine
from panewise.plan import Refusal, explain
from panewise.runtime.local import HOST
from panewise.runtime.local.script import (
    answer,
    describe_inferred_columns,
    draw_window_groups,
    load,
    load_with_problems,
    shared_pool,
)


def run_locally(
    console: Console,
    errors: Console,
    path: Path,
    boundary: str | None,
    until: str | None,
    rows: int,
    output: Output,
    query: str | None,
) -> None:
    """Answer every query of a script and show the results."""
    message_console = console if output is Output.TABLE else errors
    with message_console.status("reading the script") as status:
        script = load(path)
        printed = [name for name, each in script.queries.items() if output is Output.TABLE or not each.into]
        names = choose_queries(list(script.queries), printed, query, output)
        answers = answer(script, path.parent, HOST, boundary=boundary, until=until, progress=status.update)
    if not answers:
        errors.print(f"{escape(str(path))} has no queries, so nothing is answered", highlight=False, soft_wrap=True)
    if output is Output.TABLE:
        for each in answers:
            if each.query.name in names:
                show_answer(console, each, rows)
        return
    for each in answers:
        show_account(errors, each.outcome)
    write_results({each.query.name: each.outcome.table for each in answers if each.query.name in names}, output)


def explain_script(console: Console, path: Path, svg: Path | None, boundary: str | None = None) -> None:
    """Print how each query of a script is understood, then what they share."""
    script = load(path)
    for line in describe_inferred_columns(script):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for query in script.queries.values():
        console.print(query.text, style="dim", markup=False)
        console.print(
            explain(query.name, query.query, plan_for_engine(query.query)),
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        console.print()
    pool = shared_pool(script, HOST, boundary)
    console.print(pool.explain(), markup=False, highlight=False, soft_wrap=True)
    if svg is not None:
        for target in draw_window_groups(pool, svg):
            console.print(f"drawn: {target}", markup=False)


def check_script(console: Console, errors: Console, path: Path) -> bool:
    """Bind and plan every query of a script without reading its sources; returns whether all is well, and prints
    problems."""
    script, problems = load_with_problems(path)
    problems += _planning_problems(script)
    for problem in problems:
        errors.print(f"{escape(f'{path}: {problem}')}", highlight=False, soft_wrap=True)
    if not problems:
        console.print(
            f"ok: {_count_text(len(script.streams), 'stream')}, {_count_text(len(script.queries), 'query', 'queries')}"
        )
    return not problems


def _planning_problems(script: BoundScript) -> list[PanewiseError]:
    """Why bound queries cannot be planned."""
    problems: list[PanewiseError] = []
    pool = Pool(script.streams, script.boundary_or(None), host=HOST, bounded=True)
    for query in script.queries.values():
        plan = plan_for_engine(query.query)
        if not isinstance(plan, Refusal):
            try:
                pool.prepare_query(query.name, plan)
            except PanewiseError as problem:
                problems.append(problem)
    return problems


def _count_text(count: int, one: str, many: str | None = None) -> str:
    return f"{count or 'no'} {one if count == 1 else many or one + 's'}"
