"""Laws hold for few rows as they do for many: even small batches are evaluated in several portions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from panewise.engine import portions


@pytest.fixture(scope="session", autouse=True)
def small_portions() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portions, "PORTION_ROWS", 3)
        yield
