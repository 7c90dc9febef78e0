"""Settings shared by every test: one Hypothesis profile, the same cases each time in CI, and one kind of JVM."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

#: Shrinking a failure of a whole engine takes minutes; without it the first one found is shown at once.
_PHASES = (Phase.explicit, Phase.generate) if os.environ.get("NO_SHRINK") else tuple(Phase)

settings.register_profile(
    "panewise",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    phases=_PHASES,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("panewise")

#: What `make connectors` fetched, if it did.
JARS = sorted((Path(__file__).parents[1] / ".venv" / "connectors" / "spark").glob("*.jar"))

#: As the Makefile says, with the classes it archived if it did.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
ARCHIVE = Path(__file__).parents[1] / ".venv" / "spark-classes.jsa"
ARCHIVED = f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off" if ARCHIVE.exists() else ""


@pytest.fixture(scope="session", autouse=True)
def spark_environment() -> Iterator[None]:
    """What every JVM needs, whichever test starts it: a process has one only, and its class path cannot grow.

    Spark starts `python3` unless told; only the Python that runs the tests has this package.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("JDK_JAVA_OPTIONS", QUICK + ARCHIVED)
        if JARS:
            patch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {','.join(map(str, JARS))} pyspark-shell")
        yield
