"""The examples of README and of the engine page run and print what their comments say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import panewise as pw
from panewise.plan.rules.catalogue import RULES

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/about.md",
        "docs/engine.md",
        "docs/filters.md",
        "docs/lookups.md",
        "docs/serving.md",
        "docs/time.md",
        pytest.param("docs/spark.md", marks=pytest.mark.slow),
    ],
)
def test_the_python_examples_print_what_their_comments_say(page: str) -> None:
    """The blocks of a page are one program."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL))
    promised = re.findall(r"print\(.*\)  # (.*)", code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().splitlines() == promised


def test_the_sql_example_binds() -> None:
    (script,) = re.findall(r"```sql\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert list(pw.script(script).queries) == ["traffic", "scans"]


def test_the_rules_of_the_planner_are_listed_with_their_purposes() -> None:
    page = (ROOT / "docs/engine.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE) == [(rule.name, rule.purpose) for rule in RULES]
