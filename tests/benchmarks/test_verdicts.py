"""No claim without its verdict: the tables of benchmarks/README.md say what the records say.

`REGENERATE=1 pytest tests/benchmarks/test_verdicts.py` writes the tables anew.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from benchmarks.harness.catalogue import figures, figures_of_papers, promises
from benchmarks.harness.verdicts import RESULTS, read_record, table_of_verdicts, verdict

ROOT = Path(__file__).parents[2]
README = ROOT / "benchmarks" / "README.md"
TABLES = {"papers": figures_of_papers, "promises": promises}


@pytest.mark.parametrize("name", TABLES)
def test_the_readme_shows_each_claim_with_its_verdict(name: str) -> None:
    start, end = f"<!-- {name}: written by tests/benchmarks/test_verdicts.py -->\n", f"<!-- end of {name} -->"
    head, _, rest = README.read_text(encoding="utf-8").partition(start)
    written, _, tail = rest.partition(end)
    table = table_of_verdicts(TABLES[name]())
    if os.environ.get("REGENERATE"):
        README.write_text(f"{head}{start}\n{table}\n{end}{tail}", encoding="utf-8")
    else:
        assert written.strip() == table.strip()


def test_every_record_belongs_to_a_figure() -> None:
    kinds = {path.stem: {other.suffix for other in RESULTS.glob(f"{path.stem}.*")} for path in RESULTS.iterdir()}
    assert kinds.keys() <= figures().keys()
    assert all(found == {".json", ".md", ".svg"} for found in kinds.values())


def test_a_record_of_another_claim_is_no_record(tmp_path: Path) -> None:
    name, figure = next(iter(figures().items()))
    path = tmp_path / f"{name}.json"
    assert read_record(name, figure, tmp_path) is None
    path.write_text(json.dumps({"claim": figure.claim, "findings": []}), encoding="utf-8")
    assert verdict(read_record(name, figure, tmp_path)) == "yes"
    path.write_text(json.dumps({"claim": "something else", "findings": []}), encoding="utf-8")
    assert verdict(read_record(name, figure, tmp_path)) == "no record"


def test_pages_name_programs_that_exist() -> None:
    """And figures by names that `python -m benchmarks` knows."""
    for page in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        paths = re.findall(r"\bbenchmarks/[\w/]+(?:\.\w+)?", text)
        assert [path for path in paths if not (ROOT / path).exists()] == [], page.name
        assert set(re.findall(r"python -m benchmarks (\w+)", text)) <= figures().keys(), page.name
