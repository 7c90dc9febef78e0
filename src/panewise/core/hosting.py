"""Which host serves callers who name none: the package root says where it lives, and it is loaded when needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_loaders: list[Callable[[], Any]] = []


def use_host(load: Callable[[], Any]) -> None:
    """Make a host the one that serves callers who name none."""
    _loaders[:] = [load]


def host_in_use() -> Any:
    return _loaders[0]()
