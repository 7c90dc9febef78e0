"""Results as readable tables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from panewise.core.accounting import Outcome
from panewise.runtime.local.script import QueryAnswer


def show_answer(console: Console, answer: QueryAnswer, rows: int) -> None:
    """Show one query's result: its target, or its first rows, and the account of its streams."""
    table = answer.outcome.table
    if not rows:
        console.print(f"[bold]{escape(answer.query.name)}[/bold]: {table.num_rows:,} rows")
    elif answer.written:
        console.print(
            f"[bold]{escape(answer.query.name)}[/bold]: {table.num_rows:,} rows to {escape(str(answer.written))}"
        )
    else:
        show_result(console, answer.query.name, table, rows)
    show_account(console, answer.outcome)


def show_result(console: Console, title: str, table: pa.Table, rows: int) -> None:
    """Show the first rows of a result, and how many more there are."""
    console.print(result_table(title, table.slice(0, rows)))
    if table.num_rows > rows:
        console.print(f"... {table.num_rows - rows:,} more rows", style="dim")


def show_account(console: Console, outcome: Outcome) -> None:
    """For streams with rows that were not used, or not everywhere: show how many and why."""
    for name, account in outcome.accounting.items():
        if account.late or account.rejected or account.partly_late:
            console.print(
                f"  {escape(name)}: {account.rows_in:,} rows in = {account.used:,} used + {account.late:,} late "
                f"+ {account.rejected:,} rejected; {account.partly_late:,} of the used were late for some instants"
            )


def result_table(title: str, table: pa.Table, *, clock: bool = False) -> Table:
    """A rich table of an Arrow table; numbers to the right. With `clock`, timestamps show the time of day only."""
    shown = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="cyan",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        show_edge=False,
    )
    for field in table.schema:
        right = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        shown.add_column(escape(field.name), justify="right" if right else "left", no_wrap=True)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        shown.add_row(*(_cell(value, clock) for value in row))
    return shown


def _cell(value: Any, clock: bool) -> str:
    if value is None:
        return "[dim]NULL[/dim]"
    if clock and isinstance(value, datetime):
        return f"{value:%H:%M:%S}"
    return f"{value:,.2f}" if isinstance(value, float) else escape(str(value).removesuffix("+00:00"))
