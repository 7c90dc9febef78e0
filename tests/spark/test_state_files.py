"""State in files, without Spark: whoever does a batch again, or has lost the checkpoint, damages nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

import panewise as pw
from panewise.core.errors import StateProblem
from panewise.engine.state.parts import part_names
from panewise.runtime.lease import Fence, Lease
from panewise.runtime.spark.metrics import COUNTED_COLUMNS
from panewise.runtime.spark.outbox import Outbox
from panewise.runtime.spark.run_context import RunContext
from panewise.runtime.spark.shard import SHARD_CACHE, STATUS_CHANNEL
from panewise.runtime.spark.state_files import (
    REPLAYABLE_BATCHES,
    BatchCommands,
    FileStateStage,
    ShardFolder,
    last_batch,
)

from .shards import Shards
from .streams import parts, plain, stream

QUERIES = {
    "sums": "SELECT k, SUM(v) AS s FROM S [RANGE 10 SLIDE 3] GROUP BY k",
    "sessions": "SELECT k, MAX(v) AS s FROM S [PARTITION BY k SESSION 1] GROUP BY k",
}
#: Some rows come late, and some without a time.
TABLE = pa.concat_tables([stream(600, seed=5), stream(60, seed=6)])
TABLE = TABLE.set_column(0, "t", pc.if_else(pc.equal(TABLE["v"], 7), None, TABLE["t"]))
BATCHES = parts(TABLE, 12)
COUNT = 2


class Driver:
    """Does batches with its own view of the course and of who owns the checkpoint."""

    def __init__(self, folder: Path, fence: Fence, name: str) -> None:
        pool = pw.Pool({"S": pw.StreamSchema(TABLE.schema, time="t", delay=0)})
        for query, text in QUERIES.items():
            pool.register(query, text)
        self.told = Shards(pool, COUNT)
        course = self.told.course
        self.course = RunContext(
            f"plan/{name}", *(getattr(course, field) for field in list(RunContext.__dataclass_fields__)[1:])
        )
        self.folder, self.fence = folder, fence
        #: What shards said in each batch, and what they all together told of themselves.
        self.said: dict[int, list[str]] = {}
        self.accounts: dict[int, Counter[str]] = {}
        self.attempts = 0

    def messages(self, batch: int) -> Iterator[pa.RecordBatch]:
        """What shards hear in a batch; the last one brings no rows, but the end."""
        commands = self.told.entry(1, self.told.registering)
        rows = [(label, *commands) for label in range(COUNT)]
        if batch < len(BATCHES):
            rows += self.told.sliced("S", BATCHES[batch], batch)
        else:
            rows += [(label, *self.told.entry(2, [{"op": "finish"}])) for label in range(COUNT)]
        for label in range(COUNT):
            mine = [row for row in rows if row[0] == label]
            columns = [pa.array(column) for column in zip(*mine, strict=True)]
            yield pa.record_batch(columns, names=["shard", "place", "payload"])

    def do(self, batch: int) -> None:
        results: list[str] = []
        account: Counter[str] = Counter()
        stage = self.stage(batch)
        for said in stage(self.messages(batch)):
            assert said["channel"].to_pylist() == [STATUS_CHANNEL]
            account.update(said.select(COUNTED_COLUMNS[:-1]).to_pylist()[0])
        for channel in range(len(QUERIES)):
            for file in stage.outbox.files(channel):
                results += [f"{channel} {row}" for row in plain(pa.parquet.read_table(file))]
        self.said[batch], self.accounts[batch] = sorted(results), account

    def stage(self, batch: int) -> FileStateStage:
        """What one attempt at a batch does, with an outbox of its own."""
        self.attempts += 1
        schemas = tuple(channel.schema for channel in self.course.channels)
        outbox = Outbox(str(self.folder.parent / "outbox" / f"{self.course.run}-{self.attempts}"), schemas)
        return FileStateStage(self.course, str(self.folder), batch, self.fence, outbox)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    SHARD_CACHE.clear()
    yield
    SHARD_CACHE.clear()


def alone(folder: Path) -> Driver:
    """One driver whom nobody disturbs."""
    lease = Lease(folder)
    lease.acquire()
    driver = Driver(folder / "state", lease.fence, "alone")
    for batch in range(len(BATCHES) + 1):
        driver.do(batch)
    lease.release()
    return driver


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return alone(tmp_path_factory.mktemp("alone"))


def ignoring(fence: Fence, folder: Path) -> Fence:
    """A fence that nobody minds: its folder knows of no successor."""
    blind = folder / f"blind{fence.epoch}"
    blind.mkdir(exist_ok=True)
    (blind / f"{fence.epoch:08d}.json").touch()
    return Fence(str(blind), fence.epoch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_rivals_that_ignore_the_lease_do_not_damage_what_the_owner_needs(
    tmp_path: Path, expected: Driver, seed: int
) -> None:
    """Two drivers interleave, both replay old batches, each believes that the checkpoint is its own."""
    choice = random.Random(seed)
    state = tmp_path / "state"
    owner = Driver(state, ignoring(Fence("", 3), tmp_path), "owner")
    rivals = [Driver(state, ignoring(Fence("", epoch), tmp_path), f"rival{epoch}") for epoch in (2, 4)]
    for batch in range(len(BATCHES) + 1):
        owner.do(batch)
        for _ in range(choice.randrange(3)):
            rival, old = choice.choice(rivals), choice.randrange(batch + 1)
            rival.said.pop(old, None)
            with suppress(StateProblem):
                rival.do(old)
            assert rival.said.get(old, expected.said[old]) == expected.said[old]
        if choice.random() < 0.3:
            # Killed before Spark has noted the batch, it does it again, from files.
            SHARD_CACHE.clear()
            owner.do(batch)
    assert (owner.said, owner.accounts) == (expected.said, expected.accounts)
    account = owner.accounts[len(BATCHES)]
    assert (account["rows_in"], account["rejected"]) == (TABLE.num_rows, TABLE["t"].null_count)
    assert account["late"] > 0


def test_a_batch_that_fails_between_shards_is_done_again_with_the_same_answers(
    tmp_path: Path, expected: Driver
) -> None:
    driver = Driver(tmp_path / "state", ignoring(Fence("", 1), tmp_path), "driver")
    for batch in range(len(BATCHES) + 1):
        half = driver.stage(batch)(driver.messages(batch))
        list(zip(half, range(2), strict=False))
        SHARD_CACHE.clear()
        driver.do(batch)
    assert (driver.said, driver.accounts) == (expected.said, expected.accounts)


def test_whoever_has_lost_the_checkpoint_keeps_nothing(tmp_path: Path) -> None:
    lease = Lease(tmp_path)
    lease.acquire()
    driver = Driver(tmp_path / "state", lease.fence, "first")
    driver.do(0)
    before = sorted(path.name for path in (tmp_path / "state").rglob("head-*"))
    lease.release()
    later = Lease(tmp_path)
    later.acquire()
    with pytest.raises(StateProblem, match="has lost its checkpoint to process"):
        driver.do(1)
    assert sorted(path.name for path in (tmp_path / "state").rglob("head-*")) == before
    Driver(tmp_path / "state", later.fence, "second").do(1)
    later.release()


def test_batches_without_rows_leave_the_state_before_them(tmp_path: Path) -> None:
    """The head before a gap is kept: a batch after it may be done again."""
    driver = Driver(tmp_path / "state", ignoring(Fence("", 1), tmp_path), "driver")
    driver.do(0)
    driver.do(1)
    driver.do(9)
    once = driver.said[9]
    SHARD_CACHE.clear()
    driver.do(9)
    assert driver.said[9] == once


def test_only_what_the_last_batches_need_is_kept(tmp_path: Path) -> None:
    alone(tmp_path)
    for label in range(COUNT):
        folder = ShardFolder(tmp_path / "state" / str(label))
        heads = folder.heads()
        assert [head.batch for head in heads] == list(range(len(BATCHES) - REPLAYABLE_BATCHES - 1, len(BATCHES) + 1))
        needed = {name for head in heads for name in part_names((folder.path / head.name).read_bytes())}
        last = [file.name for file in folder.files() if file.batch >= len(BATCHES) - REPLAYABLE_BATCHES]
        assert {file.name for file in folder.files() if not file.is_head} <= needed | set(last)


def test_a_batch_follows_the_same_commands_when_it_is_done_again(tmp_path: Path) -> None:
    agenda = BatchCommands(tmp_path / "agenda")
    assert agenda.last_command(0, 3) == 3
    assert agenda.last_command(0, 5) == 3
    assert agenda.last_command(1, 5) == 5
    for batch in range(2, 20):
        agenda.last_command(batch, 6)
    assert sorted(agenda.batches()) == [17, 18, 19]
    assert last_batch(tmp_path / "state", agenda) == 19
