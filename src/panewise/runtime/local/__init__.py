"""Panewise in one process: DuckDB for scalars, files for sources and targets."""

from panewise.runtime.local.embedded import execute, run
from panewise.runtime.local.host import DuckDBHost

#: The host of this process.
HOST = DuckDBHost()

__all__ = ["HOST", "DuckDBHost", "execute", "run"]
