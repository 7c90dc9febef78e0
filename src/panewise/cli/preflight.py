"""What keeps a script from running on Spark, found before Spark is started, which takes a while."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from panewise.core.errors import SourceProblem, StateProblem
from panewise.cql import BoundScript
from panewise.engine import Pool
from panewise.runtime.checkpoint import Checkpoint

#: The files that a failed start may have left in a checkpoint without a plan.
_LEFTOVERS = {"spark.log", "owners"}
#: Connectors that are not part of Spark, and how the names of their files begin.
_CONNECTORS = {
    "kafka": ("org.apache.spark:spark-sql-kafka-0-10_2.13:{}", "spark-sql-kafka-0-10"),
    "delta": ("io.delta:delta-spark_4.2_2.13:4.4.0", "delta-spark"),
}
_OLDEST_JAVA = 17


def refuse_start(
    script: BoundScript, base: Path, checkpoint: Path | None, boundary: str | None, settings: Mapping[str, str]
) -> None:
    """Refuse what could not start or would be refused after a minute; nothing is written."""
    _refuse_sources(script, base)
    if checkpoint is not None:
        _refuse_checkpoint(script, checkpoint, boundary)
    _refuse_connectors(script, settings)
    _refuse_java()


def _refuse_sources(script: BoundScript, base: Path) -> None:
    for name, address in script.sources.items():
        scheme, _, rest = address.partition(":")
        if scheme in ("parquet", "csv", "json") and "://" not in rest and not (base / rest).exists():
            raise SourceProblem(
                f"stream {name!r}: {address!r} does not exist", fix="check the path, which is relative to the script"
            )


def _refuse_checkpoint(script: BoundScript, folder: Path, boundary: str | None) -> None:
    checkpoint = Checkpoint(folder)
    plan = checkpoint.plan()
    if plan is not None:
        checkpoint.check_compatible(plan, Pool(script.streams, script.boundary_or(boundary)), None, plan.state)
    elif folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - _LEFTOVERS):
        raise StateProblem(f"'{folder}' is no checkpoint of Panewise", fix="give an empty folder, or a new one")


def _refuse_connectors(script: BoundScript, settings: Mapping[str, str]) -> None:
    targets = [query.into for query in script.queries.values() if query.into]
    for address in (*script.sources.values(), *targets):
        scheme = address.partition(":")[0]
        if scheme in _CONNECTORS and not _has_connector(scheme, settings):
            package = _CONNECTORS[scheme][0].format(version("pyspark"))
            raise SourceProblem(
                f"{address!r} needs a connector that Spark does not bring along",
                fix=f"add --packages {package}, or --conf spark.jars=FILES",
            )


def _has_connector(scheme: str, settings: Mapping[str, str]) -> bool:
    """Whether a connector is among the jars of Spark, or may come from another setting."""
    folders = [Path(os.environ["SPARK_HOME"])] if "SPARK_HOME" in os.environ else []
    if (spec := find_spec("pyspark")) is not None and spec.origin is not None:
        folders.append(Path(spec.origin).parent)
    there = any(any((folder / "jars").glob(f"{_CONNECTORS[scheme][1]}*")) for folder in folders)
    configured = any((folder / "conf" / "spark-defaults.conf").exists() for folder in folders)
    given = any(key.startswith("spark.jars") for key in settings)
    return there or configured or given or bool({"PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"} & os.environ.keys())


def _refuse_java() -> None:
    """Refuse to start Spark without a suitable version of Java."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    fix = f"install Java {_OLDEST_JAVA} or 21 and set JAVA_HOME"
    if java is None:
        raise SourceProblem(f"there is no Java{f' in JAVA_HOME={home}' if home else ''}", fix=fix)
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', printed.stderr + printed.stdout)
    if found is not None and int(found[1]) < _OLDEST_JAVA:
        raise SourceProblem(f"Java {found[1]} in '{java}' is too old for Spark", fix=fix)
