"""Importing Panewise and asking it for help wait for nothing heavy; what is missing says what to install."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import panewise as pw

ROOT = Path(__file__).parents[2]
HELP = """
import sys
from panewise.cli import main
sys.argv = ["panewise", "--help"]
try:
    main()
except SystemExit:
    pass
"""
HIDING = """
import sys
class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in HIDDEN else self.finder.find_spec(name, *rest)
    def __getattr__(self, name):
        return getattr(self.finder, name)
sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
"""
HEAVY = ["numba", "duckdb", "sqlglot", "matplotlib", "pandas", "pyarrow.dataset", "pyspark", "fastapi"]
TABLE = "import pyarrow as pa, panewise as pw\ntable = pa.table({'t': [1, 2], 'v': [1, 2]})\n"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a program says in a process of its own."""
    environment = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)


def without(*packages: str) -> str:
    """The beginning of a program for which some packages are not installed."""
    return f"HIDDEN = {packages}\n{HIDING}"


def cost(code: str) -> float:
    """Seconds of the processor that a program takes, at best."""
    best = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = python(code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


@pytest.mark.parametrize("code", ["import panewise", "import panewise.cli", HELP])
def test_importing_and_help_load_nothing_heavy(code: str) -> None:
    """Nor numpy and pyarrow, which are light only beside the others."""
    done = python(f"{code}\nimport sys\nprint([m for m in {[*HEAVY, 'numpy', 'pyarrow']} if m in sys.modules])")
    assert done.stdout.splitlines()[-1] == "[]", done.stdout


def test_using_the_engine_waits_for_no_compiler_and_no_database() -> None:
    """The parser is there, since streams and queries are read by it."""
    heavy = [name for name in HEAVY if name != "sqlglot"]
    names = "pw.Engine, pw.Pool, pw.run, pw.reference, pw.window, pw.Stream, pw.StreamSchema, pw.register_framing"
    done = python(f"import sys, panewise as pw\n{names}\nprint([m for m in {heavy} if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("code", ["import panewise", HELP])
def test_importing_and_help_take_no_longer_than_numpy_and_pyarrow(code: str) -> None:
    """In the same run on the same machine; the bound is generous, the best of three counts."""
    assert cost(code) < 2 * cost("import numpy, pyarrow") + 0.1


def test_every_public_name_is_there_and_nothing_else_is_shown() -> None:
    shown = dir(pw)
    assert set(pw.__all__) <= set(shown)
    assert {"serve", "spark"} <= set(shown)
    assert not {"Any", "TYPE_CHECKING", "import_module", "find_spec"} & set(shown)
    for name in shown:
        assert getattr(pw, name) is not None


def test_spark_is_absent_without_pyspark() -> None:
    done = python(f"{without('pyspark')}import panewise as pw\nprint(hasattr(pw, 'spark'), 'spark' in dir(pw))")
    assert done.stdout == "False False\n", done.stderr


@pytest.mark.parametrize(
    "code", ["import panewise.spark", "from panewise import spark", "import panewise\npanewise.spark"]
)
def test_whoever_asks_for_spark_without_pyspark_is_told_what_to_install(code: str) -> None:
    done = python(f"{without('pyspark')}{code}")
    assert "needs the package 'pyspark'; pip install 'panewise[spark]'" in done.stderr.splitlines()[-1]


def test_other_queries_need_no_extra() -> None:
    query = "SELECT SUM(v) AS x FROM S [RANGE 2 SLIDE 2]"
    code = f"{TABLE}print(pw.run('{query}', {{'S': table}}, time='t')['x'].to_pylist())"
    done = python(without("matplotlib", "pandas", "pyspark", "fastapi", "uvicorn") + code)
    assert done.stdout == "[3]\n", done.stderr


def test_plot_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("t,v\n1,2\n")
    options = ["--time", "t", "--value", "v", "--query", "SELECT * FROM S", "--out", "x.svg"]
    arguments = ["panewise", "plot", str(tmp_path / "data.csv"), *options]
    code = f"from panewise.cli import main\nsys.argv = {arguments}\nmain()"
    done = python(without("matplotlib") + code)
    assert done.stderr == "error: panewise plot needs the package 'matplotlib'; pip install 'panewise[plot]'\n"


def test_the_demo_without_pyspark_runs_and_says_what_to_install() -> None:
    code = "from panewise.cli import main\nsys.argv = ['panewise', 'demo', '--rows', '500']\nmain()"
    done = python(without("pyspark") + code)
    assert "500 rows in = " in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "To watch the answers come on Spark: pip install 'panewise[spark]'"


def test_the_locked_environment_has_every_extra() -> None:
    """Tests and benchmarks need all of them; `make lock` covers those to come."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    needed = [*project["project"]["dependencies"], *(each for extra in extras for each in extra)]
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE))
    assert {re.split(r"[\[<>=]", each)[0] for each in needed} <= locked
    assert "--all-extras" in (ROOT / "Makefile").read_text(encoding="utf-8")
