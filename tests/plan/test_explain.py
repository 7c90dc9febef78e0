"""`explain` pinned: what is said about the demo's queries, and about one of every operator.

`REGENERATE=1 make test-fast` writes it anew, for review in the diff.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from panewise.lang import bind_script
from panewise.plan import explain
from panewise.runtime.local import HOST

GOLDEN = Path(__file__).parent / "explain.txt"
OPERATORS = """
CREATE QUERY every_operator AS
  SELECT DISTINCT upper(u.protocol) AS p, COUNT(*) AS n, MEDIAN(u.sent) AS middle
  FROM (SELECT protocol, sent FROM conn [ROWS 100] UNION ALL SELECT protocol, received FROM conn [NOW]) AS u,
       conn AS c [PARTITION BY protocol ROWS 5]
  WHERE u.protocol = c.protocol AND u.sent > c.sent GROUP BY upper(u.protocol) HAVING COUNT(*) > 1;
CREATE QUERY difference AS SELECT local_host FROM conn [UNBOUNDED START AT '07:00:00']
  EXCEPT ALL SELECT remote_host FROM (SELECT ISTREAM remote_host FROM conn [SESSION 1 MINUTE]) AS s [RANGE 1 HOUR];
"""


def test_explain_says_what_it_said() -> None:
    script = files("panewise.cli").joinpath("demo.cql").read_text(encoding="utf-8") + OPERATORS
    queries = bind_script(script, HOST.describe).queries.values()
    said = "\n\n".join(explain(q.name, q.query) for q in queries) + "\n"
    if os.environ.get("REGENERATE"):
        GOLDEN.write_text(said, encoding="utf-8")
    assert said == GOLDEN.read_text(encoding="utf-8")
