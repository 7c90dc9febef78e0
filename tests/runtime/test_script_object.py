"""`pw.script`: a text or a file becomes an object that is run, explained or started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import panewise as pw
from panewise.core.errors import BindProblem, PackageProblem, SourceProblem, SyntaxProblem

TRADES = pa.table({"t": [1, 2, 5, 9], "symbol": ["a", "b", "a", "b"], "price": [10.0, 7.0, 12.0, 8.0]})
SELECT = "SELECT symbol, MAX(price) AS high FROM trades [RANGE 6 SLIDE 3] GROUP BY symbol"
TEXT = f"""
CREATE STREAM trades (t BIGINT, symbol STRING, price DOUBLE) TIME t FROM 'csv:trades.csv';
CREATE QUERY highs AS {SELECT};
SELECT COUNT(*) AS n FROM trades [RANGE 10 SLIDE 10];
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pa.csv.write_csv(TRADES, tmp_path / "trades.csv")
    (tmp_path / "app.cql").write_text(TEXT)
    return tmp_path


def test_a_text_and_a_file_are_the_same_script(folder: Path) -> None:
    text = pw.script(TEXT, base=folder)
    for file in (folder / "app.cql", str(folder / "app.cql")):
        found = pw.script(file)
        assert isinstance(found, pw.Script)
        assert (found.base, found.streams, found.queries) == (folder, text.streams, text.queries)
    assert list(text.queries) == ["highs", "query_2"]
    assert text.streams["trades"].time == "t"


def test_a_text_is_relative_to_the_working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert pw.script(TEXT).run()["query_2"].table.num_rows == 1


def test_a_file_may_be_relative_to_another_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    pa.csv.write_csv(TRADES.slice(0, 1), other / "trades.csv")
    counts = pw.script(folder / "app.cql", base=str(other)).run()["query_2"]
    assert counts.table["n"].to_pylist() == [1]


def test_run_answers_as_one_query_alone_does(folder: Path) -> None:
    outcomes = pw.script(folder / "app.cql").run()
    assert outcomes["highs"].table.to_pylist() == pw.run(SELECT, {"trades": TRADES}, time="t").to_pylist()
    assert outcomes["highs"].accounting["trades"] == pw.Accounting(rows_in=4, used=4)
    assert outcomes["query_2"].table["n"].to_pylist() == [4]


def test_run_stops_where_it_is_told_to(folder: Path) -> None:
    table = pw.script(folder / "app.cql").run(until=3)["highs"].table
    assert set(table["w_end"].to_pylist()) == {3}


def test_run_takes_the_boundary_that_the_script_leaves_open(folder: Path) -> None:
    found = pw.script(folder / "app.cql").run(boundary="[)")["highs"].table
    assert found.to_pylist() == pw.run(SELECT, {"trades": TRADES}, time="t", boundary="[)").to_pylist()
    stated = pw.script(f"WITH BOUNDARY '(]'; {TEXT}", base=folder)
    with pytest.raises(BindProblem, match="give it once"):
        stated.run(boundary="[)")


def test_run_writes_targets(folder: Path) -> None:
    (folder / "app.cql").write_text(TEXT.replace("GROUP BY symbol;", "GROUP BY symbol INTO 'parquet:highs.parquet';"))
    outcome = pw.script(folder / "app.cql").run()["highs"]
    assert pa.parquet.read_table(folder / "highs.parquet").to_pylist() == outcome.table.to_pylist()


def test_columns_are_found_in_files_below_the_base(folder: Path) -> None:
    app = pw.script("CREATE STREAM trades TIME t FROM 'trades.csv'; SELECT symbol FROM trades [NOW]", base=folder)
    assert app.streams["trades"].schema.names == ["t", "symbol", "price"]
    assert app.explain().startswith("stream trades: t BIGINT, symbol STRING, price BIGINT, as in 'csv:trades.csv'")


def test_explain_tells_of_every_query_and_of_what_they_share(folder: Path) -> None:
    said = pw.script(folder / "app.cql").explain()
    assert "highs: " in said
    assert "query_2: " in said
    assert "family 1: 1 query over trades" in said


@pytest.mark.parametrize(
    ("source", "problem", "sentence"),
    [
        (
            "nowhere.cql",
            SourceProblem,
            "script 'nowhere.cql' cannot be read: No such file or directory; check the path",
        ),
        (Path("nowhere"), SourceProblem, "script 'nowhere' cannot be read: No such file or directory; check the path"),
        ("app.sql", SyntaxProblem, "line 1, column 1: expected a SELECT, but found 'app'; start with SELECT or CREATE"),
        ("", SyntaxProblem, "line 1, column 1: the text is empty; write a SELECT or a CREATE statement"),
    ],
)
def test_what_is_no_script_is_refused(source: str | Path, problem: type[Exception], sentence: str) -> None:
    with pytest.raises(problem) as refused:
        pw.script(source)
    assert str(refused.value) == sentence


def test_a_wrong_query_is_refused_with_its_place(folder: Path) -> None:
    with pytest.raises(BindProblem, match=r"^line 3, column .*'pricee'.*did you mean 'price'\?$"):
        pw.script(TEXT.replace("MAX(price)", "MAX(pricee)"), base=folder)


def test_a_stream_without_a_source_cannot_be_run() -> None:
    app = pw.script("CREATE STREAM S (t BIGINT) TIME t; SELECT COUNT(*) AS n FROM S [RANGE 5 SLIDE 5]")
    with pytest.raises(SourceProblem, match="stream 'S' has no source to read; add FROM"):
        app.run()


def test_starting_without_pyspark_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("panewise.runtime.spark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "panewise.runtime.spark", None)
    app = pw.script("CREATE STREAM S (t BIGINT) TIME t; SELECT COUNT(*) AS n FROM S [RANGE 5 SLIDE 5]")
    with pytest.raises(PackageProblem, match=r"pip install 'panewise\[spark\]'"):
        app.start(None, checkpoint="ck")  # type: ignore[arg-type]


def test_reading_a_script_does_not_load_spark() -> None:
    code = f"import sys, panewise as pw\npw.script({TEXT!r}).explain()\nprint('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr
