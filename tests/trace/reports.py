"""Reports to draw: those of the sample, and made ones."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pytest_drainwatch import report
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.scenario import App, Behavior, Scenario
from tests.core import trials

SAMPLE = Path(__file__).resolve().parents[2] / "results" / "sample"


def sample_paths() -> list[Path]:
    """Every report of the sample, both versions of Kubernetes."""
    return sorted(SAMPLE.glob("*/*/r*/report.json"))


@cache
def sample(arm: str, version: str = "1.37") -> Report:
    """The first repeat of an arm, such as ``B-drain-delete``."""
    path = SAMPLE / f"kubernetes-{version}" / arm / "r00" / "report.json"
    return report.loads(path.read_text(encoding="utf-8"))


def made(behavior: Behavior) -> Report:
    """A small hand-made one."""
    return derive(trials.recording_of(Scenario(app=App(behavior=behavior))))
