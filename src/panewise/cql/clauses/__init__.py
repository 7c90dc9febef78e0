"""The clauses in brackets after a stream, and FILL WITH: each is one class that reads, binds and prints it.

Importing a module registers its clauses by the words with which they begin.
"""

from panewise.cql.clauses import frame, windows
from panewise.cql.clauses.base import READERS, ClauseBinder, WindowClause, bind_clause, parse_window

__all__ = ["READERS", "ClauseBinder", "WindowClause", "bind_clause", "frame", "parse_window", "windows"]
