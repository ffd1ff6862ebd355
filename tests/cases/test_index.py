"""The table in README.md says what the tests here say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OURS = {"C68"}
ANSWERED = re.compile(r"answered|answered in part: .+")
MISSING = re.compile(r"not yet.*: .*|not yet as .*")
SHARED_CASES = HERE.parents[2] / "shared" / "CASES.md"


def listed() -> dict[str, str]:
    rows = re.findall(
        r"^\| (C\d\d) \|[^|]*\| ([^|]*) \|$", (HERE / "README.md").read_text(), re.MULTILINE
    )
    return dict(rows)


def having_tests() -> set[str]:
    """Cases with a test here, or with one of the scenarios under their name."""
    names = re.findall(
        r"^(?:def|    \w+ as) test_(c\d\d)_",
        "\n".join(p.read_text() for p in HERE.glob("test_*.py")),
        re.M,
    )
    return {name.upper() for name in names}


def test_every_case_is_listed_once() -> None:
    assert len(listed()) == 48


def test_an_answered_case_has_its_test_and_every_test_its_case() -> None:
    answered = {case for case, state in listed().items() if ANSWERED.fullmatch(state)}
    assert having_tests() == answered | OURS


def test_every_case_has_a_state() -> None:
    for case, state in listed().items():
        assert ANSWERED.fullmatch(state) or MISSING.fullmatch(state), case


def test_an_answer_in_part_says_what_is_missing() -> None:
    parts = {case: state for case, state in listed().items() if ": " in state}
    for case, state in parts.items():
        assert re.search(r"not yet|needs", state), case


def test_these_are_the_cases_that_the_project_started_from() -> None:
    if not SHARED_CASES.exists():
        pytest.skip("the list of cases lies beside the project, and not here")
    known = set(re.findall(r"^\*\*(C\d\d)\*\*", SHARED_CASES.read_text(), re.MULTILINE))
    assert known == set(listed())
