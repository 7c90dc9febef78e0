"""Numbers for shards: one for each partition that Spark's hash can send a row to."""

from __future__ import annotations

from pyspark.sql import SparkSession

from panewise.core.errors import StateProblem


def labels_of(session: SparkSession, shards: int) -> tuple[int, ...]:
    """Numbers that Spark's hash sends to as many different partitions; with 0, 1, 2 ... some would share a
    partition."""
    numbers = ", ".join(f"({number})" for number in range(16 * shards))
    # Over an inline table the optimiser evaluates this, without a job.
    placed = session.sql(f"SELECT label, PMOD(HASH(label), {shards}) AS place FROM VALUES {numbers} AS t(label)")
    found: dict[int, int] = {}
    for row in placed.collect():
        found.setdefault(row["place"], row["label"])
    if len(found) < shards:
        raise StateProblem(f"{shards} shards cannot be spread", fix="use fewer")
    return tuple(found[place] for place in range(shards))
