"""Failures of Spark, in one sentence: the few causes about which a user can do something."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from urllib.parse import unquote

from panewise.core import errors
from panewise.core.errors import PanewiseError, QueryProblem, SourceProblem, StateProblem, row_texts
from panewise.runtime.dead_letters import DeadLetter
from panewise.runtime.spark.sources import first_line

_RESTORE_FIX = "restore the checkpoint from a copy, or start with an empty one; what was written to sinks stays"
_FILE = r"(?:file:)?(/[^\s'\"]+)"


@dataclass(frozen=True)
class Cause:
    """A pattern in Spark's message, our sentence, the way out, and the kind of problem."""

    pattern: str
    message: str
    fix: str | None
    kind: type[PanewiseError]


_UNREADABLE = rf"(?:FAILED_READ_FILE|CANNOT_READ_FILE|not a Parquet file)[^\n]*?{_FILE}"

#: The first pattern that matches is used.
_CAUSES = (
    Cause(
        r"No module named 'panewise'|PYTHON_VERSION_MISMATCH",
        "Spark's workers run another Python than this process, or one without Panewise",
        "set PYSPARK_PYTHON to a Python that has Panewise, on all machines, before the session starts",
        SourceProblem,
    ),
    Cause(
        rf"(?:Permission denied|AccessDenied\w*|Read-only file system)[^\n]*?{_FILE}",
        "{0} cannot be written or read: permission is denied",
        "check the permissions of the checkpoint and of the sinks, and start again: nothing that was committed is lost",
        StateProblem,
    ),
    Cause(
        rf"{_FILE}[^\n]*?(?:Permission denied|Read-only file system)",
        "{0} cannot be written or read: permission is denied",
        "check the permissions of the checkpoint and of the sinks, and start again: nothing that was committed is lost",
        StateProblem,
    ),
    Cause(
        r"No space left on device|Disk quota exceeded",
        "the disk is full",
        "make room and start again: nothing that was committed is lost",
        StateProblem,
    ),
    Cause(
        r"CANNOT_LOAD_STATE|CANNOT_READ_STREAMING_STATE|STATE_STORE|RocksDB|/spark/state/|\.changelog",
        "the state in the checkpoint is damaged or incomplete",
        _RESTORE_FIX,
        StateProblem,
    ),
    Cause(
        rf"(?:FILE_NOT_EXIST|FileNotFoundException|PATH_NOT_FOUND)[^\n]*?{_FILE}",
        "the file {0} has vanished",
        "put it back and start again, or set spark.sql.files.ignoreMissingFiles to go on without it",
        SourceProblem,
    ),
    Cause(
        _UNREADABLE,
        "the file {0} cannot be read",
        "repair or remove it and start again",
        SourceProblem,
    ),
    Cause(
        r"MetadataLog|offset log|/offsets/|/commits/|/sources/|OffsetSeq",
        "the log of the checkpoint is damaged or incomplete",
        _RESTORE_FIX,
        StateProblem,
    ),
)


#: Lines that only name places in Spark's own code.
_TRACE = re.compile(r"\s+at [\w.$]+\(|\s+File \"").match


#: The text by which a worker marks failed queries, before their dead letters.
_FAILING = "queries fail: "


def worker_problem(problem: QueryProblem) -> StateProblem:
    """The error that a worker raises where queries fail: one line, which the driver finds again in Spark's message."""
    return StateProblem(
        _FAILING + json.dumps([asdict(DeadLetter.of(failure)) for failure in problem.failures[:_MAX_NAMED]])
    )


@dataclass(frozen=True)
class FailingExpression:
    """An expression over the columns of a stream that has no value for some row."""

    sql: str
    reason: str
    row: dict[str, str]

    @classmethod
    def of(cls, sql: str, problem: PanewiseError) -> FailingExpression:
        return cls(sql, str(problem), row_texts(problem.row or {}))


#: The text by which a worker marks failed expressions.
_FAILING_EXPRESSIONS = "expressions fail: "


def expression_problem(found: Iterable[FailingExpression]) -> StateProblem:
    """The error that a worker raises where expressions fail, on one line; which queries have them, the driver knows."""
    return StateProblem(_FAILING_EXPRESSIONS + json.dumps([asdict(each) for each in islice(found, _MAX_NAMED)]))


def failing_expressions(problem: Exception) -> list[FailingExpression]:
    """The expressions that a worker has reported as failed."""
    found = re.search(rf"{_FAILING_EXPRESSIONS}(\[.*\])$", str(problem), re.MULTILINE)
    return [FailingExpression(**each) for each in json.loads(found[1])] if found else []


#: So many queries are named at once; others are found at the next failure.
_MAX_NAMED = 50


def failing_queries(problem: Exception) -> list[DeadLetter]:
    """The queries that a worker has reported as failed."""
    found = re.search(rf"{_FAILING}(\[.*\])$", str(problem), re.MULTILINE)
    return [DeadLetter(**each) for each in json.loads(found[1])] if found else []


def has_known_cause(problem: Exception) -> bool:
    """Whether the cause of a failure is known and is not a query."""
    text = _message_text(problem)
    return "panewise.core.errors." in text or any(re.search(cause.pattern, text) for cause in _CAUSES)


def _message_text(problem: Exception) -> str:
    """Spark's message, without places in Spark's code and the name of Spark's query."""
    lines = str(problem).partition("=== Streaming Query ===")[0].splitlines()
    return "\n".join(line for line in lines if not _TRACE(line))


def explain_failure(problem: Exception) -> PanewiseError:
    """Spark's reason in our words; Spark's exception stays as the cause."""
    text = _message_text(problem)
    if ours := re.search(r"panewise\.core\.errors\.(\w*Problem): ([^\n]*)", text):
        kind: type[PanewiseError] = getattr(errors, ours[1])
        return kind(ours[2])
    for cause in _CAUSES:
        if found := re.search(cause.pattern, text):
            return cause.kind(cause.message.format(*map(_path, found.groups())), fix=cause.fix)
    if "PythonException" in text:
        last = [line for line in text.splitlines() if re.match(r"[\w.]+(?:Error|Exception): ", line)][-1:]
        return StateProblem(f"the pipeline has failed in Python: {''.join(last)}", fix="report it with Spark's log")
    return StateProblem(f"the pipeline has failed: {first_line(problem)}", fix="read Spark's log for the whole story")


def unreadable_file(problem: Exception) -> str | None:
    """The file of a source that Spark or a worker reports as unreadable."""
    if ours := re.search(r"the file (/.*) cannot be read", str(problem)):
        return ours[1]
    found = re.search(_UNREADABLE, str(problem))
    return _path(found[1]) if found else None


def _path(words: str) -> str:
    """A path from the form in which Spark's message has it."""
    return "/" + unquote(words).strip("/").rstrip(".,;:)")
