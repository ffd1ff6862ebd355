"""docs/simulate.md shows what the command prints, and names all that its JSON has."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from pytest_drainwatch.cli import main
from pytest_drainwatch.core.simulation.document import document
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.run import simulate
from tests.docs.conftest import DOCS

PAGE = (DOCS / "simulate.md").read_text(encoding="utf-8")


def test_the_example_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    ((command, printed),) = re.findall(
        r"^`drainwatch ([^`]+)`:\n\n```text\n(.*?)```", PAGE, re.M | re.S
    )
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == printed


def test_the_keys_of_the_json_are_those_that_are_named() -> None:
    given = document(simulate(Inputs()))
    (told,) = re.findall(r"^`--json` prints all of it .*?`sent`", PAGE, re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`(\w+)`", told))
    assert set(given) - {"simulated", "format", "says"} <= named
    assert set(given["requests"]) <= named


def test_the_outcome_of_each_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    rows = re.findall(r"^\| (?:none \()?`(--[^`]+)`\)? \| (.+?) \|", PAGE, re.MULTILINE)
    assert len(rows) == 9
    for flags, happens in rows:
        assert main(["simulate", *shlex.split(flags), "--json"]) == 0
        failed = json.loads(capsys.readouterr().out)["requests"]["failed"]
        assert (failed == 0) == (happens in ("every request succeeds", "no refusals")), flags
