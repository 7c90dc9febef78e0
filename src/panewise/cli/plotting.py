"""`plot`: a file and the answers of queries over it, as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.core.errors import BindProblem, SchemaProblem, SourceProblem, did_you_mean, require_extra
from panewise.core.schema import Stream, ticks_of, type_name
from panewise.core.time import MAX_TICK, MIN_TICK, Domain
from panewise.runtime.local import run
from panewise.runtime.local.files import read_undeclared

if TYPE_CHECKING:
    from panewise.plot import Panel, Series


def plot_file(
    data: Path,
    time: str,
    value: str,
    queries: Sequence[str],
    out: Path,
    *,
    title: str | None = None,
    stream: str = "S",
    boundary: str = "(]",
) -> Iterator[str]:
    """Draw the file's series and the windows of each query into `out`; yields notes for the user."""
    # matplotlib takes a second to load, for which the other commands should not wait.
    with require_extra("plot", "panewise plot"):
        from panewise.plot import figure, figure_bytes

    kind = _picture_format(out)
    table = read_undeclared(data)
    if not table.num_rows:
        raise SourceProblem(f"'{data}' has no rows, so there is nothing to draw", fix="check the file")
    source = Stream(table, time, delay=None)
    drawn = series(source, value, title or f"{value} in {data.name}")
    panels = []
    for number, text in enumerate(queries, start=1):
        answer = run(text, {stream: source}, boundary=boundary)
        panels.append(panel(text, answer, source.schema.domain))
        if len(names := levels(answer)) > 1:
            yield f"query {number}: of {', '.join(names)} the first is drawn; select the one you want first"
    _write(figure_bytes(figure(drawn, panels), kind), out)
    yield f"drawn: {out}"


def series(source: Stream, value: str, title: str) -> Series:
    """The rows of a stream whose time can be used."""
    from panewise.plot import Series

    table = source.arrow
    if value not in table.column_names:
        raise SchemaProblem(f"there is no column {value!r} to draw", fix=did_you_mean(value, table.column_names))
    if not _is_numeric(table.schema.field(value).type):
        kind = type_name(table.schema.field(value).type)
        raise SchemaProblem(f"column {value!r} is {kind}, which has no height", fix="draw a column of numbers")
    ticks, usable = ticks_of(table[source.time])
    kept = np.full(len(ticks), True) if usable is None else usable
    if not kept.any():
        raise SchemaProblem(f"no row has a {source.time!r}, so there is nothing to draw", fix="check the data")
    return Series(title, _times(ticks[kept], source.schema.domain), _floats(table[value])[kept], source.time, value)


def panel(text: str, answer: pa.Table, domain: Domain) -> Panel:
    """The windows of an answer, at the level of the first number that its query selects."""
    from panewise.plot import Panel

    if not {"w_start", "w_end"} <= set(answer.column_names):
        raise BindProblem(f"the answers of {text!r} have no start and end", fix="ask about a window with a SLIDE")
    # A window without a start or an end is drawn to the end of the time axis.
    starts, ends = _edges(answer["w_start"], MIN_TICK, domain), _edges(answer["w_end"], MAX_TICK, domain)
    level = next(iter(levels(answer)), None)
    if level is None:
        return Panel(text, starts, ends)
    return Panel(text, starts, ends, _floats(answer[level]), level)


def levels(answer: pa.Table) -> list[str]:
    """The numbers that a query selects: each could be the level of its windows."""
    # Added columns come after the selected ones: the start of a window first, or before it the number of a frame.
    selected = list(answer.schema)[: answer.schema.names.index("w_start")]
    return [field.name for field in selected if field.name != "frame_id" and _is_numeric(field.type)]


def _picture_format(out: Path) -> Literal["png", "svg"]:
    match out.suffix.lower():
        case ".png":
            return "png"
        case ".svg":
            return "svg"
    raise SourceProblem(f"'{out}' is no kind of picture Panewise draws", fix="end its name in .png or .svg")


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _floats(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Numbers as precise as a picture needs them; NULL is NaN."""
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _edges(column: pa.ChunkedArray, missing: int, domain: Domain) -> npt.NDArray[Any]:
    ticks, usable = ticks_of(column)
    return _times(ticks if usable is None else np.where(usable, ticks, missing), domain)


def _times(ticks: npt.NDArray[np.int64], domain: Domain) -> npt.NDArray[Any]:
    return ticks.astype("datetime64[us]") if domain is Domain.TIMESTAMP else ticks


def _write(picture: bytes, out: Path) -> None:
    try:
        out.write_bytes(picture)
    except OSError as problem:
        reason = (problem.strerror or "the system refuses").lower()
        raise SourceProblem(f"'{out}' cannot be written: {reason}", fix="check the path") from None
