"""The page about commands lists those that can be typed."""

from __future__ import annotations

import argparse
import re
from types import ModuleType

import pytest

from pytest_drainwatch.cli import build_parser
from tests.docs.conftest import DOCS, Load


@pytest.fixture(scope="module")
def generator(load: Load) -> ModuleType:
    return load("make_commands")


def test_the_page_is_generated_from_todays_parser(generator: ModuleType) -> None:
    written = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert written == generator.page(), "docs/commands.md is out of date: make docs"


def test_each_command_has_a_section(generator: ModuleType) -> None:
    sections = re.findall(r"^## drainwatch (\w+)", generator.page(), re.MULTILINE)
    (below,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    assert set(sections) == set(below.choices)
    assert sections.count("cluster") == 3


def test_each_option_of_each_command_is_named(generator: ModuleType) -> None:
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", generator.page(), re.M | re.S))
    for name, parser, _ in generator.commands(build_parser()):
        for action in parser._actions:
            own = [each for each in action.option_strings if not each.startswith("--dw-")]
            if own and "--help" not in own:
                assert re.search(rf"[` ]{re.escape(own[-1])}[` ,]", sections[name]), (name, own)
