"""The README's example runs and prints what its comment says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_python_example_prints_what_its_comment_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    promised = re.findall(r"print\(.*\)  # (.*)", code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().splitlines() == promised


def test_the_sql_example_binds() -> None:
    from panewise.lang import bind_script
    from panewise.runtime.local import HOST

    (script,) = re.findall(r"```sql\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert list(bind_script(script, HOST.describe).queries) == ["traffic", "scans"]
