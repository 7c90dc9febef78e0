"""`python -m benchmarks`: list, measure and draw figures."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness.catalogue import figures
from benchmarks.harness.draw import draw
from benchmarks.harness.figure import SIZES, Figure
from benchmarks.harness.record import run, write
from benchmarks.harness.verdicts import RESULTS


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    known = figures()
    if options.list:
        for name, figure in known.items():
            print(f"{name}: {figure.claim}")
        return 0
    if not (options.all or options.names):
        print("name a figure, or use --all or --list", file=sys.stderr)
        return 2
    try:
        chosen = list(known) if options.all else [_named(name, known) for name in options.names]
    except LookupError as problem:
        print(problem.args[0], file=sys.stderr)
        return 2
    for name in chosen:
        record = options.into / f"{name}.json"
        if not options.draw:
            record = write(run(name, known[name], options.size), options.into)
        table, _ = draw(record)
        print(table.read_text(encoding="utf-8"))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Figures as programs.")
    parser.add_argument("names", nargs="*", metavar="figure", help="a figure, or a part of its name that no other has")
    parser.add_argument("--all", action="store_true", help="all figures")
    parser.add_argument("--list", action="store_true", help="say what each figure claims")
    parser.add_argument("--size", choices=SIZES, default="seconds")
    parser.add_argument("--draw", action="store_true", help="draw the recorded results again, without measuring")
    parser.add_argument("--into", type=Path, default=RESULTS, metavar="folder", help="default: benchmarks/results")
    return parser


def _named(name: str, known: dict[str, Figure[Any]]) -> str:
    matching = [name] if name in known else [k for k in known if name in k]
    if len(matching) != 1:
        raise LookupError(f"{name!r} names {len(matching)} figures; use one of {', '.join(known)}")
    return matching[0]


if __name__ == "__main__":
    sys.exit(main())
