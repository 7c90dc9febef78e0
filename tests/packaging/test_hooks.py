"""The hooks of `.pre-commit-config.yaml` fetch nothing and check what `make lint` checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


def test_hooks_come_from_no_other_repository() -> None:
    assert re.findall(r"repo: (\S+)", HOOKS) == ["local"]
    assert set(re.findall(r"language: (\S+)", HOOKS)) == {"system", "pygrep"}


def test_hooks_run_programs_that_lint_runs() -> None:
    """Layers are left to `make lint`, since they change rarely and take longer."""
    (lint,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    checked = set(re.findall(r"\$\(BIN\)/([\w-]+)", lint))
    assert set(re.findall(r"entry: \.venv/bin/([\w-]+)", HOOKS)) == checked - {"lint-imports"}


@pytest.mark.parametrize(
    ("message", "accepted"),
    [
        ("lookups: refuse a window that is not kept\n\nIt was answered wrongly.\n", True),
        ("cli, docs: say what a script is\n\nNobody knew.\n", True),
        ("lookups: refuse a window that is not kept\n", False),
        ("refuse a window that is not kept\n\nIt was answered wrongly.\n", False),
        ("Lookups: refuse\nIt was answered wrongly.\n", False),
    ],
)
def test_a_commit_has_an_area_and_a_reason(message: str, accepted: bool) -> None:
    (pattern,) = re.findall(r"entry: '(.*)'\n +language: pygrep", HOOKS)
    assert bool(re.search(pattern, message, re.MULTILINE)) is accepted
