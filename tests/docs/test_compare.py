"""docs/compare.md says what the code does."""

from __future__ import annotations

import re
from dataclasses import fields
from fractions import Fraction
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
    TogetherFound,
    Verdict,
)
from pytest_drainwatch.core.repeats.judged import LEAST_EFFECT_NS, LONGER_IS_WORSE
from pytest_drainwatch.core.repeats.metrics import OwnMetric, Tally
from pytest_drainwatch.core.repeats.questions import LEVEL, TOGETHER
from pytest_drainwatch.core.repeats.rank import MOST_VALUES, repeats_of_both

TEXT = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")


def part(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def code(text: str) -> set[str]:
    return set(re.findall(r"`([\w-]+)`", text))


def test_the_table_of_repeats_is_right() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", TEXT, re.MULTILINE)
    assert len(rows) == 8
    head = re.search(r"^\| questions \| repeats at (.*) \|$", TEXT, re.MULTILINE)
    assert head
    levels = [Fraction(each.removeprefix("at ")) for each in head[1].split(" | ")]
    assert levels == [LEVEL * (1 - TOGETHER * asked) for asked in (1, 2, 3, 0)]
    for questions, *repeats in rows:
        assert [int(n) for n in repeats] == [repeats_of_both(n / int(questions)) for n in levels]


def test_five_repeats_decide_of_all_scenarios_together() -> None:
    assert repeats_of_both(LEVEL * TOGETHER) == 5
    said = " ".join(part("How many repeats\\?").split())
    assert "**Five of each side decide of all scenarios together**" in said
    assert f"has {float(LEVEL * TOGETHER):g} of the {float(LEVEL):g} for itself" in said
    whole = set(Tally) - {Tally.HTTP_REQUESTS_FAILED}  # which is asked of each scenario alone
    assert len(whole) == 3
    assert f"{MOST_VALUES} repeats of both" in " ".join(TEXT.split())
    most = len(whole) + len(LONGER_IS_WORSE) - 1  # of two durations one is judged
    assert most == 6
    assert "One scenario has six at most" in said


def test_what_is_judged_is_listed() -> None:
    listed = {
        name
        for row in re.findall(r"^\| (`.*?) \|", part("What is judged"), re.M)
        for name in code(row)
    }
    judged = {*Tally, OwnMetric.NEW_FAILED, *LONGER_IS_WORSE} - {Tally.NEW_CONNECTIONS_FAILED}
    assert listed == set(map(str, judged))
    assert f"more than {LEAST_EFFECT_NS // 1_000_000} ms" in TEXT


def test_what_may_differ_is_listed() -> None:
    listed = code(part("What must be equal").partition("All else")[0])
    assert listed - {"observe_timeout_seconds"} == {name.removeprefix("config.") for name in ASKED}


def test_the_verdicts_are_listed() -> None:
    listed = re.findall(r"^\| `([\w-]+)` \|", part("Verdicts"), re.MULTILINE)
    assert sorted(listed) == sorted(Verdict)


@pytest.mark.parametrize(
    "kind",
    [
        *(Comparison, TogetherFound, ScenarioFound, Difference),
        *(FigureFound, Side, ShiftFound, Needed),
    ],
)
def test_every_field_of_the_json_is_named(kind: type) -> None:
    said = code(part("JSON"))
    assert {each.name for each in fields(kind)} <= said
