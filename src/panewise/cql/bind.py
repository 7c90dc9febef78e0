"""From syntax to algebra: names become columns, clauses become operators, everything gets a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from panewise.algebra import (
    Column,
    Derived,
    Distinct,
    Emit,
    Except,
    Filled,
    Framed,
    Join,
    Node,
    Project,
    Query,
    Select,
    Source,
    Union,
    Windowed,
)
from panewise.algebra.positional import positional_refusal
from panewise.core.errors import BindProblem, PanewiseError, Place, did_you_mean
from panewise.core.scalar import Scalar, column
from panewise.core.schema import StreamSchema, type_name
from panewise.core.time import Domain
from panewise.cql.clauses import WindowClause, bind_clause
from panewise.cql.clauses.fill import refuse_mixed_fillings
from panewise.cql.group_by import GroupByBinder, aggregate_calls, without_aggregates
from panewise.cql.naming import unique_names
from panewise.cql.scope import (
    Scope,
    alias_name,
    conjuncts,
    find_ignoring_case,
    join_key,
    plain_name,
    source_node,
)
from panewise.cql.syntax import Body, Expr, FromItem, QuerySyntax, SelectSyntax, SetSyntax
from panewise.frame.frame import Frame
from panewise.window import Landmark, WindowRetention

#: Streams and sub-queries in one FROM; each is one level of a tree that is walked recursively.
MAX_SOURCES = 100


@dataclass(frozen=True)
class Binder:
    """Binds queries against declared streams and views."""

    streams: Mapping[str, StreamSchema]
    views: Mapping[str, QuerySyntax]

    def query(self, syntax: QuerySyntax) -> Query:
        root = self._body(syntax.body)
        domain = self._domain(root, syntax)
        draft = Query(root, Emit.RSTREAM, domain, syntax.empty)
        if draft.framed_node:
            return self._frame_query(syntax, draft)
        emit = Emit(syntax.emit) if syntax.emit else Emit.RSTREAM if draft.periodic else Emit.CHANGES
        revise = self._revise(syntax, domain)
        if revise is not None and not (emit is Emit.RSTREAM and draft.periodic):
            raise BindProblem(
                "LATE REVISE repeats whole results, but this query reports changes",
                fix="give a window a SLIDE, or leave LATE REVISE out",
                place=syntax.late,
            )
        if len({w.window for w in draft.windows if w.window.levels}) > 1:
            raise BindProblem(
                "two different multi-granular windows meet in one query",
                fix="give both the same levels",
                place=syntax.place,
            )
        if revise is not None and any(w.window.retention is WindowRetention.FOLLOWS_SESSIONS for w in draft.windows):
            raise BindProblem(
                "LATE REVISE cannot reopen a session", fix="use a longer DELAY, or leave it out", place=syntax.place
            )
        if revise is not None and any(w.window.periodic and not w.window.logical for w in draft.windows):
            raise BindProblem(
                "LATE REVISE cannot move the instants of a window that counts rows",
                fix="use a longer DELAY, or leave it out",
                place=syntax.place,
            )
        query = Query(root, emit, domain, syntax.empty, revise, syntax.unbounded, syntax.place)
        if reason := positional_refusal(query):
            raise BindProblem(
                f"an aggregate depends on where in the window items lie, but {reason}",
                fix="ask for it in a query of its own",
                place=syntax.place,
            )
        return query

    def _frame_query(self, syntax: QuerySyntax, draft: Query) -> Query:
        """A query that reports frames: each frame once, as soon as it is known."""
        unsuited = {
            "DSTREAM": syntax.emit == "DSTREAM",
            "EMIT EMPTY": syntax.empty,
            "LATE REVISE": syntax.revise is not None,
        }
        for name, is_given in unsuited.items():
            if is_given:
                problem = f"{name} has no meaning for frames, which are reported once and stay"
                raise BindProblem(problem, fix="leave it out", place=syntax.late or syntax.place)
        return replace(draft, emit=Emit.ISTREAM, unbounded=syntax.unbounded, place=syntax.place)

    def _revise(self, syntax: QuerySyntax, domain: Domain) -> int | None:
        if syntax.revise is None:
            return None
        try:
            ticks = syntax.revise.ticks(domain)
        except PanewiseError as problem:
            raise problem.at(syntax.late) from None
        if ticks < 0:
            raise BindProblem(f"LATE REVISE {syntax.revise} is negative", fix="use zero or more", place=syntax.late)
        return ticks

    def _domain(self, root: Node, syntax: QuerySyntax) -> Domain:
        names = sorted(root.streams)
        domains = {self.streams[name].domain for name in names}
        if len(domains) > 1:
            raise BindProblem(
                f"streams {', '.join(names)} mix timestamps and integer time",
                fix="convert the time column of one of them",
                place=syntax.place,
            )
        return domains.pop()

    # ---- bodies ----------------------------------------------------------------------------------------------------

    def _body(self, body: Body) -> Node:
        return self._select(body) if isinstance(body, SelectSyntax) else self._set(body)

    def _set(self, body: SetSyntax) -> Node:
        left, right = self._body(body.left), self._body(body.right)
        for side in (left, right):
            _refuse_frames(side, f"combined by {body.operator}", "ask for each alone", body.place)
        if len(left.columns) != len(right.columns):
            raise BindProblem(
                f"{body.operator} has {len(left.columns)} columns on its left and {len(right.columns)} on its right",
                fix="select the same columns on both sides",
                place=body.place,
            )
        for a, b in zip(left.columns, right.columns, strict=True):
            if a.type != b.type:
                raise BindProblem(
                    f"{body.operator} pairs {a.name!r} ({type_name(a.type)}) with {b.name!r} ({type_name(b.type)})",
                    fix="cast one of them",
                    place=body.place,
                )
        renamed = _rename_columns(right, [c.name for c in left.columns])
        return Union(left, renamed) if body.operator == "UNION ALL" else Except(left, renamed)

    def _select(self, body: SelectSyntax) -> Node:
        sources = self._sources(body.sources)
        scope = Scope([c for node in sources.values() for c in node.columns])
        node = self._join_and_filter(body, sources, scope)
        if framed := next((source for source in sources.values() if isinstance(source, Framed | Filled)), None):
            return self._frames(body, framed, node, scope)
        if _is_grouped(body):
            node, items = self._group(body, node, scope)
        elif body.having:
            raise BindProblem("HAVING needs GROUP BY or an aggregate", fix="use WHERE", place=body.having.place)
        else:
            items = self._items(body, scope)
        projected = Project(node, unique_names(items))
        return Distinct(projected) if body.distinct else projected

    def _frames(self, body: SelectSyntax, source: Framed | Filled, node: Node, scope: Scope) -> Node:
        """One row for each frame, or for each group inside it, or for each row that fills it; always with its group."""
        if len(body.sources) > 1:
            place = body.sources[1].place
            raise BindProblem("frames cannot be joined", fix="join what is read from their results", place=place)
        if body.distinct:
            raise BindProblem("frames are different anyway", fix="leave DISTINCT out", place=body.items[0].expr.place)
        frame = (source if isinstance(source, Framed) else source.framed_node).frame
        found = {c.name: c for c in source.columns}
        keys = [found[name] for name in frame.partition_by]
        if isinstance(source, Filled) and not _is_grouped(body):
            items = self._items(body, scope)
        else:
            # Without a filling a frame has no rows to list: * means the columns of its group.
            named = replace(body, items=tuple(item for item in body.items if not _is_star(item.expr.node)))
            node, items = self._group(named, node, scope, keys)
        if isinstance(source, Filled):
            refuse_mixed_fillings(source, node, body.items[0].expr.place)
        shown = {scalar.column for _, scalar in items}
        items += [(plain_name(c.name), column(c.name, c.type)) for c in keys if c.name not in shown]
        return Project(node, unique_names(items))

    def _group(
        self, body: SelectSyntax, node: Node, scope: Scope, anyway: Sequence[Column] = ()
    ) -> tuple[Node, list[tuple[str, Scalar]]]:
        times = [n.time for n in node.walk() if isinstance(n, Source) and n.time in scope.types]
        domains = [self.streams[n].domain for n in sorted(node.streams)]
        grouping = GroupByBinder(scope, times, domains[0] if domains else Domain.INTEGER)
        node = grouping.build(node, body, anyway)
        above = Scope(list(node.columns))
        if body.having:
            having = grouping.expand_having(body.having, body)
            node = Select(node, above.require_boolean(grouping.bind(having, above), having, "HAVING"))
        for item in body.items:
            if _is_star(item.expr.node):
                raise BindProblem("* cannot be grouped", fix="list the columns", place=item.expr.place)
        return node, [(i.alias or _default_name(i.expr), grouping.bind(i.expr, above)) for i in body.items]

    def _items(self, body: SelectSyntax, scope: Scope) -> list[tuple[str, Scalar]]:
        found: list[tuple[str, Scalar]] = []
        for item in body.items:
            node = item.expr.node
            if _is_star(node):
                table = (node.table or None) if isinstance(node, exp.Column) else None
                found += [
                    (plain_name(c.name), column(c.name, c.type)) for c in scope.expand_star(table, item.expr.place)
                ]
            else:
                found.append((item.alias or _default_name(item.expr), scope.bind(item.expr)))
        return found

    # ---- FROM and WHERE --------------------------------------------------------------------------------------------

    def _sources(self, refs: tuple[FromItem, ...]) -> dict[str, Node]:
        found: dict[str, Node] = {}
        if len(refs) > MAX_SOURCES:
            raise BindProblem(
                f"FROM has more than {MAX_SOURCES} streams", fix="join fewer", place=refs[MAX_SOURCES].place
            )
        for number, ref in enumerate(refs):
            alias = alias_name(ref.alias or (ref.source if isinstance(ref.source, str) else f"_{number}"))
            if any(alias.lower() == other.lower() for other in found):
                raise BindProblem(f"{alias!r} is twice in FROM", fix="give one an alias", place=ref.place)
            found[alias] = self._source(ref, alias)
            for fill in ref.fills:
                found[alias] = fill.bind(found[alias], self.streams)
        return found

    def _source(self, ref: FromItem, alias: str) -> Node:
        if not isinstance(ref.source, str):
            syntax = QuerySyntax(ref.source, ref.emit, place=ref.place)
        elif stream := find_ignoring_case(self.streams, ref.source):
            return self._stream(*stream, ref, alias)
        elif view := find_ignoring_case(self.views, ref.source):
            syntax = view[1]
        else:
            known = [*self.streams, *self.views]
            raise BindProblem(
                f"there is no stream or view {ref.source!r}",
                fix=did_you_mean(
                    ref.source, known, "declare it first, or use one of {}" if known else "declare it first"
                ),
                place=ref.place,
            )
        if syntax.empty or syntax.revise or syntax.unbounded:
            suffix = "EMIT EMPTY" if syntax.empty else "LATE REVISE" if syntax.revise else "ALLOW UNBOUNDED"
            raise BindProblem(f"{suffix} cannot be used in a view", fix="put it into the query", place=syntax.place)
        if syntax.emit:
            derived = Derived(self.query(syntax), alias)
            _refuse_frames(derived.query.root, "read by another query", _READ_LATER, ref.place)
            return self._apply_window(derived, derived, ref.window)
        body = self._body(syntax.body)
        _refuse_frames(body, "read by another query", _READ_LATER, ref.place)
        node = _rename_columns(body, [f"{alias}.{c.name}" for c in body.columns])
        return self._apply_window(_as_stream(node, ref), node, ref.window) if ref.window else node

    def _stream(self, name: str, schema: StreamSchema, ref: FromItem, alias: str) -> Node:
        node = source_node(name, schema, alias)
        return self._apply_window(node, node, ref.window)

    def _apply_window(self, stream: Node, node: Node, clause: WindowClause | None) -> Node:
        """A stream with the window or the frames that were written for it, which name the columns of `node`.

        Without a clause the window has all items so far.
        """
        if clause is None:
            return Windowed(stream, Landmark())
        bound = bind_clause(clause, Scope(list(node.columns)), self.streams[min(node.streams)])
        return Framed(stream, bound) if isinstance(bound, Frame) else Windowed(stream, bound)

    def _join_and_filter(self, body: SelectSyntax, sources: dict[str, Node], scope: Scope) -> Node:
        """The join of all sources: equalities between two of them become join keys, the rest a selection."""
        parts = conjuncts(body.where)
        predicates = [scope.predicate(without_aggregates(c), (c.place and c.place.clause) or "WHERE") for c in parts]
        nodes = list(sources.values())
        node = nodes[0]
        for other in nodes[1:]:
            left, right = ({c.name for c in side.columns} for side in (node, other))
            pairs = zip(parts, predicates, strict=True)
            keys = {p: pair for c, p in pairs if (pair := join_key(c, scope, left, right))}
            predicates = [p for p in predicates if p not in keys]
            parts = [c for c in parts if not join_key(c, scope, left, right)]
            node = Join(node, other, tuple(keys.values()))
        for predicate in predicates:
            node = Select(node, predicate)
        return node


_READ_LATER = "write them INTO a file and read that"


def _refuse_frames(node: Node, what: str, fix: str, place: Place | None) -> None:
    if any(isinstance(each, Framed) for each in node.walk()):
        raise BindProblem(f"frames cannot be {what}", fix=fix, place=place)


def _as_stream(node: Node, ref: FromItem, top: bool = True) -> Node:
    """A relation that was only selected and projected is still a stream, to which a window can be applied."""
    match node:
        case Windowed(child, window) if window == Landmark():
            return child
        case Project(Distinct(child), items) if top and [s.column for _, s in items] == [c.name for c in child.columns]:
            # Renaming commutes with duplicate elimination, over which a window can be put only directly.
            return Distinct(_as_stream(Project(child, items), ref, top=False))
        case Distinct() if not top:
            raise BindProblem(
                "a window cannot look below a DISTINCT", fix="put the DISTINCT into the outer query", place=ref.place
            )
        case Select() | Project() | Union() | Distinct():
            return node.with_children(*(_as_stream(child, ref, top=False) for child in node.children))
    raise BindProblem(
        "a window needs a stream, but this sub-query is a relation that changes",
        fix="turn it into a stream with (SELECT ISTREAM ...)",
        place=ref.place,
    )


def _rename_columns(node: Node, names: list[str]) -> Node:
    columns = zip(names, node.columns, strict=True)
    return Project(node, tuple((name, column(c.name, c.type)) for name, c in columns))


def _is_grouped(body: SelectSyntax) -> bool:
    return bool(body.group_by) or any(
        next(aggregate_calls(e.node), None) is not None for e in _selected_expressions(body)
    )


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _default_name(expr: Expr) -> str:
    return expr.node.name if isinstance(expr.node, exp.Column) else expr.sql.replace("`", "")


def _selected_expressions(body: SelectSyntax) -> list[Expr]:
    return [*(item.expr for item in body.items), *([body.having] if body.having else [])]
