"""The page about states and verdicts says what the tables say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_verdicts", DOCS / "make_verdicts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_generated_from_todays_tables(generator: ModuleType) -> None:
    written = (DOCS / "verdicts.md").read_text()
    assert written == generator.page(), "docs/verdicts.md is out of date: make docs"


def test_every_signal_is_explained(generator: ModuleType) -> None:
    assert set(generator.MEANING) == set(generator.Signal)


def test_every_state_is_drawn_for_some_transport(generator: ModuleType) -> None:
    drawn = set().union(*(generator._reachable(proto) for proto in generator.Proto))
    assert drawn == set(generator.State)
