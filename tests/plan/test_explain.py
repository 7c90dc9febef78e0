"""`explain` pinned: what is said about the demo's queries, and about one of every operator.

`REGENERATE=1 make test-fast` writes it anew, for review in the diff.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from panewise.cql import bind_script
from panewise.plan import explain, plan_query

GOLDEN = Path(__file__).parent / "explain.txt"
OPERATORS = """
CREATE QUERY every_operator AS
  SELECT DISTINCT upper(u.protocol) AS p, COUNT(*) AS n, MEDIAN(u.sent) AS middle
  FROM (SELECT protocol, sent FROM conn [ROWS 100] UNION ALL SELECT protocol, received FROM conn [NOW]) AS u,
       conn AS c [PARTITION BY protocol ROWS 5]
  WHERE u.protocol = c.protocol AND u.sent > c.sent GROUP BY upper(u.protocol) HAVING COUNT(*) > 1;
CREATE QUERY difference AS SELECT local_host FROM conn [UNBOUNDED START AT '07:00:00']
  EXCEPT ALL SELECT remote_host FROM (SELECT ISTREAM remote_host FROM conn [SESSION 1 MINUTE]) AS s [RANGE 1 HOUR];
CREATE QUERY levels AS SELECT protocol, SUM(sent) AS total FROM conn [ROWS 1000, 100 SLIDES 100, 10] GROUP BY protocol;
CREATE QUERY blocks AS SELECT MAX(sent) AS most FROM conn [PARTITION BY protocol ROWS 50 SLIDE 50];
"""
FRAMES = """
CREATE QUERY slow AS
  SELECT protocol, AVG(sent) AS mean FROM conn
    [FRAME WHILE sent < 40 FOR AT LEAST 5 MINUTES PARTITION BY protocol FRAGMENTS EVERY 1 MINUTE]
  WHERE status <> 'REJ' HAVING COUNT(*) > 2;
CREATE QUERY megabytes AS SELECT SUM(sent) AS bytes FROM conn [FRAME SUM(sent) >= 1000000];
CREATE QUERY reports AS SELECT status, COUNT(*) AS n FROM conn
    [FRAME WHILE sent > 0 WITH SOME sent > 100 EVERY 5 SECONDS MISSING NEIGHBOURS PARTITION BY local_host]
  GROUP BY status;
CREATE QUERY bursts AS SELECT * FROM conn [FRAME WHILE sent > 9 FOR AT MOST 30 SECONDS EXTENT LIBERAL];
CREATE QUERY steps AS SELECT * FROM conn [FRAME EVERY 0.5 OF sent / 2 AS INTERVALS DUPLICATES LAST];
CREATE QUERY widest AS SELECT * FROM conn [FRAME DELTA sent > 2 MAXIMUM];
CREATE QUERY trend AS SELECT * FROM conn [FRAME FLAT sent WITHIN 1.5 FOR AT LEAST 3 ROWS];
CREATE QUERY visits AS SELECT * FROM conn [FRAME START WHEN status = 'S0' END WHEN status = 'SF' ON START DROP];
CREATE QUERY dense AS SELECT * FROM conn [FRAME DENSITY 5 PER 30 SECONDS CHANCE 0.05 EXPECTED 1.5];
"""


def test_explain_of_frames() -> None:
    """When a frame is known, when it is certain, and what must be waited for."""
    demo = files("panewise.cli").joinpath("demo.cql").read_text(encoding="utf-8")
    declared = demo[: demo.index(";") + 1]
    queries = bind_script(declared + FRAMES).queries.values()
    said = "\n\n".join(explain(q.name, q.query, plan_query(q.query)) for q in queries) + "\n"
    golden = GOLDEN.with_name("explain_frames.txt")
    if os.environ.get("REGENERATE"):
        golden.write_text(said, encoding="utf-8")
    assert said == golden.read_text(encoding="utf-8")


def test_explain_says_what_it_said() -> None:
    script = files("panewise.cli").joinpath("demo.cql").read_text(encoding="utf-8") + OPERATORS
    queries = bind_script(script).queries.values()
    said = "\n\n".join(explain(q.name, q.query, plan_query(q.query)) for q in queries) + "\n"
    if os.environ.get("REGENERATE"):
        GOLDEN.write_text(said, encoding="utf-8")
    assert said == GOLDEN.read_text(encoding="utf-8")
