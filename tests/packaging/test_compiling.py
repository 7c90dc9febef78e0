"""Kernels are compiled once, and whoever waits for that is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: Calls one kernel with so little patience that a second run tells whether it compiles.
CALL = (
    "import numpy as np\n"
    "from panewise.kernels import compiling\n"
    "compiling.NOTICE_AFTER = {patience}\n"
    "from panewise import kernels\n"
    "kernels.count(np.zeros(1, np.int64), np.zeros(1, np.int64))\n"
)


def called(patience: float, **environment: str) -> str:
    """What calling a kernel says on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", CALL.format(patience=patience)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stderr


def test_compiling_is_told_once_for_an_installation(tmp_path: Path) -> None:
    """The first process compiles and says so, the second finds what the first one kept."""
    assert called(0.0, NUMBA_CACHE_DIR=str(tmp_path)) == "compiling kernels, once per installation ...\n"
    assert called(0.0, NUMBA_CACHE_DIR=str(tmp_path)) == ""


def test_compiling_that_is_soon_done_is_not_told(tmp_path: Path) -> None:
    assert called(600.0, NUMBA_CACHE_DIR=str(tmp_path)) == ""


def test_kernels_work_where_no_folder_can_keep_them() -> None:
    """As for a user without a home and a package that belongs to another one."""
    said = called(0.0, NUMBA_CACHE_LOCATOR_CLASSES="IPythonCacheLocator")
    assert said.startswith("compiling kernels in every process, because no folder can keep them; set NUMBA_CACHE_DIR")
