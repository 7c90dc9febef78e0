"""Spark as the tests meet it: a session, a Connect server and a Kafka broker, each started once and if asked for."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.conftest import JARS
from tests.spark import broker, processes

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.jars": ",".join(map(str, JARS)),
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.python.daemon.module": "panewise.runtime.spark.worker_daemon",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A classic session, in this process."""
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    session = SparkSession.Builder().config(map={**SETTINGS, "spark.sql.warehouse.dir": warehouse}).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of a broker; its topics are created by their first use."""
    if not JARS or not broker.JARS.is_dir():
        pytest.skip("Kafka's jars are not here: run 'make connectors'")
    with broker.broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(scope="session")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server.

    A process has either classic sessions or remote ones: whoever uses this address does so in a process of its own.
    """
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Runs what `start-connect-server.sh` runs, but as a child that ends with us instead of as a daemon."""
    (port,) = broker.free_ports(1)
    settings = {**SETTINGS, "spark.connect.grpc.binding.port": str(port)}
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    log = folder / "connect.log"
    with processes.server([*command, "spark-internal"], folder, log) as process:
        broker.wait_until(lambda: listens(port), process, log)
        yield f"sc://localhost:{port}"


def listens(port: int) -> bool:
    try:
        socket.create_connection(("localhost", port), timeout=5).close()
    except OSError:
        return False
    return True
