"""docs/servers.md tells of every real server's scenario, and of no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/servers.md"
SCENARIOS = ROOT / "scenarios/test_real_servers.py"


def test_each_scenario_has_its_answer() -> None:
    asked = set(re.findall(r"^def (test_\w+)", SCENARIOS.read_text(), re.MULTILINE))
    told = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    assert told == asked


def test_the_manifests_that_it_names_are_there() -> None:
    named = set(re.findall(r"`(\w+\.yaml)`", PAGE.read_text()))
    assert named == {path.name for path in (ROOT / "scenarios/servers").glob("*.yaml")}
