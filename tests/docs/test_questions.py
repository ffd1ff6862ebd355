"""The index of questions leads to every scenario and every command, and quotes what was found."""

from __future__ import annotations

import argparse
import re

from pytest_drainwatch.cli import build_parser
from tests.docs.conftest import DOCS

PAGE = (DOCS / "questions.md").read_text(encoding="utf-8")
ROOT = DOCS.parent


def test_each_scenario_file_is_a_question() -> None:
    asked = set(re.findall(r"`pytest scenarios/(test_\w+\.py)", PAGE))
    assert asked == {path.name for path in (ROOT / "scenarios").glob("test_*.py")}


def test_each_example_is_a_question_or_a_recipe() -> None:
    """The index names what the cookbook's recipes are for."""
    asked = set(re.findall(r"`pytest docs/examples/(test_\w+\.py)", PAGE))
    linked = set(re.findall(r"\(cookbook\.md#([\w-]+)\)", PAGE))
    assert asked <= {path.name for path in (DOCS / "examples").glob("test_*.py")}
    titles = re.findall(r"^## (.+)$", (DOCS / "cookbook.md").read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    recipes = {anchor for anchor in anchors if anchor not in ("how-they-were-run",)}
    assert linked <= recipes


def test_each_command_is_an_answer() -> None:
    named = set(re.findall(r"`drainwatch (\w+)", PAGE))
    (below,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    assert named == set(below.choices)


def test_the_counts_are_those_of_the_pages_that_it_links_to() -> None:
    told = " ".join(
        (DOCS / name).read_text(encoding="utf-8")
        for name in ("findings.md", "nodes.md", "triggers.md", "servers.md")
    )
    told = " ".join(told.split())
    for count in re.findall(r"\d[\d,]* of \d[\d,]+\b", PAGE):
        assert count in told, count


def test_each_page_can_be_found_from_there() -> None:
    """But for those that others are made from, and the index itself."""
    linked = set(re.findall(r"\]\(([\w-]+\.md)", PAGE))
    pages = {path.name for path in DOCS.glob("*.md") if not path.stem.endswith("_words")}
    # What each file is for belongs to CONTRIBUTING.md.
    assert pages - linked == {"questions.md", "house.md"}
