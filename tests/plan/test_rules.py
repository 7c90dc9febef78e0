"""What every rule of the planner decides, pinned: `explain` of a few queries with the rule on, and with it off.

`REGENERATE=1 make test-fast` writes these files anew, for review in the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import PlanProblem
from panewise.plan.rules import catalogue
from panewise.plan.rules.catalogue import RULES
from panewise.plan.rules.rule import Rule

FOLDER = Path(__file__).parent / "rules"
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
SUMS = [f"SELECT k, SUM(v) AS total FROM S [RANGE {w} SLIDE {s}] GROUP BY k" for w, s in ((60, 10), (120, 20))]
JOINS = [f"SELECT A.k FROM S [RANGE {w}] A, T [RANGE {w}] B WHERE A.k = B.k AND A.v > 1" for w in (5, 9)]
QUERIES = {
    "sink_selections": JOINS[:1],
    "merge_unions": ["SELECT k FROM S [RANGE 5 SLIDE 1] UNION ALL SELECT k FROM T [RANGE 5 SLIDE 1]"],
    "prune_columns": ["SELECT DISTINCT k FROM S [RANGE 5]"],
    "share_panes": SUMS,
    "group_windows": SUMS,
    "choose_store": SUMS[:1],
    "share_operators": JOINS,
    "slice_early": SUMS[:1],
    "route_shards": JOINS[:1],
    "narrow_having": [f"{SUMS[0]} HAVING SUM(v) >= 3"],
    "choose_index": [SUMS[0], "SELECT SUM(v) AS total FROM S [ROWS 9]"],
}


def explained(rule: Rule, off: bool) -> str:
    pool = pw.Pool({name: pw.StreamSchema(SCHEMA, "t") for name in "ST"}, rules_off=[rule.name] if off else [])
    for number, query in enumerate(QUERIES[rule.name]):
        pool.register(f"q{number}", query)
    if rule.name != "choose_index":
        return pool.explain()
    engine = pw.Engine(pool, keep=1000)
    engine.feed("S", pa.table([[*range(0, 400, 10)], ["a", "b"] * 20, [*range(40)]], SCHEMA))
    engine.advance(390)
    for name in pool.queries:
        engine.lookup(name, at=[*range(100, 400, 10)])
    return engine.explain_lookups()


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_a_rule_decides(rule: Rule) -> None:
    on, off = (explained(rule, off) for off in (False, True))
    assert on != off, f"{rule} decides nothing about these queries"
    queries = "\n".join(QUERIES[rule.name])
    said = f"{rule}: {rule.purpose}\n\n{queries}\n\n--- on\n{on}\n\n--- off\n{off}\n"
    golden = FOLDER / f"{rule}.txt"
    if os.environ.get("REGENERATE"):
        golden.write_text(said, encoding="utf-8")
    assert said == golden.read_text(encoding="utf-8")


def test_a_rule_is_a_module_of_its_name() -> None:
    folder = Path(catalogue.__file__).parent
    assert {rule.name for rule in RULES} <= {path.stem for path in folder.iterdir()}
    assert len({rule.name for rule in RULES}) == len(RULES) == len(list(FOLDER.glob("*.txt")))


def test_a_rule_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(PlanProblem, match=r"there is no rule 'share_pane'; did you mean 'share_panes'\?"):
        pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")}, rules_off=["share_pane"])


def test_a_bare_name_instead_of_a_list_of_rules_is_refused() -> None:
    with pytest.raises(PlanProblem, match=r"a text, not a list of names; write \['share_panes'\]"):
        pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")}, rules_off="share_panes")
