"""A pipeline in a process of its own, to be killed: `python -m tests.soak.driver FOLDER STATE follow|finish`."""

from __future__ import annotations

import sys
from pathlib import Path

import panewise as pw


def main(folder: Path, state: str, follow: bool) -> None:
    session = pw.spark.local_session(
        folder / "spark.log", **{"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.task.maxFailures": "4"}
    )
    pipeline = pw.script(folder / "app.cql").start(
        session,
        checkpoint=folder / "checkpoint",
        trigger=None if follow else {"availableNow": True},
        per_batch=4,
        shards=2,
        state=state,
    )
    if follow:
        pipeline.await_end()
    else:
        pipeline.finish()
    pipeline.stop()
    if not follow:
        (folder / "done").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "follow")
