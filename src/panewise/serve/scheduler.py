"""Runs lookups that take long: outside the event loop, few at once, as long as their time lasts and a client waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any, TypeVar, cast

import pyarrow as pa

from panewise.algebra import Host
from panewise.core.errors import LimitExceeded
from panewise.core.scalar import Scalar
from panewise.runtime.local.sandbox import Sandbox
from panewise.serve.limits import Busy, Limits

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


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
            raise LimitExceeded("the lookup was given up", fix="ask again")
        if self.seconds_left <= 0:
            raise LimitExceeded(f"the lookup takes longer than {self._seconds} seconds", fix="ask for less at once")

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

    def __init__(self, budget: RequestBudget, sandbox: Sandbox) -> None:
        self._budget, self._sandbox = budget, sandbox

    def evaluate(self, scalars: Sequence[Scalar], table: pa.Table) -> list[pa.ChunkedArray]:
        self._budget.check()
        self._budget.wait_uncounted(self._sandbox.start)
        return self._sandbox.evaluate(scalars, table, self._budget.seconds_left)


class LookupScheduler:
    """Runs lookups in two queues: those of registered queries, and those by text, which unknown clients wrote.

    Texts are parsed and answered by a few threads of their own, and their expressions are evaluated in sandboxes.
    Python runs one thread at a time: the fewer threads work, the sooner other requests are served.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lookups, self._texts = asyncio.Semaphore(limits.lookups), asyncio.Semaphore(limits.texts)
        self._sandboxes = [Sandbox(limits.memory, limits.bytes) for _ in range(limits.texts)]
        self._budgets: set[RequestBudget] = set()
        #: How many clients with texts wait in the queue.
        self.waiting = 0

    @property
    def full(self) -> bool:
        """Whether one more text would be refused."""
        return self.waiting >= self._limits.queue

    async def run_lookup(self, job: Callable[[RequestBudget], T], receive: Receive | None = None) -> T:
        """Run a lookup of a registered query; it is cancelled when the client disconnects."""
        async with self._turn(self._lookups):
            return await self._run_job(job, RequestBudget(self._limits.seconds), receive)

    async def run_text(self, job: Callable[[RequestBudget], T], receive: Receive | None = None) -> T:
        """Run a lookup by text."""
        if self.full:
            raise Busy("there are too many lookups by text just now", fix="try again in a few seconds")
        self.waiting += 1
        try:
            await self._wait_for_turn(self._texts)
        finally:
            self.waiting -= 1
        sandbox = self._sandboxes.pop()
        try:
            return await self._run_job(job, RequestBudget(self._limits.seconds, sandbox), receive)
        finally:
            self._sandboxes.append(sandbox)
            self._texts.release()

    def close(self) -> None:
        """Cancel everything at once."""
        for budget in list(self._budgets):
            budget.cancel()
        for sandbox in self._sandboxes:
            sandbox.kill()

    @asynccontextmanager
    async def _turn(self, line: asyncio.Semaphore) -> AsyncIterator[None]:
        await self._wait_for_turn(line)
        try:
            yield
        finally:
            line.release()

    async def _wait_for_turn(self, line: asyncio.Semaphore) -> None:
        """Wait in the queue, but not longer than an answer may take."""
        try:
            await asyncio.wait_for(line.acquire(), self._limits.seconds)
        except TimeoutError:
            raise Busy("there are too many lookups just now", fix="try again in a few seconds") from None

    async def _run_job(self, job: Callable[[RequestBudget], T], budget: RequestBudget, receive: Receive | None) -> T:
        """Work in a thread, until it is done or its client has disconnected."""
        self._budgets.add(budget)
        work = asyncio.ensure_future(run_in_thread(lambda: job(budget)))
        gone = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                budget.cancel()
            return await work
        finally:
            if not work.done():  # the server stops
                budget.cancel()
                work.cancel()
            gone.cancel()
            self._budgets.discard(budget)


async def run_in_thread(job: Callable[[], T]) -> T:
    """Run a function in a thread of its own, for which the end of the server does not wait."""
    loop, found = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def set_outcome(result: T | None, problem: BaseException | None) -> None:
        if found.done():
            return
        if problem is not None:
            found.set_exception(problem)
        else:
            found.set_result(result)

    def work() -> None:
        result, problem = None, None
        try:
            result = job()
        except BaseException as raised:
            problem = raised
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(set_outcome, result, problem)

    threading.Thread(target=work, name="panewise-lookup", daemon=True).start()
    return cast(T, await found)


async def _wait_for_disconnect(receive: Receive | None) -> None:
    """Wait until a client disconnects; without a client, for ever."""
    if receive is None:
        await asyncio.Event().wait()
        return
    while (await receive())["type"] != "http.disconnect":
        pass
