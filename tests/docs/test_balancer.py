"""docs/balancer.md: its example prints what it says, and each difference has its test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pytest_drainwatch.cli import main
from pytest_drainwatch.core.balancer.grammar import FORMS
from tests.core.balancer.played import play
from tests.docs.conftest import DOCS

PAGE = (DOCS / "balancer.md").read_text(encoding="utf-8")
TEXTS = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
HAPROXY = DOCS.parent / "tests" / "loopback" / "test_balancer_haproxy.py"


def test_the_example_prints_what_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands, printed, _ = TEXTS
    file = tmp_path / "deploy.txt"
    file.write_text(commands)
    assert main(["balancer", str(file)]) == 0
    assert capsys.readouterr().out == printed


def test_the_error_is_one() -> None:
    (error,) = re.findall(r"line 9: 'REMOVE a': (.*)\n", TEXTS[2])
    assert play("POOL a; PICK; DRAIN a 30; NOW 29; REMOVE a").errors == [error]


def test_each_command_has_its_row() -> None:
    rows = re.findall(r"^\| `([A-Z]+[^`]*)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(form.usage for form in FORMS.values())


def test_each_difference_has_its_test_and_each_test_its_row() -> None:
    defined = [
        each.name
        for each in ast.walk(ast.parse(HAPROXY.read_text(encoding="utf-8")))
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_difference_")
    ]
    assert sorted(re.findall(r"`(test_difference_\w+)` \|$", PAGE, re.MULTILINE)) == sorted(defined)
