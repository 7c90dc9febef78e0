"""What a package index shows of us."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import panewise as pw

ROOT = Path(__file__).parents[2]
BUILD = "from setuptools import build_meta; print(build_meta.prepare_metadata_for_build_wheel('.'))"
#: The classifiers of which there are versions or kinds; a typing error would make an index refuse the upload.
FAMILIES = ("Development Status", "Intended Audience", "Operating System", "Programming Language", "Topic", "Typing")


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Message:
    """As the build makes it, from a copy, since it leaves files behind."""
    folder = tmp_path_factory.mktemp("build")
    for name in ("pyproject.toml", "LICENSE", "MANIFEST.in", "docs/about.md", "src/panewise/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    done = subprocess.run([sys.executable, "-c", BUILD], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Parser().parsestr((folder / done.stdout.splitlines()[-1] / "METADATA").read_text(encoding="utf-8"))


def test_the_metadata_say_what_it_is(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("panewise", pw.__version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Author"]
    assert "stream-processing" in metadata["Keywords"]
    assert {"plot", "serve", "spark"} == set(metadata.get_all("Provides-Extra", []))


def test_classifiers_are_well_formed(metadata: Message) -> None:
    """Those of licences must not stand beside a licence expression."""
    found = metadata.get_all("Classifier", [])
    assert len(found) == len(set(found)) >= 8
    assert all(each.split(" :: ")[0] in FAMILIES and " :: " in each for each in found)


def test_the_long_description_has_no_relative_links(metadata: Message) -> None:
    """An index shows it apart from all other files."""
    text = str(metadata.get_payload())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert text.startswith("# Panewise")
    targets = re.findall(r"\]\(([^)]*)\)|^\[[^\]]+\]: (\S+)|(?:href|src)=[\"']([^\"']*)", text, re.MULTILINE)
    assert [target for found in targets for target in found if target and "://" not in target] == []


def test_pages_that_the_description_names_exist() -> None:
    text = (ROOT / "docs" / "about.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+\.md)`", text)
    assert named
    assert all((ROOT / "docs" / name).is_file() for name in named)


def broken_links(page: Path) -> list[str]:
    """Relative links, outside of code, that lead nowhere."""
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    return [target for target in targets if "://" not in target and not (page.parent / target).exists()]


def test_links_of_the_repository_lead_somewhere() -> None:
    named = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "benchmarks/README.md")
    pages = [*(ROOT / name for name in named), *(ROOT / "docs").rglob("*.md")]
    assert {page.name: broken for page in pages if (broken := broken_links(page))} == {}
