"""The default host, for callers that name none: the package root sets its module, and it is loaded when needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_loaders: list[Callable[[], Any]] = []


def use_host(load: Callable[[], Any]) -> None:
    """Set the default host."""
    _loaders[:] = [load]


def host_in_use() -> Any:
    return _loaders[0]()
