"""Reads a SELECT: takes windows and ISTREAM out of the text, lets sqlglot read the rest, puts them together again."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from panewise.errors import Place, SyntaxProblem
from panewise.lang.cursor import Cursor, Source, word
from panewise.lang.dialect import canonical
from panewise.lang.syntax import Body, Clause, Expr, Item, Ref, SelectSyntax, SetSyntax
from panewise.lang.window_parser import READERS, parse_window

EMITS = ("ISTREAM", "DSTREAM", "RSTREAM")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_UNSUPPORTED = {
    "order": ("ORDER BY", "results of one instant have no order"),
    "limit": ("LIMIT", "join with the MAX or MIN to keep the top"),
    "offset": ("OFFSET", "leave it out"),
    "windows": ("WINDOW", "write the window in brackets after the stream"),
    "qualify": ("QUALIFY", "use HAVING or a sub-query"),
    "with_": ("WITH", "use CREATE VIEW or a sub-query"),
    "laterals": ("LATERAL VIEW", "leave it out"),
    "sort": ("SORT BY", "results of one instant have no order"),
    "cluster": ("CLUSTER BY", "leave it out"),
    "distribute": ("DISTRIBUTE BY", "leave it out"),
}


def parse_select(source: Source, tokens: list[Token]) -> Body:
    """The body that these tokens, from SELECT to the end of the query, hold."""
    extras = _Extras(source)
    extras.collect(tokens)
    start, end = tokens[0].start, tokens[-1].end + 1
    tree = source.parse(start, end, extras.blanks, "SELECT")
    return _Reader(source, extras, source.place(start, "SELECT")).body(tree)


@dataclass
class _Extras:
    """What sqlglot does not know: windows and ISTREAM, by the offset of the table name or parenthesis they follow."""

    source: Source
    windows: dict[int, Clause] = field(default_factory=dict)
    emits: dict[int, str] = field(default_factory=dict)
    blanks: list[tuple[int, int]] = field(default_factory=list)
    openings: list[int] = field(default_factory=list)

    def collect(self, tokens: list[Token]) -> None:
        opened: list[int] = []
        partner: dict[int, int] = {}
        skip = -1
        for at, token in enumerate(tokens):
            if at <= skip:
                continue
            if token.token_type is TokenType.L_PAREN:
                opened.append(at)
                if _opens_query(tokens, at):
                    self.openings.append(token.start)
            elif token.token_type is TokenType.R_PAREN and opened:
                partner[at] = opened.pop()
            elif self._opens_window(tokens, at):
                skip = self._window(tokens, at, partner)
            elif word(token) in EMITS and at and word(tokens[at - 1]) == "SELECT":
                self.blanks.append((token.start, token.end + 1))
                if at > 1 and tokens[at - 2].token_type is TokenType.L_PAREN:
                    self.emits[tokens[at - 2].start] = word(token)

    def _opens_window(self, tokens: list[Token], at: int) -> bool:
        if tokens[at].token_type is not TokenType.L_BRACKET:
            return False
        ahead = word(tokens[at + 1]) if at + 1 < len(tokens) else ""
        return ahead in READERS or ahead == "FRAME" or self._follows_table(tokens, at)

    def _follows_table(self, tokens: list[Token], at: int) -> bool:
        """Whether a bracket stands where a window must, so that a misspelt one is called a window in the message."""
        return at > 1 and word(tokens[at - 2]) in ("FROM", "JOIN")

    def _window(self, tokens: list[Token], at: int, partner: dict[int, int]) -> int:
        end, depth = at, 0
        while end < len(tokens):
            depth += {TokenType.L_BRACKET: 1, TokenType.R_BRACKET: -1}.get(tokens[end].token_type, 0)
            if not depth:
                break
            end += 1
        if end == len(tokens):
            raise SyntaxProblem(
                "the window is never closed", fix="add a ]", place=self.source.place(tokens[at].start, "window")
            )
        anchor = self._anchor(tokens, at, partner)
        place = self.source.place(tokens[at].start, "window")
        if anchor in self.windows:
            raise SyntaxProblem("a stream has two windows", fix="keep one of them", place=place)
        cursor = Cursor(self.source, tokens[at + 1 : end], tokens[end].start, "window")
        self.windows[anchor] = parse_window(cursor)
        self.blanks.append((tokens[at].start, tokens[end].end + 1))
        return end

    def _anchor(self, tokens: list[Token], at: int, partner: dict[int, int]) -> int:
        """Offset of the table name, or of the opening parenthesis, that the bracket at `at` belongs to."""
        back = at - 1
        if back >= 1 and tokens[back].token_type in _NAMES:
            if word(tokens[back - 1]) == "AS":
                back -= 2
            elif tokens[back - 1].token_type in (*_NAMES, TokenType.R_PAREN):
                back -= 1
        if back < 0:
            raise SyntaxProblem(
                "a window stands before any stream",
                fix="write it after the stream's name",
                place=self.source.place(tokens[at].start, "window"),
            )
        return tokens[partner.get(back, back)].start


class _Reader:
    """Turns sqlglot's tree of the blanked text into our syntax."""

    def __init__(self, source: Source, extras: _Extras, place: Place) -> None:
        self.source, self.extras, self.place = source, extras, place
        self.used: set[int] = set()
        # sqlglot keeps no position on a sub-query; both of us meet them in the order of the text.
        self.openings = list(extras.openings)

    def body(self, tree: exp.Expression) -> Body:
        found = self._body(tree)
        for anchor, clause in self.extras.windows.items():
            if anchor not in self.used:
                raise SyntaxProblem(
                    "a window does not follow a stream", fix="write it after a stream in FROM", place=clause.place
                )
        return found

    def _body(self, tree: exp.Expression) -> Body:
        match tree:
            case exp.Subquery(this=inner) if not tree.args.get("alias"):
                self.openings.pop(0)
                return self._body(inner)
            case exp.Select():
                return self._select(tree)
            case exp.Union() | exp.Except() if not tree.args.get("distinct"):
                name = "UNION ALL" if isinstance(tree, exp.Union) else "EXCEPT ALL"
                return SetSyntax(name, self._body(tree.left), self._body(tree.right), self.place)
            case exp.Union() | exp.Except():
                name = "UNION" if isinstance(tree, exp.Union) else "EXCEPT"
                raise SyntaxProblem(
                    f"{name} removes duplicates, which windows do with multiplicity",
                    fix=f"write {name} ALL, with DISTINCT around it if you need it",
                    place=self.place,
                )
        raise SyntaxProblem(f"{tree.key.upper()} is not a continuous query", fix="start with SELECT", place=self.place)

    def _select(self, tree: exp.Select) -> SelectSyntax:
        for key, (name, fix) in _UNSUPPORTED.items():
            if tree.args.get(key):
                raise SyntaxProblem(f"{name} is not part of continuous queries", fix=fix, place=self.place)
        if not tree.args.get("from_"):
            raise SyntaxProblem("the query has no FROM", fix="name a stream", place=self.place)
        refs = [self._ref(tree.args["from_"].this)]
        conditions: list[exp.Expression] = []
        for join in tree.args.get("joins") or ():
            refs.append(self._ref(join.this))
            conditions += self._join_conditions(join, refs)
        if where := tree.args.get("where"):
            conditions.append(where.this)
        distinct = tree.args.get("distinct")
        if distinct and distinct.args.get("on"):
            raise SyntaxProblem("DISTINCT ON is not supported", fix="use GROUP BY", place=self.place)
        return SelectSyntax(
            tuple(self._item(item) for item in tree.expressions),
            tuple(refs),
            self._expr(exp.and_(*conditions, copy=False), "WHERE") if conditions else None,
            tuple(self._expr(e, "GROUP BY") for e in self._group(tree)),
            self._expr(tree.args["having"].this, "HAVING") if tree.args.get("having") else None,
            bool(distinct),
        )

    def _group(self, tree: exp.Select) -> list[exp.Expression]:
        group = tree.args.get("group")
        if group and any(group.args.get(k) for k in ("grouping_sets", "cube", "rollup", "all")):
            raise SyntaxProblem("GROUP BY takes plain expressions here", fix="list the keys", place=self.place)
        return list(group.expressions) if group else []

    def _join_conditions(self, join: exp.Join, refs: list[Ref]) -> list[exp.Expression]:
        kind = " ".join(str(join.args.get(k) or "") for k in ("method", "side", "kind")).split()
        if any(k not in ("INNER", "CROSS") for k in kind):
            raise SyntaxProblem(
                f"{' '.join(kind)} JOIN is not supported", fix="use an inner join or EXCEPT ALL", place=refs[-1].place
            )
        found = [join.args["on"]] if join.args.get("on") else []
        for name in join.args.get("using") or ():
            sides = (exp.column(name.copy(), table=_label(ref)) for ref in (refs[-2], refs[-1]))
            found.append(exp.EQ(this=next(sides), expression=next(sides)))
        return found

    def _item(self, node: exp.Expression) -> Item:
        if isinstance(node, exp.Alias):
            return Item(self._expr(node.this, "SELECT"), node.alias)
        return Item(self._expr(node, "SELECT"))

    def _ref(self, node: exp.Expression) -> Ref:
        alias = node.alias or None
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier) and not node.args.get("db"):
                start = node.this.meta["start"]
                return Ref(node.name, alias, self._window(start), None, self.source.place(start, "FROM"))
            case exp.Subquery():
                start = self.openings.pop(0)
                window, emit = self._window(start), self.extras.emits.get(start)
                return Ref(self._body(node.this), alias, window, emit, self.source.place(start, "FROM"))
        raise SyntaxProblem(f"{node.sql()!r} cannot stand in FROM", fix="name a stream or a sub-query", place=self.place)

    def _window(self, anchor: int) -> Clause | None:
        self.used.add(anchor)
        return self.extras.windows.get(anchor)

    def _expr(self, node: exp.Expression, clause: str) -> Expr:
        for forbidden, what in ((exp.Query, "a sub-query"), (exp.Window, "OVER")):
            if inner := node.find(forbidden):
                raise SyntaxProblem(
                    f"{what} cannot stand inside an expression in {clause}",
                    fix="join with the sub-query in FROM" if forbidden is exp.Query else "write a window in brackets",
                    place=self._place(inner, clause),
                )
        return Expr(canonical(node), node, self._place(node, clause))

    def _place(self, node: exp.Expression, clause: str) -> Place:
        starts = [i.meta["start"] for i in node.find_all(exp.Identifier) if "start" in i.meta]
        return self.source.place(min(starts), clause) if starts else Place(self.place.line, self.place.column, clause)


def _opens_query(tokens: list[Token], at: int) -> bool:
    while at < len(tokens) and tokens[at].token_type is TokenType.L_PAREN:
        at += 1
    return at < len(tokens) and word(tokens[at]) == "SELECT"


def _label(ref: Ref) -> str:
    return ref.alias or str(ref.source)
