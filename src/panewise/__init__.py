"""Panewise: continuous window queries over data streams.

Names are found when they are first used, so that `import panewise` waits for no table library, parser or database.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from panewise.core.errors import PackageProblem, PanewiseError, PanewiseWarning
from panewise.core.hosting import use_host

if TYPE_CHECKING:
    from panewise import reference, window
    from panewise.core.accounting import Accounting, Outcome
    from panewise.core.schema import Stream, StreamSchema
    from panewise.engine import Engine, Pool
    from panewise.frame.functions import register_framing
    from panewise.runtime.local import execute, run
    from panewise.scripts import Script, script

__version__ = "0.1.0"

#: Where names live; the others are modules of their own.
_HOMES = {
    "Accounting": "panewise.core.accounting",
    "Engine": "panewise.engine",
    "Outcome": "panewise.core.accounting",
    "Pool": "panewise.engine",
    "Script": "panewise.scripts",
    "Stream": "panewise.core.schema",
    "StreamSchema": "panewise.core.schema",
    "execute": "panewise.runtime.local",
    "register_framing": "panewise.frame.functions",
    "run": "panewise.runtime.local",
    "script": "panewise.scripts",
}
_MODULES = ("reference", "serve", "spark", "window")

use_host(lambda: import_module("panewise.runtime.local").HOST)


def __getattr__(name: str) -> Any:
    """What is there to use; `pw.spark` is not without PySpark, and `import panewise.spark` says what to install."""
    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found
        return found
    if name not in _MODULES:
        raise AttributeError(f"module 'panewise' has no attribute {name!r}")
    try:
        return import_module(f"panewise.{name}")
    except PackageProblem as problem:
        raise AttributeError(str(problem)) from None


def __dir__() -> list[str]:
    return sorted({*__all__, "serve", *(["spark"] if find_spec("pyspark") else [])})


__all__ = [
    "Accounting",
    "Engine",
    "Outcome",
    "PanewiseError",
    "PanewiseWarning",
    "Pool",
    "Script",
    "Stream",
    "StreamSchema",
    "__version__",
    "execute",
    "reference",
    "register_framing",
    "run",
    "script",
    "window",
]
