"""CONTRIBUTING.md names files, folders and words in them that exist."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pyarrow as pa

import panewise as pw
from panewise.aggregate import AGGREGATES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
#: Text outside of blocks of code; what an example adds is marked as new.
PROSE = re.sub(r"^ *```.*?^ *```|`[^`\n]+`<!-- new -->", "", TEXT, flags=re.DOTALL | re.MULTILINE)
PATH = r"[\w.-]+(?:/[\w.-]+)*/?"
#: A single word is a path only where it has an ending, or stands after the word folder.
PATHS = re.compile(rf"`({PATH}/(?:[\w.-]+)?|[\w.-]+\.(?:py|md|txt|yaml))`|folder `(\w+)`")
WORDS = re.compile(rf"((?:`\w+`(?: or )?)+) in `({PATH})`")
COMMANDS = re.compile(r"`make ([a-z-]+)`|^    make ([a-z-]+)", re.MULTILINE)


def located(path: str) -> Path | None:
    """Where a path is: below the root of the repository, or of the package."""
    return next((home / path for home in (ROOT, ROOT / "src" / "panewise") if (home / path).exists()), None)


def test_every_path_exists() -> None:
    named = {one or other for one, other in PATHS.findall(PROSE)}
    assert {"aggregate/count.py", "tests/laws", "docs/language.md", "cql/clauses/windows.py"} <= named
    assert [path for path in sorted(named) if located(path) is None] == []


def test_every_word_stands_where_it_is_said_to_stand() -> None:
    found = [(word, path) for words, path in WORDS.findall(PROSE) for word in re.findall(r"`(\w+)`", words)]
    assert ("KINDS", "tests/laws/strategies.py") in found
    assert ("CumulateClause", "cql/clauses/windows.py") in found
    assert ("TrendSyntax", "cql/clauses/frame_kinds.py") in found
    assert [(word, path) for word, path in found if not stands(word, path)] == []


def stands(word: str, path: str) -> bool:
    place = located(path)
    assert place is not None, path
    files = place.rglob("*.py") if place.is_dir() else [place]
    return any(re.search(rf"\b{word}\b", file.read_text(encoding="utf-8")) for file in files)


def test_examples_to_follow_are_there() -> None:
    """`wherever X stands` leads to X."""
    examples = re.findall(r"(`\w+`[^|`]*(?:`\w+`)?): wherever `(\w+)` stands", PROSE)
    assert len(examples) == 1
    for folders, word in examples:
        assert all(stands(word, folder) for folder in re.findall(r"`(\w+)`", folders)), word


def test_every_command_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {one or other for one, other in COMMANDS.findall(TEXT)} <= targets


def test_the_aggregate_of_the_page_is_answered_as_it_means() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (query,) = re.findall(r"`(SELECT .*?)`", TEXT, re.DOTALL)
    rows = pa.table({"t": [5, 15, 25, 75], "k": ["a", "b", "a", "b"], "v": [1, 5, 0, 2]})
    registered = dict(AGGREGATES)
    try:
        exec(textwrap.dedent(code), {})
        found, wanted = (run(query, {"S": rows}, time="t").to_pylist() for run in (pw.run, pw.reference.run))
        assert sorted(map(str, found)) == sorted(map(str, wanted))
        assert {row["good"] for row in found if row["k"] == "b"} == {True}
    finally:
        AGGREGATES.clear()
        AGGREGATES.update(registered)
