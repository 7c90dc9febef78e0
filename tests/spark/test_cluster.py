"""Executors in processes of their own: Spark's local cluster, and a standalone one that applications are sent to."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyspark
import pytest

from tests.spark import answers, submitted
from tests.spark.broker import free_ports, wait_until
from tests.spark.conftest import SETTINGS, listens
from tests.spark.processes import completed, server

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PYSPARK = Path(pyspark.__file__).parent
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}
#: Those of SETTINGS that hold wherever executors are.
GENERAL = {name: value for name, value in SETTINGS.items() if name.startswith(("spark.log", "spark.sql", "spark.ui"))}


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel, under the name of a zip: Spark puts no other archives on Python's path.

    Built from a copy, since setuptools leaves its drafts beside the sources and finds them again the next time.
    """
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(
        ROOT / "src" / "panewise", folder / "src" / "panewise", ignore=shutil.ignore_patterns("__pycache__")
    )
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist"]
    completed([sys.executable, "-m", "pip", "wheel", *options, "."], folder)
    (wheel,) = (folder / "dist").glob("panewise-*.whl")
    return wheel.rename(folder / "panewise.zip")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spark's home, linked: workers of a local cluster keep their files there, which must not be among packages."""
    folder = tmp_path_factory.mktemp("home")
    for part in PYSPARK.iterdir():
        (folder / part.name).symlink_to(part)
    return folder


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of one master and two workers, all on this machine."""
    folder = tmp_path_factory.mktemp("standalone")
    (port,) = free_ports(1)
    address = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        start = partial(started, stack, folder)
        master = start("master", "Master", "--port", str(port))
        limits = ("--cores", "1", "--memory", "1g")
        workers = [
            start(name, "Worker", *limits, "--work-dir", str(folder / name), address) for name in ("first", "second")
        ]
        wait_until(lambda: listens(port), *master)
        for process, log in workers:
            wait_until(partial(registered, log), process, log)
        yield address


def started(
    stack: ExitStack, folder: Path, name: str, role: str, *options: str
) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a server of the cluster; gives it and its log."""
    log = folder / f"{name}.log"
    command = [str(PYSPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{role.lower()}.{role}"]
    command += ["--host", "127.0.0.1", "--webui-port", "0", *options]
    return stack.enter_context(server(command, folder, log, LOOPBACK)), log


def registered(log: Path) -> bool:
    """Whether the worker that writes this log has been accepted by the master."""
    return "Successfully registered" in log.read_text()


def submit(master: str, shipped: Path, folder: Path, state: str, env: dict[str, str]) -> None:
    """Send the application and the package to a cluster, and compare what it answers."""
    answers.given(folder)
    settings = GENERAL | {"spark.executor.memory": "1g", "spark.driver.memory": "1g"}
    command = [str(PYSPARK / "bin" / "spark-submit"), "--master", master, "--py-files", str(shipped)]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    completed([*command, str(submitted.__file__), str(folder), state], folder, LOOPBACK | env)
    answers.compare(folder, "streamed")
    answers.compare(folder, "whole")
    packages = json.loads((folder / "packages.json").read_text())
    assert all("panewise.zip" in path for path in [packages["driver"], *packages["workers"]])


def test_a_local_cluster_answers_alike(shipped: Path, home: Path, tmp_path: Path) -> None:
    submit("local-cluster[2,1,1024]", shipped, tmp_path, "files", {"SPARK_HOME": str(home)})


def test_a_standalone_cluster_answers_alike(standalone: str, shipped: Path, tmp_path: Path) -> None:
    submit(standalone, shipped, tmp_path, "rocksdb", {})
