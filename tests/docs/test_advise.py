"""docs/advise.md: its example prints what it says, and each finding has its row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pytest_drainwatch.core.advisor.checks as checks
from pytest_drainwatch.cli import main
from pytest_drainwatch.core.advisor.balancers import PRESETS
from pytest_drainwatch.core.advisor.finding import Level
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.output import BROKEN
from tests.core.advisor.test_checks import ROWS, codes_in
from tests.docs.conftest import DOCS

PAGE = (DOCS / "advise.md").read_text(encoding="utf-8")
(MANIFEST,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(PRINTED,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_example_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = re.findall(r"^`drainwatch advise (.*)` prints:$", PAGE, re.MULTILINE)
    (tmp_path / "orders.yaml").write_text(MANIFEST)
    monkeypatch.chdir(tmp_path)
    assert main(["advise", *command.split()]) in (0, BROKEN)
    assert capsys.readouterr().out == PRINTED


def test_each_finding_has_its_row_with_its_levels() -> None:
    findings = PAGE.partition("## Every finding")[2]
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([a-z, ]+) \|", findings, re.MULTILINE))
    assert checks.__file__ is not None
    found = set(codes_in(Path(checks.__file__).parent)) | {
        "budget-selects-nothing",
        "not-related",
        "kind-skipped",
    }
    assert set(rows) == found
    for code, level, *_ in ROWS:
        assert str(level) in rows[code].split(", ")
    for levels in rows.values():
        assert set(levels.split(", ")) <= {str(level) for level in Level}


def test_each_assumed_number_is_the_one_of_the_page() -> None:
    for kind, balancer in PRESETS.items():
        (row,) = re.findall(rf"^\| `{kind}` \| (.*) \|$", PAGE, re.MULTILINE)
        for name in ("lag", "spread", "floor", "jitter"):
            number = getattr(balancer, name)
            shown = f"`--lb-{name}` {seconds(number.value)}" if number else f"`--lb-{name}`"
            assert (shown in row) == (number is not None)
            assert number is None or (number.assumed and number.origin in row)
