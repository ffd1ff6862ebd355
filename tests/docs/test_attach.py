"""The page about workloads of the user's own says what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from pytest_drainwatch.cli import build_parser
from pytest_drainwatch.options import OPTIONS
from tests.docs.conftest import DOCS

PAGE = (DOCS / "attach.md").read_text()
PACKAGE = Path(__file__).resolve().parents[2] / "pytest_drainwatch"


def test_every_check_that_it_names_is_made() -> None:
    table = PAGE.partition("## What must hold")[2].partition("## What is known")[0]
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", table))
    assert named >= {"workload-found", "service-found", "address-reachable", "target-reached"}
    code = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    assert {name for name in named if f'name="{name}"' not in code} == set()


def test_every_command_that_it_shows_can_be_typed() -> None:
    typed = [line.strip() for line in PAGE.splitlines() if line.startswith("    drainwatch attach")]
    assert len(typed) == 3
    for line in typed:
        assert build_parser().parse_args(shlex.split(line)[1:]).workload


def test_every_option_that_it_names_is_one() -> None:
    options = {f"--dw-{option.name}" for option in OPTIONS}
    named = set(re.findall(r"--dw-[a-z-]+", PAGE))
    assert "--dw-attach" in named
    assert named <= options
