"""A real Kafka broker of one node for tests, from the jars of `make connectors`: no Docker, nothing installed."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

#: What `make connectors` fetched.
JARS = Path(__file__).parents[2] / ".venv" / "connectors" / "kafka"
#: Any UUID in Kafka's Base64 form: it only has to be the same when storage is formatted and when the broker starts.
CLUSTER = "cGFuZXdpc2UtdGVzdHMtMQ"
START_SECONDS = 60
STOP_SECONDS = 30

#: One node is broker and controller at once, so everything Kafka replicates for itself has one copy.
SETTINGS = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@localhost:{controller}
log.dirs={folder}/data
num.partitions=2
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Runs a broker that keeps data and logs in `folder`; gives its bootstrap address.

    Topics are created by their first use, with two partitions: one would hide every mistake about order.
    """
    port, controller = free_ports(2)
    settings = folder / "server.properties"
    settings.write_text(SETTINGS.format(port=port, controller=controller, folder=folder))
    command = [java(), "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{JARS}/*"]
    with (folder / "kafka.log").open("wb") as log:
        format_storage = [*command, "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(settings)]
        subprocess.run(format_storage, stdout=log, stderr=log, check=True)
        process = subprocess.Popen([*command, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        try:
            wait_until(lambda: answers(port), process, folder / "kafka.log")
            yield f"localhost:{port}"
        finally:
            stop(process)


def java() -> str:
    """The Java that Spark takes too: JAVA_HOME's, else the one on PATH."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; all are held until the last is known, so that they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns once the server is ready; one that ended, or takes too long, is an error that shows what it logged."""
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server did not start:\n{log.read_text()}")
        time.sleep(0.1)


def answers(port: int) -> bool:
    """Whether a request for the broker's API versions, the first of every Kafka client, is answered.

    An open port alone says nothing: a broker that is still registering has one.
    """
    request = struct.pack(">hhih", 18, 0, 0, -1)  # key, version, correlation, no client id
    try:
        with socket.create_connection(("localhost", port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            return len(connection.recv(4)) == 4
    except OSError:
        return False


def stop(process: subprocess.Popen[bytes]) -> None:
    """Asks the process to end; one that does not is killed, so that no test leaves a server behind."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
