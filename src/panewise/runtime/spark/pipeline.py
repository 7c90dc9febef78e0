"""A running pipeline: registered queries over streaming DataFrames, which join and leave while it runs."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from panewise.core.errors import BindProblem, PanewiseError, SchemaProblem, StateProblem, did_you_mean
from panewise.core.time import Domain
from panewise.engine import Pool
from panewise.engine.pool import RegisteredQuery
from panewise.runtime.checkpoint import Checkpoint, PipelinePlan
from panewise.runtime.control import command_fault, script_changes
from panewise.runtime.dead_letters import DeadLetter
from panewise.runtime.signals import signals
from panewise.runtime.spark.metrics import Metrics, ProgressListener
from panewise.runtime.spark.run import FileStateRun, PipelineSettings, StateStoreRun, StreamInput
from panewise.runtime.spark.run_context import RunContext
from panewise.runtime.spark.sink_routing import SinkRouting
from panewise.runtime.spark.supervision import POLL, RunSupervisor

log = logging.getLogger("panewise.pipeline")


class Pipeline(RunSupervisor):
    """A running pipeline. Leaving it as a context manager stops it."""

    def __init__(
        self,
        pool: Pool,
        plan: PipelinePlan,
        session: SparkSession,
        inputs: Mapping[str, StreamInput],
        checkpoint: Checkpoint,
        outlets: SinkRouting,
        trigger: Mapping[str, Any],
        skew: int | None,
    ) -> None:
        self._routing = outlets
        self._scripted = {name: registered.text for name, registered in pool.queries.items()}
        name = f"panewise-{plan.identity[:8]}"
        self._setting = PipelineSettings(session, checkpoint, plan, inputs, trigger, skew, name)
        timed = all(schema.domain is Domain.TIMESTAMP for schema in pool.streams.values())
        super().__init__(session, checkpoint, plan.empty_pool(), ProgressListener(checkpoint, timed), name)
        self._context: RunContext | None = None
        #: The last problem of the control log that was logged, so that it is logged once.
        self._complaint = ""

    # ---- queries and metrics -----------------------------------------------------------------------------------

    @property
    def metrics(self) -> Metrics:
        """The metrics after the last batch."""
        return self._listener.last

    def list(self) -> dict[str, str]:
        """The active queries, with their texts."""
        with self._lock:
            return {name: registered.text for name, registered in self._pool.queries.items()}

    def explain(self) -> str:
        """How the queries share panes, and which rows are sliced before they reach a shard."""
        with self._lock:
            assert self._context is not None
            return "\n".join([self._pool.explain(), *self._context.layout.explain()])

    @property
    def suspended(self) -> dict[str, DeadLetter]:
        """Queries that failed, or whose sinks failed; they wait until they are resumed, the others continue."""
        return self._suspending.reasons()

    def results(self, name: str) -> DataFrame:
        """The results of a query whose sink is `memory:`, also of a query that was revoked."""
        texts = [
            c["text"] for _, some in self._checkpoint.control.history() for c in some if _is_registration_of(c, name)
        ]
        if not texts:
            raise BindProblem(f"there is no query {name!r}", fix=did_you_mean(name, self.list() or ["register"]))
        return self._routing.memory_results(self._session, self._pool.prepare_query(name, texts[-1]), self._pool)

    # ---- queries come and go -----------------------------------------------------------------------------------

    def register(self, name: str, text: str, *, start: str = "backfill") -> None:
        """Register a query. It sees the panes that are kept (`backfill`), or only what comes from `now` on."""
        self._execute_command({"op": "register", "name": name, "text": text, "start": start})

    def revoke(self, name: str) -> None:
        """Revoke a query."""
        self._execute_command({"op": "revoke", "name": name})

    def resume(self, name: str) -> None:
        """Register a suspended or revoked query again; it sees the panes that are kept, as when it was registered
        first.

        Results that its sinks did not take are written first. A query that fails again is suspended again.
        """
        self._execute_command({"op": "resume", "name": name})

    def finish(self, until: int | str | None = None) -> None:
        """End the input: wait until all rows have been read, answer everything, and stop.

        If a pipeline was killed during this, it is done again.
        """
        if self._setting.bounded:
            self.await_end()
        else:
            self._with_recovery(lambda run: run.query.processAllAvailable())
        with self._lock:
            if not self._checkpoint.control.finished:
                self._execute_command({"op": "finish"} | ({} if until is None else {"until": until}))
            if not self.query.isActive:
                self._launch()
        try:
            self._with_recovery(lambda run: run.wait_for_commands())
        finally:
            # Also when it fails: the next attempt needs the checkpoint at once.
            self.stop()

    def _execute_command(self, command: dict[str, Any]) -> None:
        """Apply a command: refuse it, or write it for the shards."""
        with self._lock:
            self._acquire_lease()
            if self._checkpoint.control.finished:
                raise StateProblem("the pipeline is finished", fix="start another one with an empty checkpoint")
            if command["op"] == "resume":
                if waiting := self._suspending.has_waiting_results(command["name"]):
                    self._deliver_waiting(command["name"])
                command = self._suspending.resume_command(command, waiting)
            registered = self._query_to_join(command)
            prepared = registered is None or self._can_serve(registered)
            if not prepared:
                log.info("%s: starting again, since %s needs other columns or panes", self._name, command["name"])
                self._stop_query()
            try:
                self._checkpoint.control.append_commands([command])
                log.info("%s: %s %s", self._name, command["op"], command.get("name", ""))
                if registered is not None:
                    self._pool.add_query(registered)
                elif command["op"] == "revoke" and command["name"] in self._pool.queries:
                    self._pool.revoke(command["name"])
                self._suspending.update_metrics()
            finally:
                # Also when the log cannot be written: the other queries continue.
                if not prepared:
                    self._launch()

    def _deliver_waiting(self, name: str) -> None:
        """Write waiting results to the sinks of a query; meanwhile no batch may add to them."""
        self._stop_query()
        try:
            self._suspending.deliver(name, self._routing, self._session, self._setting.plan.identity)
        finally:
            self._launch()

    def _query_to_join(self, command: Mapping[str, Any]) -> RegisteredQuery | None:
        """The query that a command registers; refuses a command that cannot be applied."""
        name = command.get("name")
        if command["op"] == "revoke" and name not in {*self._pool.queries, *self._suspending.reasons()}:
            raise BindProblem(f"there is no query {name!r}", fix=did_you_mean(str(name), self.list() or ["register"]))
        if command["op"] != "register":
            return None
        if name in self._pool.queries:
            raise BindProblem(f"the name {name!r} is taken", fix="revoke it first, or choose another one")
        if command["start"] not in ("backfill", "now"):
            raise BindProblem(f"start {command['start']!r} is unknown", fix="use 'backfill' or 'now'")
        since = 0 if command["start"] == "now" else None
        registered = self._pool.prepare_query(command["name"], command["text"], since)
        for stream in sorted(registered.streams - set(self._setting.inputs)):
            raise SchemaProblem(f"there is no input for stream {stream!r}", fix="restart with one")
        routing = self._routing.with_target(registered.name, command.get("into"))
        routing.refuse_conflicts(registered, self._pool)
        self._routing = routing
        return registered

    def _can_serve(self, registered: RegisteredQuery) -> bool:
        """Whether slicers and sinks of this run can serve a query."""
        assert self._context is not None
        return self._context.layout.covers(registered.plan) and self._routing.can_serve(
            registered, self._pool, self._context
        )

    # ---- running -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Bring the control log up to the script, and start the run."""
        with self._lock:
            self._apply_script_changes()
            for name, query in self._checkpoint.control.active_queries().items():
                self._pool.add_query(self._pool.prepare_query(name, query.text))
                self._routing = self._routing.with_target(name, query.into)
            self._launch()
            self._suspending.update_metrics()
        threading.Thread(target=self._watch, name=self._name, daemon=True).start()

    def _apply_script_changes(self) -> None:
        """Apply the changes of the script since the checkpoint was written."""
        known = self._checkpoint.control.known_queries()
        amended = list(script_changes(known, self._scripted))
        commands = [command for _, some in amended for command in some]
        if commands and self._checkpoint.control.finished:
            raise StateProblem("the pipeline is finished", fix="start the changed script with an empty checkpoint")
        for sentence, _ in amended if known else []:
            log.warning("%s: %s", self._name, sentence)
        if commands:
            self._checkpoint.control.append_commands(commands)

    def _launch(self) -> None:
        self._acquire_lease()
        plan = self._setting.plan
        context = RunContext.of(
            f"{plan.identity}/{uuid.uuid4().hex}",
            self._pool,
            plan.shards,
            self._routing.channels(self._pool),
            self._setting.inputs,
            self._checkpoint.control.suspensions(),
            str(self._checkpoint.lateness),
            self._setting.columnar,
        )
        kind = StateStoreRun if plan.state == "rocksdb" else FileStateRun
        sinks = self._routing.sinks(context, plan.identity)
        self._routing.write_targets()
        self._listener.ended.clear()
        self._run = self._call_spark(lambda: kind(self._setting, context, sinks, self._listener))
        self._context = context
        self._listener.query = str(self.query.id)
        self._add_listener()

    def _watch(self) -> None:
        """Apply requests of other processes, as long as this process owns the checkpoint."""
        while not self._stopped.wait(POLL):
            try:
                if self._listener.ended.is_set():
                    self._handle_end()
                    self._release_when_over()
                self._suspending.update_metrics()
                if self._lease.held:
                    self._lease.fence.check()
            except PanewiseError as problem:
                log.error("%s: %s", self._name, problem)
                self._problem = problem
                with suppress(PanewiseError):
                    self._stop_query()
                return
            if self._lease.held:
                self._answer_requests()

    def _answer_requests(self) -> None:
        """Answer all pending requests; a faulty log does not stop the active queries."""
        try:
            for request in self._checkpoint.control.pending_requests():
                self._answer_request(request)
        except Exception as problem:
            if str(problem) != self._complaint:
                self._complaint = str(problem)
                log.exception("%s: the control log cannot be followed", self._name)

    def _answer_request(self, request: dict[str, Any]) -> None:
        command = {key: value for key, value in request.items() if key != "number"}
        if (fault := command_fault(command)) is not None:
            log.warning("%s: a request is refused: %s", self._name, fault)
            self._checkpoint.control.refuse(command["id"], fault)
            return
        with self._lock:
            registered = self._pool.queries.get(str(command.get("name")))
            if command["op"] == "register" and registered is not None and registered.text == command["text"]:
                # The request was sent twice, because its sender was not sure that it arrived: the query is active
                # already.
                self._checkpoint.control.append_commands([command])
                return
            try:
                self._execute_command(command)
            except PanewiseError as problem:
                log.warning("%s: %s %s is refused: %s", self._name, command["op"], command.get("name"), problem)
                self._checkpoint.control.refuse(command["id"], str(problem))

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until the pipeline ends by itself or is stopped; SIGINT and SIGTERM stop it after the running batch.

        False when it still runs after `timeout` seconds. A failure is raised.
        """
        with signals(self._stop_on_signal):
            waited = 0.0
            while timeout is None or waited < timeout:
                step = POLL if timeout is None else min(POLL, timeout - waited)
                if self._wait_for_end(step):
                    return True
                waited += step
        return False

    def _wait_for_end(self, patience: float) -> bool:
        try:
            over, current = self._with_recovery(lambda run: (run.ends_within(patience), run))
            if over:
                self._record_last_batches()
                self._remove_listener()
        finally:
            self._release_when_over()
        if self._problem is not None:
            raise self._problem
        with self._lock:
            return bool(over) and self._current_run is current

    def _stop_on_signal(self, *_: object) -> None:
        log.info("%s: stopping after the running batch", self._name)
        threading.Thread(target=self.stop, daemon=True).start()

    def stop(self, patience: float = 10.0) -> None:
        """Stop after the running batch; the checkpoint has everything that is needed to continue."""
        self._stopped.set()
        with self._lock:
            try:
                waited = 0.0
                while self._current_run.busy and waited < patience:
                    time.sleep(POLL)
                    waited += POLL
                self._stop_query()
                self._record_last_batches()
                self._remove_listener()
            finally:
                self._lease.release()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _is_registration_of(command: Mapping[str, Any], name: str) -> bool:
    return bool(command["op"] == "register" and command["name"] == name)
