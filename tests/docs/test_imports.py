"""Documentation and examples use public names only: what they import is what a reader may rely on."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.packaging.public import MODULES

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions"),
    *(ROOT / "examples").rglob("*.py"),
]


def imports_of(page: Path) -> list[str]:
    """The modules of Panewise that the Python code of a page imports."""
    text = page.read_text(encoding="utf-8")
    blocks = [text] if page.suffix == ".py" else re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    found: list[str] = []
    for node in (node for block in blocks for node in ast.walk(ast.parse(block))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [_imported(node.module or "", alias.name) for alias in node.names]
    return [name for name in found if name.partition(".")[0] == "panewise"]


def _imported(module: str, name: str) -> str:
    """`from panewise import x` imports a module where `panewise.x` is one."""
    return f"{module}.{name}" if module == "panewise" and f"{module}.{name}" in MODULES else module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_imports_public_modules_only(page: Path) -> None:
    assert set(imports_of(page)) <= set(MODULES)


def test_an_internal_import_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nimport panewise as pw\nfrom panewise.cql import bind_script\n```\n")
    assert imports_of(page) == ["panewise", "panewise.cql"]
