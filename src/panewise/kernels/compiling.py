"""How kernels are compiled: once for an installation, with a notice if that takes long."""

from __future__ import annotations

import logging
import time
from threading import Lock, Timer
from typing import Any, cast

import numba
from numba.core import event
from numba.extending import register_jitable

from panewise.kernels import HELPERS, F

#: Seconds of compiling before the notice is printed.
NOTICE_AFTER = 1.0

_REGISTERING = Lock()


def compile_kernel(function: F) -> F:
    """A kernel that is compiled when first called and kept in a folder: the package's, or else the user's."""
    with _REGISTERING:
        while HELPERS:
            register_jitable(HELPERS.pop())
    try:
        made: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        made = numba.njit(nogil=True)(function)
        NOTICE.text = (
            "compiling kernels in every process, because no folder can keep them; "
            "set NUMBA_CACHE_DIR to one that can be written"
        )
    return cast(F, made)


class CompileNotice:
    """Tells once that kernels are being compiled, when that has taken longer than `NOTICE_AFTER` in all."""

    text = "compiling kernels, once per installation ..."

    def __init__(self) -> None:
        self._depth, self._began, self._spent, self._logged = 0, 0.0, 0.0, False
        self._timer: Timer | None = None

    def notify(self, event: Any) -> None:
        """Numba begins or ends to compile something, one thread at a time."""
        if self._logged or not event.data["dispatcher"].py_func.__module__.startswith("panewise.kernels"):
            return
        # Compiling a kernel compiles those that it calls; only the outermost counts.
        if event.is_start and not self._depth:
            self._began = time.monotonic()
            self._timer = Timer(max(NOTICE_AFTER - self._spent, 0.0), self._log_warning)
            self._timer.daemon = True
            self._timer.start()
        self._depth += 1 if event.is_start else -1
        if not self._depth and self._timer is not None:
            self._timer.cancel()
            self._spent += time.monotonic() - self._began

    def _log_warning(self) -> None:
        self._logged = True
        logging.getLogger("panewise").warning(self.text)


NOTICE = CompileNotice()
_events: Any = event  # Numba's own, which have no types
_events.Listener.register(CompileNotice)
_events.register("numba:compile", NOTICE)
