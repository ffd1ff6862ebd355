"""docs/compare.md says what the code does."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from pytest_drainwatch.core.repeats.alike import ASKED, Difference
from pytest_drainwatch.core.repeats.compared import (
    Comparison,
    FigureFound,
    Needed,
    ScenarioFound,
    ShiftFound,
    Side,
    Verdict,
)
from pytest_drainwatch.core.repeats.evidence import LEVEL
from pytest_drainwatch.core.repeats.judged import LEAST_EFFECT_NS, LONGER_IS_WORSE
from pytest_drainwatch.core.repeats.metrics import Tally
from pytest_drainwatch.core.repeats.rank import repeats_of_b, repeats_of_both

TEXT = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")


def part(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def code(text: str) -> set[str]:
    return set(re.findall(r"`([\w-]+)`", text))


def test_the_table_of_repeats_is_right() -> None:
    rows = re.findall(r"^\| (\d+)(?: to (\d+))? \| (\d+) \|$", TEXT, re.MULTILINE)
    assert len(rows) == 4
    for first, last, repeats in rows:
        for questions in (int(first), int(last or first)):
            assert repeats_of_both(LEVEL / questions) == int(repeats)
    assert [repeats_of_both(LEVEL / n) for n in (2, 7, 24)] == [5, 6, 7], "no gap between rows"
    assert repeats_of_b(5, LEVEL) == 3
    most = len(Tally) + len(LONGER_IS_WORSE) - 1  # of two durations one is judged
    assert most == 6
    assert "six questions at most" in TEXT


def test_what_is_judged_is_listed() -> None:
    listed = {
        name
        for row in re.findall(r"^\| (`.*?) \|", part("What is judged"), re.M)
        for name in code(row)
    }
    assert listed == {*map(str, Tally), *map(str, LONGER_IS_WORSE)}
    assert f"more than {LEAST_EFFECT_NS // 1_000_000} ms" in TEXT


def test_what_may_differ_is_listed() -> None:
    listed = code(part("What must be equal").partition("All else")[0])
    assert listed - {"observe_timeout_seconds"} == {name.removeprefix("config.") for name in ASKED}


def test_the_verdicts_are_listed() -> None:
    listed = re.findall(r"^\| `([\w-]+)` \|", part("Verdicts"), re.MULTILINE)
    assert sorted(listed) == sorted(Verdict)


@pytest.mark.parametrize(
    "kind", [Comparison, ScenarioFound, Difference, FigureFound, Side, ShiftFound, Needed]
)
def test_every_field_of_the_json_is_named(kind: type) -> None:
    said = code(part("JSON"))
    assert {each.name for each in fields(kind)} <= said
