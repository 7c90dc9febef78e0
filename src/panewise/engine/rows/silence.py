"""Whether queries over rows have anything to report up to an instant; if none has, rows that have come may wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from panewise.algebra import Windowed
from panewise.core.time import on_grid
from panewise.engine.rows.emitter import Emitter
from panewise.engine.rows.inputs.timed import TimedInput
from panewise.engine.rows.operators.base import RowwiseOperator

if TYPE_CHECKING:
    from panewise.engine.rows.operator_graph import OperatorGraph


def has_nothing_to_report(graph: OperatorGraph, limit: int) -> bool:
    """Whether no query of a graph can report anything up to an instant, and not too many items wait."""
    if graph.inner or any(leaf.is_crowded for leaf in graph.all_inputs):
        return False
    return all(_is_silent(graph, emitter, limit) for emitters in graph.emitters.values() for _, emitter in emitters)


def _is_silent(graph: OperatorGraph, emitter: Emitter, limit: int) -> bool:
    """Whether an emitter has no instant up to a limit, or none at which its rows can have changed."""
    if grids := emitter.grids:
        return limit < min(on_grid(graph.advanced_until + 1, *grid) for grid in grids)
    return _rests(graph, emitter, limit)


def active_emitters(graph: OperatorGraph, limit: int) -> dict[str, list[tuple[int | None, Emitter]]]:
    """The emitters of each query that do not rest; decided before any of them takes the rows that wait."""
    return {
        name: [(level, emitter) for level, emitter in emitters if not _rests(graph, emitter, limit)]
        for name, emitters in graph.emitters.items()
    }


def _rests(graph: OperatorGraph, emitter: Emitter, limit: int) -> bool:
    """Whether no rows enter the relation of an emitter up to a limit, and none leave."""
    if graph.finishing or limit >= emitter.next_change(graph.advanced_until):
        return False
    leaf = _only_input(graph, emitter)
    return leaf is not None and not leaf.waiting


def _only_input(graph: OperatorGraph, emitter: Emitter) -> TimedInput | None:
    """The window of an emitter, if only selections and projections lie between them."""
    node = emitter.query.root
    while not isinstance(node, Windowed):
        if not isinstance(graph.operators.get((node, emitter.variant)), RowwiseOperator):
            return None
        (node,) = node.children
    leaf = graph.window_inputs[node, emitter.variant]
    return leaf if isinstance(leaf, TimedInput) and all(inlet.stream for inlet in leaf.inlets) else None
