"""What watches over the run of a pipeline: notices that it fails, and starts another one without those to blame."""

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

#: Seconds between looks at a run.
POLL = 0.25

T = TypeVar("T")


class RunSupervisor(ABC):
    """A run, the checkpoint it writes to, and those who ask how it is."""

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
        #: The run whose end has been noticed.
        self._attended: Run | None = None
        self._listening = False
        self._problem: PanewiseError | None = None

    @property
    def query(self) -> StreamingQuery:
        """Spark's own query. Another one after a query has joined that needed other columns or panes."""
        return self._current_run.query

    @property
    def _current_run(self) -> Run:
        assert self._run is not None
        return self._run

    @abstractmethod
    def _launch(self) -> None:
        """Start a run for the queries of the pool."""

    def _acquire_lease(self) -> None:
        """Have the checkpoint, again where it was let go; who has lost it to another pipeline does not come back."""
        if self._problem is not None:
            raise self._problem
        self._lease.acquire()

    def _release_when_over(self) -> None:
        """Let others have the checkpoint once the run is over."""
        with self._lock:
            if self._run is not None and not self.query.isActive:
                self._lease.release()

    def _add_listener(self) -> None:
        if not self._listening:
            self._listening = True
            self._session.streams.addListener(self._listener)

    def _remove_listener(self) -> None:
        """Spark would go on speaking to a listener that is gone, and through Connect wait for it for ever."""
        if self._listening:
            self._listening = False
            self._listener.ended.wait(1.0)
            self._session.streams.removeListener(self._listener)

    def _record_last_batches(self) -> None:
        """Hear of the last batches of queries that have ended before their listener was told."""
        for progress in self.query.recentProgress:
            self._listener.record_progress(progress)

    def _stop_query(self) -> None:
        if self._run is not None and self.query.isActive:
            self._call_spark(self.query.stop)

    def _handle_end(self) -> None:
        """Notice that the run has failed, also where nobody waits for it; whoever does is told why."""
        current = self._current_run
        if current is not self._attended and not self._call_spark(lambda: current.query.isActive):
            self._attended = current
            with suppress(PanewiseError):
                self._with_recovery(lambda run: run.ends_within(POLL))

    def _with_recovery(self, action: Callable[[Run], T]) -> T:
        """Do something with the run; where it fails because of a query, do it again without that query."""
        while True:
            current = self._current_run
            try:
                return action(current)
            except (PySparkException, Py4JError) as problem:
                if not self._recover(current, problem):
                    raise self._explain_failure(problem) from problem

    def _recover(self, current: Run, problem: Exception) -> bool:
        """Start again without the queries that made a run fail; False where none is to blame."""
        with self._lock:
            if self._run is current:
                # What fails while it is stopped fails again, and is suspended, when it is started again.
                if self._stopped.is_set():
                    return False
                self._acquire_lease()
                if not self._suspending.suspend(current, self._pool, problem):
                    return False
                self._launch()
            return True

    def _call_spark(self, action: Callable[[], Any]) -> Any:
        """Do something in Spark; what goes wrong is said in one sentence."""
        try:
            return action()
        except (PySparkException, Py4JError) as problem:
            raise self._explain_failure(problem) from problem

    def _explain_failure(self, problem: Exception) -> PanewiseError:
        """Why Spark failed; a file that it could not read may be removed from now on."""
        if (file := unreadable_file(problem)) is not None:
            self._checkpoint.record_unreadable(file)
        return explain_failure(problem)
