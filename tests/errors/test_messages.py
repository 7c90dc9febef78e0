"""Every wrong input gets one sentence, and here is each of them, verbatim.

`cases/<area>.<kind>.txt` holds cases: a line `### name`, the input, a line `---`, the message. The kind says how the
input is run: `query` with `pw.run` over the streams of `inputs.py`, `pool` as a query that stands over them, `script`
with `bind_script`, `python` as an expression. Only `runtime`, what the data reveal, may go without a place.

To add a case, write its name and input and `---`; `REGENERATE=1 pytest tests/errors` writes the messages. Read them
as the user would before you keep them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from panewise.core.errors import PanewiseError
from panewise.cql import bind_script
from panewise.engine import Pool
from panewise.runtime.local import run
from tests.errors.inputs import NAMES, STREAMS

CASES = Path(__file__).parent / "cases"
CASE = re.compile(r"^### (?P<name>[^\n]+)\n(?P<input>.*?)\n---\n(?P<message>[^\n]*)\n", re.DOTALL | re.MULTILINE)
RUN: dict[str, Callable[[str], object]] = {
    "query": lambda text: run(text, STREAMS),
    "pool": lambda text: Pool({name: stream.schema for name, stream in STREAMS.items()}).register("q", text),
    "script": lambda text: bind_script(text),
    "python": lambda text: eval(text, dict(NAMES)),
}
#: Words of our own machinery, which no user has heard of.
JARGON = re.compile(
    r"sqlglot|duckdb|pyarrow\.|agg#|key#|arg#|#row|<class|Error\b|NoneType|token|int64|VARCHAR|_LITERAL"
)


@dataclass(frozen=True)
class Case:
    area: str
    kind: str
    name: str
    input: str
    message: str


def said(kind: str, text: str) -> str:
    """The message an input gets."""
    try:
        RUN[kind](text)
    except PanewiseError as problem:
        return str(problem)
    return "nothing is wrong"


def read(path: Path) -> list[Case]:
    area, kind, _ = path.name.split(".")
    if os.environ.get("REGENERATE"):
        text = re.sub(r"^---\n(?=\n|\Z)", "---\n?\n", path.read_text(), flags=re.MULTILINE)
        fresh = CASE.sub(lambda m: f"### {m['name']}\n{m['input']}\n---\n{said(kind, m['input'])}\n", text)
        path.write_text(fresh)
    return [Case(area, kind, *m.groups()) for m in CASE.finditer(path.read_text())]


ALL = [case for path in sorted(CASES.glob("*.txt")) for case in read(path)]


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.area}: {case.name}")
def test_message(case: Case) -> None:
    assert said(case.kind, case.input) == case.message


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.area}: {case.name}")
def test_message_is_one_plain_sentence(case: Case) -> None:
    assert not JARGON.search(case.message)
    assert "; " in case.message, "a message ends with the way out"
    assert not case.message.endswith(".")
    if case.kind != "python" and case.area != "runtime":
        assert re.match(r"line \d+, column \d+(, in [\w ]+)?: ", case.message), "a message about a text says where"


def test_every_case_is_read() -> None:
    headings = sum(path.read_text().count("### ") for path in CASES.glob("*.txt"))
    assert len(ALL) == headings >= 80
    assert len({(case.area, case.name) for case in ALL}) == headings
