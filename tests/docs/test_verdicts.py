"""The page about states and verdicts says what the tables say."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.docs.conftest import DOCS, Load


@pytest.fixture(scope="module")
def generator(load: Load) -> ModuleType:
    return load("make_verdicts")


def test_the_page_is_generated_from_todays_tables(generator: ModuleType) -> None:
    written = (DOCS / "verdicts.md").read_text()
    assert written == generator.page(), "docs/verdicts.md is out of date: make docs"


def test_every_signal_is_explained(generator: ModuleType) -> None:
    assert set(generator.MEANING) == set(generator.Signal)


def test_every_state_is_drawn_for_some_transport(generator: ModuleType) -> None:
    drawn = set().union(*(generator._reachable(proto) for proto in generator.Proto))
    assert drawn == set(generator.State)
