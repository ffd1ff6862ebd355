"""docs/models.md: each statement is the text's own, and each test that it names is collected."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs import typed
from tests.docs.conftest import DOCS

ROOT = DOCS.parent
PAGE = DOCS / "models.md"
# Beside the repository, for tests only: the three texts, in the order of the page's sections.
SEEDS = ROOT.parent / "shared" / "seeds"
TEXTS = {"The lesson": "001_*.txt", "The experiment": "003_*.txt", "The guide": "004_*.txt"}


class Row(NamedTuple):
    """A statement, the command that shows it, and the tests that hold it true."""

    text: str
    says: str
    command: str
    tests: tuple[str, ...]


def rows() -> list[Row]:
    found = []
    for title, section in re.findall(
        r"^## (.+?):.*?\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S
    ):
        for line in re.findall(r"^\| (.+) \|$", section, re.MULTILINE)[1:]:
            says, command, tests = line.split(" | ")
            found.append(Row(title, says, command, tuple(re.findall(r"`(\S+)`", tests))))
    return found


ROWS = rows()


def test_each_text_has_its_statements() -> None:
    told = [row.text for row in ROWS]
    assert list(dict.fromkeys(told)) == list(TEXTS)
    assert len({(row.text, row.says) for row in ROWS}) == len(ROWS)
    assert min(told.count(text) for text in TEXTS) >= 20


def test_each_row_has_a_command_that_can_be_typed(pytestconfig: pytest.Config) -> None:
    for row in ROWS:
        (command,) = re.findall(r"`([^`]+)`", row.command)
        assert list(typed.commands(command)) == [command], row
        line = typed.Line(PAGE.name, command, whole=False)
        assert typed.problem(pytestconfig, line) is None, row


def test_each_test_that_is_named_is_collected() -> None:
    named = {test for row in ROWS for test in row.tests}
    assert all(row.tests for row in ROWS)
    files = sorted({test.partition("::")[0] for test in named})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    collected = set(re.findall(r"^(\S+?::\w+)", done.stdout, re.MULTILINE))
    assert not named - collected, done.stdout[-2000:] + done.stderr


@pytest.mark.parametrize(("text", "pattern"), TEXTS.items())
def test_each_statement_is_in_the_texts_own_words(text: str, pattern: str) -> None:
    found = sorted(SEEDS.glob(pattern))
    if not found:
        pytest.skip(f"the text itself is not part of the repository: no {pattern} in {SEEDS.name}/")
    words = _words(found[0])
    assert not [row.says for row in ROWS if row.text == text and row.says not in words]


def _words(path: Path) -> str:
    return " ".join(path.read_text(encoding="utf-8").split())
