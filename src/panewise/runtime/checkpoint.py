"""The folder in which a pipeline keeps all it must remember: its plan, its control log, Spark's own checkpoint."""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from panewise.core.errors import StateProblem
from panewise.engine import Pool
from panewise.engine.state.snapshot import fingerprint
from panewise.runtime.atomic_files import clear_drafts, create_atomic
from panewise.runtime.control import ControlLog
from panewise.runtime.dead_letters import DeadLetterFolder
from panewise.runtime.lease import Lease

FORMAT = 2


@dataclass(frozen=True)
class PipelinePlan:
    """What cannot change as long as a checkpoint exists."""

    identity: str
    pool: dict[str, Any]
    shards: int
    labels: tuple[int, ...]
    state: str
    format: int = FORMAT

    def empty_pool(self) -> Pool:
        """A pool with the streams of the plan and no queries."""
        return Pool.from_declaration(self.pool | {"queries": []})


class Checkpoint:
    """A checkpoint folder, on a file system that the driver and all workers see."""

    def __init__(self, folder: str | Path) -> None:
        text = str(folder)
        if "://" in text and not text.startswith("file://"):
            raise StateProblem(
                f"checkpoint {text!r} is no folder of a mounted file system",
                fix="give a path that the driver and all workers see, such as one on NFS",
            )
        self.folder = Path(text.removeprefix("file://")).absolute()
        self.control = ControlLog(self.folder)
        self.lease = Lease(self.folder)

    @property
    def spark(self) -> Path:
        """Spark's own checkpoint."""
        return self.folder / "spark"

    @property
    def state(self) -> Path:
        """The state of the shards, where Spark does not keep it."""
        return self.folder / "state"

    def file_log(self, stream: str) -> Path:
        """The folder with the lists of files that the batches of a stream read, where workers read them."""
        return self.folder / "files" / quote(stream, safe="").replace(".", "%2E")

    @property
    def outbox(self) -> Path:
        """The folder in which shards put the results of the running batch, where Spark does not carry them."""
        return self.folder / "outbox"

    @property
    def batch_commands(self) -> Path:
        """Which commands the last batches apply, where Spark does not record it."""
        return self.folder / "agenda"

    def clear_drafts(self) -> None:
        """Remove what killed runs left: half-written files, and Spark's folder before its first batch, since Spark
        refuses one that is not empty."""
        for folder in (self.folder, *self.state.glob("*/")):
            clear_drafts(folder)
        self.control.clear_drafts()
        batches = (path for name in ("offsets", "commits") for path in (self.spark / name).glob("[0-9]*"))
        if not any(batches) and not (self.spark / "state").exists() and not self.begun_file.exists():
            shutil.rmtree(self.spark, ignore_errors=True)

    @property
    def begun_file(self) -> Path:
        """The file that exists once every shard has state."""
        return self.folder / "begun"

    @property
    def finishing_file(self) -> Path:
        """The file with the number of the batch that answers everything, written before that batch begins."""
        return self.folder / "finishing"

    @property
    def targets(self) -> Path:
        """The targets of each query at the last start of the pipeline: addresses, by query and `*`."""
        return self.folder / "targets.json"

    @property
    def dead_letters(self) -> DeadLetterFolder:
        """The rows that queries failed on, and results that no sink took."""
        return DeadLetterFolder(self.folder / "dead_letters")

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    @property
    def lateness(self) -> Path:
        """The folder in which each shard writes how many rows came too late for which query."""
        return self.folder / "lateness"

    def record_unreadable(self, file: str) -> None:
        """Record that a file of a source could not be read: it may be removed."""
        folder = self.folder / "unreadable"
        folder.mkdir(exist_ok=True)
        create_atomic(folder / _file_name(file), file.encode())

    def is_known_unreadable(self, file: str) -> bool:
        return (self.folder / "unreadable" / _file_name(file)).exists()

    def results(self, name: str) -> Path:
        """The folder in which `memory:` keeps the results of a query."""
        return self.folder / "results" / quote(name, safe="").replace(".", "%2E")

    def plan(self) -> PipelinePlan | None:
        """The plan that was written; None in an empty folder."""
        path = self.folder / "plan.json"
        if not path.exists():
            if self.spark.exists() and any(self.spark.iterdir()):
                raise StateProblem(
                    f"'{self.folder}' is no checkpoint of Panewise: it has no plan.json", fix="use an empty folder"
                )
            return None
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            sealed = saved.pop("fingerprint")
            found = PipelinePlan(**(saved | {"labels": tuple(saved["labels"])}))
        except OSError as problem:
            raise StateProblem(f"'{path}' cannot be read: {problem.strerror}", fix="check permissions") from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise StateProblem(
                f"'{path}' is damaged", fix="restore it from a copy, or start with an empty checkpoint"
            ) from None
        if found.format != FORMAT:
            raise StateProblem(
                f"the checkpoint has format {found.format}, this version reads format {FORMAT}",
                fix="run it with the version that wrote it",
            )
        if sealed != fingerprint(asdict(found)):
            raise StateProblem(
                f"'{path}' is damaged: its fingerprint is wrong",
                fix="restore it from a copy, or start with an empty checkpoint",
            )
        return found

    def create(self, pool: Pool, labels: tuple[int, ...], state: str) -> PipelinePlan:
        """Write the plan of a new pipeline."""
        declared = pool.without_queries().declaration()
        plan = PipelinePlan(uuid.uuid4().hex, declared, len(labels), labels, state)
        try:
            self.control.prepare()
            text = json.dumps(asdict(plan) | {"fingerprint": fingerprint(asdict(plan))})
            create_atomic(self.folder / "plan.json", text.encode())
        except OSError as problem:
            raise StateProblem(
                f"checkpoint '{self.folder}' cannot be written: {problem.strerror}", fix="check space and permissions"
            ) from None
        return plan

    def check_compatible(self, plan: PipelinePlan, pool: Pool, shards: int | None, state: str) -> None:
        """Refuse settings with which the checkpoint cannot continue."""
        declared = pool.without_queries().declaration()
        for name in sorted({*declared["streams"], *plan.pool["streams"]}):
            if declared["streams"].get(name) != plan.pool["streams"].get(name):
                raise StateProblem(
                    f"stream {name!r} is declared otherwise than in the checkpoint",
                    fix="declare it as before, or start with an empty checkpoint",
                )
        if declared["boundary"] != plan.pool["boundary"]:
            raise StateProblem(
                f"the checkpoint was written with boundary {plan.pool['boundary']!r}",
                fix="use that one, or start with an empty checkpoint",
            )
        if state != plan.state:
            raise StateProblem(
                f"the checkpoint was written with state={plan.state!r}",
                fix="use that one, or start with an empty checkpoint",
            )
        if shards is not None and shards != plan.shards:
            raise StateProblem(
                f"the checkpoint has {plan.shards} shards, not {shards}; their number is fixed",
                fix=f"leave shards out or say {plan.shards}; for another number start with an empty checkpoint and "
                "let it read the sources again",
            )


def _file_name(path: str) -> str:
    """A name for a path."""
    return fingerprint({"file": path})
