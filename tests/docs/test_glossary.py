"""The names of the code are those of docs/glossary.md: one class a name, small modules, no bare participles."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/panewise"
GLOSSARY = ROOT / "docs/glossary.md"
MOST_LINES = 400

_IRREGULAR = (
    "begun bound broken built chosen done drawn driven fallen found given gone heard held hidden kept known "
    "laid left lost made meant met paid risen said seen sent shown sold spoken taken thought thrown told "
    "understood won written"
)
#: Words with the ending of a participle that are ordinary nouns, verbs and adverbs.
_ORDINARY = (
    "anything bring ceiling embed encoding everything exceed feed heading king meaning need nothing padding "
    "ping proceed ring seed setting shed sing something speed spring string succeed thing timing warning"
)

IRREGULAR = frozenset(_IRREGULAR.split())
ORDINARY = frozenset(_ORDINARY.split())


def is_bare_participle(name: str) -> bool:
    """Whether a name is one word, and that word a participle; words that follow tell what a name means."""
    word = name.strip("_")
    if not re.fullmatch("[a-z]+", word) or word in ORDINARY:
        return False
    return word in IRREGULAR or word.endswith(("ed", "ing"))


@cache
def trees() -> dict[str, ast.Module]:
    """All modules of the package by their dotted names."""
    return {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }


def functions(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions below a node with their full names: methods and nested functions too."""
    for child in ast.iter_child_nodes(node):
        name = owner
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{owner}.{child.name}"
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, child
        yield from functions(child, name)


def is_boolean_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A boolean property may be an adjective, such as `finished`."""
    decorators = {ast.unparse(each).rpartition(".")[2] for each in function.decorator_list}
    boolean = function.returns is not None and ast.unparse(function.returns) == "bool"
    return boolean and bool(decorators & {"property", "cached_property"})


def class_names() -> list[str]:
    return [node.name for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def words_of(name: str) -> list[str]:
    """The words of a name in CamelCase: `DuckDBHost` has three."""
    return re.findall(r"[A-Z]+(?![a-z])[0-9]*|[A-Z][a-z0-9]*", name)


def singular(word: str) -> str:
    word = word.lower()
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def entries() -> list[tuple[str, list[str]]]:
    """The terms of the glossary, each with the classes that it names."""
    lines = re.findall(r"^- \*\*(.+?)\*\*(?: \((.+?)\))?: .+\.$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    return [(term, re.findall("`([^`]+)`", classes)) for term, classes in lines]


def participles_that_are_terms() -> list[str]:
    _, _, section = GLOSSARY.read_text(encoding="utf-8").partition("## Terms that are participles\n")
    return re.findall(r"^- `(\w+)`: ", section, re.MULTILINE)


def test_no_class_name_is_defined_twice() -> None:
    assert [name for name, count in Counter(class_names()).items() if count > 1] == []


def test_no_module_is_long() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    assert {str(path.relative_to(SOURCE)): length for path, length in lengths.items() if length > MOST_LINES} == {}


def test_no_function_is_a_bare_participle() -> None:
    """A function is a verb or says what it returns; the glossary lists the participles that are terms or public."""
    allowed = set(participles_that_are_terms())
    found = [
        name
        for module, tree in trees().items()
        for name, function in functions(tree, module)
        if is_bare_participle(function.name) and function.name not in allowed and not is_boolean_property(function)
    ]
    assert found == []


def test_every_listed_participle_is_a_function() -> None:
    listed = participles_that_are_terms()
    defined = {function.name for module, tree in trees().items() for _, function in functions(tree, module)}
    assert listed == sorted(listed)
    assert [name for name in listed if name not in defined] == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("settled", True),
        ("_joined", True),
        ("told", True),
        ("following", True),
        ("feed", False),
        ("meaning", False),
        ("merge_sorted", False),
        ("read", False),
        ("onQueryStarted", False),
    ],
)
def test_what_counts_as_a_bare_participle(name: str, expected: bool) -> None:
    assert is_bare_participle(name) is expected


def test_nested_functions_and_methods_count() -> None:
    tree = ast.parse("class A:\n  def told(self):\n    def found(): ...\n")
    assert [name for name, _ in functions(tree, "m")] == ["m.A.told", "m.A.told.found"]


def test_the_last_word_of_every_class_is_in_the_glossary() -> None:
    known = {singular(word) for term, _ in entries() for word in re.findall("[A-Za-z0-9]+", term)}
    public = {name for name in class_names() if not name.startswith("_")}
    assert sorted(name for name in public if singular(words_of(name)[-1]) not in known) == []


def test_every_class_that_the_glossary_names_exists() -> None:
    """A name may also be an alias of a type."""
    aliases = {
        target.id
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    defined = aliases | set(class_names())
    assert [name for _, names in entries() for name in names if name not in defined] == []


def test_terms_are_in_order_and_have_one_meaning_each() -> None:
    terms = [term for term, _ in entries()]
    assert len(terms) == GLOSSARY.read_text(encoding="utf-8").count("\n- **")
    assert terms == sorted(terms, key=str.casefold)
    single = [each for term in terms for each in term.split(", ")]
    assert [term for term, count in Counter(single).items() if count > 1] == []
