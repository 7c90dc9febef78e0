"""`panewise register`, `revoke` and `list`: pipelines that run elsewhere."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from panewise.errors import BindProblem, SourceProblem, did_you_mean
from panewise.runtime.checkpoint import Checkpoint, Plan


def request(console: Console, folder: Path, op: str, patience: float, **arguments: Any) -> None:
    """Ask the pipeline of a checkpoint for something, and wait for its answer."""
    checkpoint = Checkpoint(folder)
    _checked(_plan(checkpoint), checkpoint, op, arguments)
    identity = checkpoint.control.request(op, **arguments)
    waited = 0.0
    while (fate := checkpoint.control.fate(identity)) is None and waited < patience:
        time.sleep(0.2)
        waited += 0.2
    if fate:
        raise BindProblem(f"the pipeline refuses: {fate}")
    done = {"register": "registered", "revoke": "revoked"}[op]
    after = "" if fate is not None else ", once the pipeline runs"
    console.print(f"{escape(str(arguments['name']))} is {done}{after}")


def _plan(checkpoint: Checkpoint) -> Plan:
    plan = checkpoint.plan()
    if plan is None:
        raise SourceProblem(f"'{checkpoint.folder}' is no checkpoint of a pipeline", fix="check the path")
    return plan


def _checked(plan: Plan, checkpoint: Checkpoint, op: str, arguments: dict[str, Any]) -> None:
    """Refuse at once what the pipeline would refuse anyway."""
    standing = checkpoint.control.standing()
    if op == "register":
        plan.streams().understood(arguments["name"], arguments["text"])
        other = standing.get(arguments["name"])
        if other is not None and other.text != arguments["text"]:
            raise BindProblem(f"the name {arguments['name']!r} is taken", fix="revoke it first, or choose another one")
    elif arguments["name"] not in standing and not any(
        asked.get("name") == arguments["name"] for asked in checkpoint.control.pending()
    ):
        name = arguments["name"]
        raise BindProblem(f"there is no query {name!r}", fix=did_you_mean(name, standing or ["panewise register"]))


def listed(console: Console, folder: Path) -> None:
    """The queries of a pipeline, and what has been asked of it but not followed yet."""
    checkpoint = Checkpoint(folder)
    _plan(checkpoint)
    for name, query in checkpoint.control.standing().items():
        console.print(f"[bold]{escape(name)}[/bold]  {escape(query.text)}", highlight=False, soft_wrap=True)
    for asked in checkpoint.control.pending():
        console.print(f"{escape(str(asked.get('name')))}  waits to be {asked['op']}ed", style="dim", soft_wrap=True)
