"""Where the results of other systems lie: beside the repository, never in it."""

from __future__ import annotations

from pathlib import Path

import pytest

GOLDENS = Path(__file__).parents[2].parent / "shared" / "goldens"


@pytest.fixture(scope="session")
def goldens() -> Path:
    if not GOLDENS.is_dir():
        pytest.skip(f"the results of other systems are not at {GOLDENS}")
    return GOLDENS
