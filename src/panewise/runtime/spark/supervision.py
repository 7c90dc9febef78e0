"""Supervises the run of a pipeline: detects that it has failed, and starts another one without the queries at fault."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from panewise.core.errors import PanewiseError
from panewise.engine import Pool
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.spark.failures import explain_failure, unreadable_file
from panewise.runtime.spark.metrics import ProgressListener
from panewise.runtime.spark.run import Run
from panewise.runtime.spark.suspension import SuspendedQueries

#: Seconds between checks of a run.
POLL = 0.25

T = TypeVar("T")


class RunSupervisor(ABC):
    """A run, the checkpoint it writes to, and the threads that wait for it."""

    def __init__(
        self, session: SparkSession, checkpoint: Checkpoint, pool: Pool, listener: ProgressListener, name: str
    ) -> None:
        self._session, self._checkpoint, self._lease = session, checkpoint, checkpoint.lease
        #: The queries that are answered.
        self._pool, self._listener, self._name = pool, listener, name
        self._suspending = SuspendedQueries(checkpoint, listener, name)
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._run: Run | None = None
        #: The run whose end has been handled.
        self._attended: Run | None = None
        self._listening = False
        self._problem: PanewiseError | None = None

    @property
    def query(self) -> StreamingQuery:
        """Spark's own query. It changes when a query joins that needs other columns or panes."""
        return self._current_run.query

    @property
    def _current_run(self) -> Run:
        assert self._run is not None
        return self._run

    @abstractmethod
    def _launch(self) -> None:
        """Start a run for the queries of the pool."""

    def _acquire_lease(self) -> None:
        """Acquire the lease, also again after a release; a pipeline that lost the checkpoint to another one stays
        out."""
        if self._problem is not None:
            raise self._problem
        self._lease.acquire()

    def _release_when_over(self) -> None:
        """Release the checkpoint once the run is over."""
        with self._lock:
            if self._run is not None and not self.query.isActive:
                self._lease.release()

    def _add_listener(self) -> None:
        if not self._listening:
            self._listening = True
            self._session.streams.addListener(self._listener)

    def _remove_listener(self) -> None:
        """Remove the listener: Spark would keep calling it, and through Connect wait for it for ever."""
        if self._listening:
            self._listening = False
            self._listener.ended.wait(1.0)
            self._session.streams.removeListener(self._listener)

    def _record_last_batches(self) -> None:
        """Record the last batches of queries that ended before their listener was called."""
        for progress in self.query.recentProgress:
            self._listener.record_progress(progress)

    def _stop_query(self) -> None:
        if self._run is not None and self.query.isActive:
            self._call_spark(self.query.stop)

    def _handle_end(self) -> None:
        """Handle the failure of the run, also if no thread waits for it; a waiting thread receives the reason."""
        current = self._current_run
        if current is not self._attended and not self._call_spark(lambda: current.query.isActive):
            self._attended = current
            with suppress(PanewiseError):
                self._with_recovery(lambda run: run.ends_within(POLL))

    def _with_recovery(self, action: Callable[[Run], T]) -> T:
        """Do something with the run; if it fails because of a query, do it again without that query."""
        while True:
            current = self._current_run
            try:
                return action(current)
            except (PySparkException, Py4JError) as problem:
                if not self._recover(current, problem):
                    raise self._explain_failure(problem) from problem

    def _recover(self, current: Run, problem: Exception) -> bool:
        """Start again without the queries that made a run fail; False if no query did."""
        with self._lock:
            if self._run is current:
                # A failure during the stop occurs again, and is handled, at the next start.
                if self._stopped.is_set():
                    return False
                self._acquire_lease()
                if not self._suspending.suspend(current, self._pool, problem):
                    return False
                self._launch()
            return True

    def _call_spark(self, action: Callable[[], Any]) -> Any:
        """Call Spark; a failure becomes one sentence."""
        try:
            return action()
        except (PySparkException, Py4JError) as problem:
            raise self._explain_failure(problem) from problem

    def _explain_failure(self, problem: Exception) -> PanewiseError:
        """Why Spark failed; a file that it could not read is recorded, so that it may be removed."""
        if (file := unreadable_file(problem)) is not None:
            self._checkpoint.record_unreadable(file)
        return explain_failure(problem)
