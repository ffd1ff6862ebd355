"""When the trigger comes, and what the flows are told of it, while others start pods here."""

from __future__ import annotations

import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch import terminating
from pytest_drainwatch.beside import Beside
from pytest_drainwatch.cluster.embedded.starts import DEPLOYMENTS
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.plan import BEFORE_NS
from pytest_drainwatch.core.scenario import Scenario
from tests.conductor.test_interrupts import stage


class Told:
    """A flow agent that keeps the plans that it is told."""

    def __init__(self) -> None:
        self.plans: list[tuple[list[Interval], int | None]] = []

    def plan(self, dense: Any, trigger_ns: int | None = None) -> None:
        self.plans.append((list(dense), trigger_ns))


@pytest.mark.parametrize("beside", [0, 1], ids=["nobody", "another one at work"])
def test_the_last_plan_is_around_the_trigger_where_two_may_start_pods_at_once(
    beside: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on four cores: others have a turn, and ours comes at once."""
    monkeypatch.setenv("DW_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(DEPLOYMENTS, "at_once", lambda: 2)
    monkeypatch.setattr(
        terminating,
        "watch_until",
        lambda stage, watch, agent, until_ns, *_: time.sleep(
            max(0, until_ns - time.monotonic_ns()) / 1e9
        ),
    )
    trial = stage(tmp_path)
    trial.scenario = Scenario(settle_ns=BEFORE_NS + 100 * NS_PER_MS)
    here: Any = SimpleNamespace(provider="embedded", hasten=nullcontext)
    trial.cluster = here
    agent, fired = Told(), []
    armed: Any = SimpleNamespace(fire=lambda **_: fired.append(time.monotonic_ns()))
    evidence: Any = SimpleNamespace(before_trigger=lambda: None)
    held: Any = SimpleNamespace(probe=SimpleNamespace(stage=trial, watch=None), agent=agent)
    with ExitStack() as turn:
        for _ in range(beside):
            turn.enter_context(DEPLOYMENTS.turn(lambda _: None))
        terminating.terminate(held, armed, evidence, Beside(trial), turn)
    trial.recorder.close()
    dense, trigger_ns = agent.plans[-1]
    assert trigger_ns is not None, "HTTP requests are planned around it"
    assert 0 <= fired[0] - trigger_ns < 200 * NS_PER_MS
    assert dense, "flows send densely around the trigger"
    assert dense[0].lo == trigger_ns - BEFORE_NS
