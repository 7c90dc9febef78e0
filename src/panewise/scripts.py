"""`pw.script`: a whole CQL script, read once, that can be run in this process or started on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panewise.core.accounting import Outcome
from panewise.core.errors import require_extra
from panewise.core.schema import StreamSchema
from panewise.cql import BoundScript
from panewise.engine.pool import plan_for_engine
from panewise.plan import explain
from panewise.runtime.local import HOST
from panewise.runtime.local.script import answer, bind, describe_inferred_columns, read_text, shared_pool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from panewise.runtime.spark.pipeline import Pipeline
    from panewise.runtime.spark.sinks import Target


@dataclass(frozen=True)
class Script:
    """A CQL script that `pw.script` has read: run it in this process, or start it on Spark.

    `base` is the folder to which the addresses in the script are relative.
    """

    bound: BoundScript
    base: Path

    def __repr__(self) -> str:
        return f"Script(streams={list(self.bound.streams)}, queries={list(self.bound.queries)})"

    @property
    def streams(self) -> dict[str, StreamSchema]:
        """The streams that the script declares, by name."""
        return dict(self.bound.streams)

    @property
    def queries(self) -> dict[str, str]:
        """The text of every query, by name; a SELECT without a name is called `query_1`, `query_2` and so on."""
        return {name: query.text for name, query in self.bound.queries.items()}

    def explain(self) -> str:
        """How every query is understood, and what the queries share, with reasons."""
        understood = [
            explain(query.name, query.query, plan_for_engine(query.query)) for query in self.bound.queries.values()
        ]
        return "\n\n".join(
            [*describe_inferred_columns(self.bound), *understood, shared_pool(self.bound, HOST).explain()]
        )

    def run(self, *, boundary: str | None = None, until: int | str | datetime | None = None) -> dict[str, Outcome]:
        """Answer every query over the files that its streams name, in this process, as `panewise run` does.

        Results of queries with INTO are written, and so are the panes of those with PANES INTO. The run ends when
        every item has been in all its windows, or at `until`. `boundary` is for scripts that do not state theirs.
        """
        answers = answer(self.bound, self.base, HOST, boundary=boundary, until=until)
        return {each.query.name: each.outcome for each in answers}

    def start(
        self,
        session: SparkSession,
        *,
        checkpoint: str | Path,
        boundary: str | None = None,
        trigger: Mapping[str, Any] | None = None,
        per_batch: int | None = None,
        shards: int | None = None,
        state: str = "rocksdb",
        sinks: Mapping[str, Target] | None = None,
    ) -> Pipeline:
        """Start the script as a pipeline on Spark, as `panewise run --spark --follow` does, and return it running.

        Queries without INTO keep their results in the checkpoint, and `sinks` replaces targets by query. `per_batch`
        limits the files or rows that a batch takes from each source; the other options are those of `pw.spark.stream`.
        """
        with require_extra("spark", "pw.Script.start"):
            from panewise.runtime.spark.script import start_script

        return start_script(
            self.bound,
            session,
            checkpoint=Path(checkpoint),
            base=self.base,
            boundary=boundary,
            trigger=trigger,
            per_batch=per_batch,
            shards=shards,
            state=state,
            sinks=sinks,
        )


def script(source: str | Path, *, base: str | Path | None = None) -> Script:
    """Read a CQL script from its text or from a file, and bind every query in it.

    A `Path` is a file, and so is a `str` of one line that ends in `.cql`; any other `str` is the script itself.
    Addresses in the script are relative to `base`: unless given, the folder of the file, or the working directory for
    a text.

    >>> import panewise as pw
    >>> app = pw.script('''
    ...     CREATE STREAM trades (t BIGINT, symbol STRING, price DOUBLE) TIME t FROM 'csv:trades.csv';
    ...     CREATE QUERY highs AS SELECT symbol, MAX(price) AS high FROM trades [RANGE 60 SLIDE 10] GROUP BY symbol;
    ... ''')
    >>> app
    Script(streams=['trades'], queries=['highs'])
    """
    path = _path_of(source)
    text = str(source) if path is None else read_text(path)
    folder = Path(base) if base is not None else path.parent if path is not None else Path()
    return Script(bind(text, folder), folder)


def _path_of(source: str | Path) -> Path | None:
    """The file that is meant; None where the script itself is given."""
    if isinstance(source, Path):
        return source
    line = source.strip()
    return Path(line) if line.lower().endswith(".cql") and "\n" not in line else None
