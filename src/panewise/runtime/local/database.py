"""DuckDB, opened so that computations can reach only the rows they are given."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any

from panewise.core.errors import PanewiseError

#: The environment variable that sets how much memory DuckDB may use, and the default.
MEMORY_VARIABLE, DEFAULT_MEMORY = "PANEWISE_DUCKDB_MEMORY", "1GB"

#: No files, no network, no code from elsewhere, no variables of Python, and no names of this machine's folders.
_ISOLATION_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_extension_repositories": "forbidden",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
    "secret_directory": "none",
    "temp_directory": "",
}


def open_database() -> Any:
    """A private database in memory, in UTC and in one thread; no statement can change its settings."""
    opened = import_module("duckdb").connect(
        ":memory:", config={**_ISOLATION_SETTINGS, "threads": "1", "memory_limit": memory_limit()}
    )
    # DuckDB has this setting only once its calendar is loaded, so it is not in the list above.
    opened.execute("SET GLOBAL TimeZone = 'UTC'")
    opened.execute("SET lock_configuration = true")
    return opened


def memory_limit() -> str:
    """How much memory DuckDB may use, from the environment."""
    size = os.environ.get(MEMORY_VARIABLE, DEFAULT_MEMORY)
    if not re.fullmatch(r"[1-9][0-9]*(MB|GB)", size):
        raise PanewiseError(f"{MEMORY_VARIABLE} is {size!r}", fix="set it to a size such as 500MB or 4GB")
    return size
