"""Finds the queries whose expressions fail in Spark, and the row: the rows of the failed batch are read once more.

Filters, keys and arguments of queries are evaluated inside Spark, all of them together, and Spark reports only that one
failed. A probe is a streaming query over the same sources, which begins with the same batch because it has a copy of
Spark's logs; it evaluates the expressions of each query alone.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from panewise.core.errors import BindProblem, row_texts
from panewise.engine import Pool
from panewise.engine.blame import first_failing
from panewise.runtime.dead_letters import DeadLetter
from panewise.runtime.spark.failures import FailingExpression, failing_expressions, failing_queries, has_known_cause
from panewise.runtime.spark.run import Run
from panewise.runtime.spark.sources import first_line
from panewise.runtime.spark.transfer.layout import StreamTransfer
from panewise.runtime.spark.transfer.plan import plan_transfer
from panewise.runtime.spark.types import quote_name

log = logging.getLogger("panewise.pipeline")

#: A probe that has found nothing after this many seconds gives up.
_TIMEOUT = 300.0


@dataclass(frozen=True)
class Suspect:
    """Queries that have the same expressions over a stream: a condition on rows, and the expressions to evaluate."""

    stream: str
    queries: tuple[str, ...]
    usable: str
    select: tuple[str, ...]


def queries_at_fault(run: Run, pool: Pool, problem: Exception) -> list[DeadLetter]:
    """The queries that made a run fail: those that workers have named, those whose expressions failed in a worker, or
    those whose expressions fail in Spark."""
    checkpoint, columnar = run.setting.checkpoint.spark, run.setting.columnar
    named = failing_queries(problem)
    if not named and (failing := failing_expressions(problem)):
        named = _queries_with(failing, suspects(pool, problem, columnar))
    if not named and not has_known_cause(problem):
        try:
            named = probe_suspects(checkpoint, run.sources, suspects(pool, problem, columnar))
        except (PySparkException, OSError) as other:
            log.warning("whose fault it is cannot be found out: %s", first_line(other))
    return [replace(letter, batch=failed_batch(checkpoint)) for letter in named]


def _queries_with(found: Sequence[FailingExpression], some: Sequence[Suspect]) -> list[DeadLetter]:
    """The queries that have expressions which failed in a worker."""
    return [
        DeadLetter(query, failing.reason, failing.row)
        for failing in found
        for suspect in some
        if failing.sql in suspect.select
        for query in suspect.queries
    ]


def suspects(pool: Pool, problem: Exception, columnar: Collection[str] = ()) -> list[Suspect]:
    """The expressions of queries in Spark; where Spark has named an expression, only the queries that have it."""
    asked: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for name, registered in pool.queries.items():
        alone = pool.without_queries()
        alone.add_query(registered)
        for transfer in plan_transfer(alone, 1, columnar=columnar).transfers:
            asked.setdefault((transfer.stream, transfer.usable, _computed_expressions(transfer)), []).append(name)
    every = [Suspect(stream, tuple(q), usable, sql) for (stream, usable, sql), q in asked.items() if sql]
    return [each for each in every if any(sql in str(problem) for sql in each.select)] or every


def _computed_expressions(transfer: StreamTransfer) -> tuple[str, ...]:
    """The expressions that are more than a column."""
    plain = {transfer.time, *map(quote_name, transfer.needed)}
    return tuple(sql for _, sql in transfer.select if sql not in plain)


def failed_batch(checkpoint: Path) -> int | None:
    """The batch that Spark has begun and not ended; None if there is none."""
    begun, ended = (
        max((int(path.name) for path in (checkpoint / name).glob("[0-9]*")), default=-1)
        for name in ("offsets", "commits")
    )
    return begun if begun > ended else None


def probe_suspects(checkpoint: Path, sources: Mapping[str, DataFrame], found: Sequence[Suspect]) -> list[DeadLetter]:
    """The suspects that fail alone, each with its row.

    `sources` are those of the failed query, in its order; the folder is its checkpoint.
    """
    batch = failed_batch(checkpoint)
    if batch is None or not found:
        return []
    with tempfile.TemporaryDirectory(prefix="probe-", dir=checkpoint.parent, ignore_cleanup_errors=True) as folder:
        again, answer = Path(folder) / "spark", Path(folder) / "answer.json"
        for name in ("offsets", "commits", "sources"):
            if (checkpoint / name).exists():
                shutil.copytree(checkpoint / name, again / name)
        (again / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
        probing = Probe(tuple(found), batch, str(answer))
        writer = _union_sources(sources).writeStream.foreachBatch(probing).option("checkpointLocation", str(again))
        query = writer.start()
        try:
            ending = time.monotonic() + _TIMEOUT
            while not answer.exists() and query.isActive and time.monotonic() < ending:
                time.sleep(0.1)
        finally:
            query.stop()
        return [DeadLetter(**each) for each in json.loads(answer.read_text())] if answer.exists() else []


def _union_sources(sources: Mapping[str, DataFrame]) -> DataFrame:
    """All sources as one stream: the rows of each are structs in a column of its name."""
    kinds = {name: frame.schema for name, frame in sources.items()}

    def columns(mine: str) -> list[Column]:
        rows = F.struct(*(F.col(quote_name(field.name)) for field in kinds[mine].fields))
        return [(rows if name == mine else F.lit(None)).cast(kinds[name]).alias(name) for name in kinds]

    return reduce(DataFrame.union, (frame.select(*columns(name)) for name, frame in sources.items()))


@dataclass(frozen=True)
class Probe:
    """The function of `foreachBatch`: evaluate the expressions of each suspect, and record which fail."""

    suspects: tuple[Suspect, ...]
    batch: int
    answer: str

    def __call__(self, rows: DataFrame, batch: int) -> None:
        if batch != self.batch:
            return
        letters = [asdict(letter) for suspect in self.suspects for letter in self._find_failures(suspect, rows)]
        draft = Path(f"{self.answer}.draft")
        draft.write_text(json.dumps(letters))
        draft.rename(self.answer)

    def _find_failures(self, suspect: Suspect, rows: DataFrame) -> Iterator[DeadLetter]:
        own = rows.where(F.col(quote_name(suspect.stream)).isNotNull()).select(f"{quote_name(suspect.stream)}.*")
        own = own.where(suspect.usable).withColumn(_PLACE, F.monotonically_increasing_id()).persist()
        try:
            problem = _failure(own, suspect.select)
            if problem is not None:
                row = _failing_row(own, suspect.select)
                for query in suspect.queries:
                    yield DeadLetter(query, _reason(problem), row, batch=self.batch)
        finally:
            own.unpersist()


_PLACE = "#place"


def _failure(rows: DataFrame, select: Sequence[str]) -> Exception | None:
    """Why expressions cannot be evaluated for some rows; None if they can."""
    try:
        # All of them are needed for the hash, so that Spark leaves none out.
        rows.select(F.xxhash64(*map(F.expr, select)).alias("hash")).agg(F.max("hash")).collect()
    except Exception as problem:
        return problem
    return None


def _failing_row(rows: DataFrame, select: Sequence[str]) -> dict[str, str]:
    """The first row for which expressions fail."""
    parts = rows.groupBy(F.spark_partition_id().alias("part")).agg(
        F.min(_PLACE).alias("first"), F.count("*").alias("n")
    )
    places = [row["first"] + n for row in sorted(parts.collect(), key=lambda r: r["first"]) for n in range(row["n"])]

    def attempt(low: int, high: int) -> None:
        some = rows.where(F.col(quote_name(_PLACE)).between(places[low], places[high - 1]))
        if (problem := _failure(some, select)) is not None:
            raise BindProblem(first_line(problem))

    place = places[first_failing(len(places), attempt)]
    (row,) = rows.where(F.col(quote_name(_PLACE)) == place).drop(_PLACE).collect()
    return row_texts(row.asDict())


def _reason(problem: Exception) -> str:
    """Spark's sentence, without the expression that Spark quotes below it."""
    found = re.search(r"\[[A-Z][A-Z0-9_.]+\] [^\n]*", str(problem))
    return (found[0] if found else first_line(problem)).partition(" SQLSTATE")[0].strip()
