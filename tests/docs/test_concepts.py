"""The table "Concept, code, tests" of ARCHITECTURE.md: every path exists, and every test file is in exactly one row."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


def rows_of_the_table() -> list[tuple[str, list[str], list[str]]]:
    """The concept, the code and the tests of each row."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    _, _, section = text.partition("| concept | code | tests |\n")
    table = section.partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()[1:]]
    return [
        (concept, re.findall(r"`([^`]+)`", code), re.findall(r"`([^`]+)`", tests)) for concept, code, tests in cells
    ]


def test_every_concept_has_code_and_tests_that_exist() -> None:
    """Code is named from the package or, where it lies elsewhere, from the root."""
    rows = rows_of_the_table()
    assert len({concept for concept, _, _ in rows}) == len(rows) > 0
    for concept, code, tests in rows:
        assert code, concept
        assert tests, concept
        assert [path for path in code if not any((top / path).exists() for top in (ROOT / "src/panewise", ROOT))] == []
        assert [path for path in tests if not (TESTS / path).exists()] == []


def test_every_test_file_has_its_place_in_the_table() -> None:
    named = [path for _, _, tests in rows_of_the_table() for path in tests]
    files = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    places = {str(file): [name for name in named if file.is_relative_to(name)] for file in files}
    assert {file: found for file, found in places.items() if len(found) != 1} == {}


def test_names_of_test_files_say_what_they_test() -> None:
    """A name that says when a fault was found, or who found it, does not help anybody to find the test."""
    empty = {"review", "regressions", "issues", "fixes", "bugs", "misc", "various", "more", "other"}
    found = [path.name for path in TESTS.rglob("test_*.py") if empty & set(path.stem.split("_")[1:])]
    assert found == []
