"""The server under each attack, while a hundred requests a second of others are answered within fifty milliseconds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from benchmarks.promises.attackers import KINDS
from benchmarks.promises.lookup_attacks import BOUND, NOBODY, WARM, attacked
from benchmarks.promises.lookup_server import NEWEST, Settings, loaded, logged, served
from panewise.runtime.pane_log import PaneLog

pytestmark = pytest.mark.soak

SETTINGS = Settings(keys=2000, rate=100, seconds=10.0, repeats=1, rows=8000)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> PaneLog:
    return logged(Path(tmp_path_factory.mktemp("log")), SETTINGS)[0]


@pytest.mark.parametrize("kind", [NOBODY, *KINDS])
def test_an_attack_keeps_nobody_waiting(log: PaneLog, kind: str) -> None:
    with served(log.folder) as port:
        asyncio.run(loaded(port, SETTINGS, NEWEST, WARM, [], log))
        with attacked(port, kind, SETTINGS.seconds):
            waits = asyncio.run(loaded(port, SETTINGS, NEWEST, SETTINGS.seconds, [], log))
    assert float(np.percentile(waits, 99)) < BOUND
