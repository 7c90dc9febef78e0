"""Suspension of queries that fail, and their return: the records of it, and the results they missed."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession

from panewise.core.errors import BindProblem, StateProblem, did_you_mean
from panewise.engine import Pool
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.dead_letters import DeadLetter
from panewise.runtime.spark.metrics import ProgressListener
from panewise.runtime.spark.probe import queries_at_fault
from panewise.runtime.spark.run import Run
from panewise.runtime.spark.sink_routing import SinkRouting
from panewise.runtime.spark.sources import first_line

log = logging.getLogger("panewise.pipeline")


@dataclass(frozen=True, eq=False)
class SuspendedQueries:
    """The suspended queries of a pipeline, from its control log and its dead letters."""

    checkpoint: Checkpoint
    listener: ProgressListener
    name: str

    def reasons(self) -> dict[str, DeadLetter]:
        """Why queries, or their sinks, are suspended."""
        known = self.checkpoint.control.known_queries()
        queries = {name: query.suspension for name, query in known.items() if query.suspension is not None}
        return self.checkpoint.dead_letters.sink_suspensions() | queries

    def update_metrics(self) -> None:
        """Write the suspensions into the metrics."""
        self.listener.record_suspensions({name: str(letter) for name, letter in self.reasons().items()})

    def suspend(self, run: Run, pool: Pool, problem: Exception) -> bool:
        """Remove from a pool the queries that made a run fail, and record why; False if no query did."""
        letters = [letter for letter in queries_at_fault(run, pool, problem) if letter.query in pool.queries]
        for letter in letters:
            path = self.checkpoint.dead_letters.write(letter, pool.queries[letter.query].text)
            log.error("%s: %r is suspended: %s; see '%s'", self.name, letter.query, letter, path)
            pool.revoke(letter.query)
        if letters:
            commands = [{"op": "suspend", "name": letter.query} | asdict(letter) for letter in letters]
            self.checkpoint.control.append_commands(commands)
            self.update_metrics()
        return bool(letters)

    def has_waiting_results(self, name: str) -> bool:
        """Whether results of a query wait for its sinks."""
        return self.checkpoint.dead_letters.sink_suspension(name) is not None

    def deliver(self, name: str, routing: SinkRouting, session: SparkSession, writer: str) -> None:
        """Write the waiting results of a query to its sinks."""
        try:
            routing.deliver_waiting(session, name, writer)
        except Exception as problem:
            raise StateProblem(
                f"the sink of {name!r} fails again: {first_line(problem)}", fix="mend it; its results are kept"
            ) from problem
        log.info("%s: the sink of %r has taken all that waited", self.name, name)
        self.update_metrics()

    def resume_command(self, command: dict[str, Any], delivered: bool) -> dict[str, Any]:
        """The command by which a query joins again, also if only its sinks were suspended."""
        name, known = command["name"], self.checkpoint.control.known_queries()
        if name not in known:
            raise BindProblem(f"there is no query {name!r}", fix=did_you_mean(name, known or ["register"]))
        if not known[name].is_active:
            return command | known[name].register_command(name)
        if not delivered:
            raise BindProblem(f"query {name!r} is not suspended", fix="there is nothing to resume")
        return command
