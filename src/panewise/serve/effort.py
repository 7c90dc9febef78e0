"""How much one request may take: it ends when its time is over, or when its client has disconnected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

import pyarrow as pa

from panewise.algebra import Host
from panewise.core.errors import LimitExceeded
from panewise.core.scalar import Scalar
from panewise.runtime.local.sandbox import Sandbox


class RequestBudget:
    """The budget of one request, which is worked on outside the event loop and can be cancelled from it.

    Long work is done in slices, with a call of `check` between them.
    """

    def __init__(self, seconds: float | None = None, sandbox: Sandbox | None = None) -> None:
        self._seconds, self._sandbox = seconds, sandbox
        self._begun = monotonic()
        self._over = False

    @property
    def seconds_left(self) -> float:
        """Seconds that are left."""
        return float("inf") if self._seconds is None else self._seconds - (monotonic() - self._begun)

    def check(self) -> None:
        """Raise if the budget is used up or cancelled."""
        if self._over:
            raise LimitExceeded("it was given up", fix="ask again")
        if self.seconds_left <= 0:
            raise LimitExceeded(f"it takes longer than {self._seconds} seconds", fix="ask for less at once")

    def wait_uncounted(self, ready: Callable[[], None]) -> None:
        """Wait for something that the client did not cause; that time is not counted."""
        start = monotonic()
        ready()
        self._begun += monotonic() - start

    def cancel(self) -> None:
        """Cancel the work, whatever it does."""
        self._over = True
        if self._sandbox is not None:
            self._sandbox.kill()

    def host(self, own: Host) -> Host:
        """The host that evaluates expressions: that of this process, or a sandbox for texts of unknown clients."""
        return own if self._sandbox is None else _BudgetedSandbox(self, self._sandbox)


class _BudgetedSandbox:
    """A sandbox for the time of one request."""

    def __init__(self, effort: RequestBudget, sandbox: Sandbox) -> None:
        self._effort, self._sandbox = effort, sandbox

    def evaluate(self, scalars: Sequence[Scalar], table: pa.Table) -> list[pa.ChunkedArray]:
        self._effort.check()
        self._effort.wait_uncounted(self._sandbox.start)
        return self._sandbox.evaluate(scalars, table, self._effort.seconds_left)
