"""Lookups for running pipelines over HTTP: `pw.serve.LookupServer` reads the pane logs that they write."""

from importlib import import_module
from typing import Any

from panewise.core.errors import require_extra
from panewise.serve.limits import Limits


def __getattr__(name: str) -> Any:
    """Import the server when it is first used, so that logs can be read, and looked up in, without FastAPI."""
    if name != "LookupServer":
        raise AttributeError(f"module 'panewise.serve' has no attribute {name!r}")
    with require_extra("serve", "pw.serve.LookupServer"):
        return import_module("panewise.serve.server").LookupServer


__all__ = ["Limits", "LookupServer"]
