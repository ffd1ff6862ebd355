"""A trial that leaves something changed is void, and its recording says what and how to mend it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch import trial as conductor
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.core.scenario import Scenario, Trigger
from pytest_drainwatch.trigger import undoing
from pytest_drainwatch.workload import probe
from tests.conductor.api_server import serving
from tests.conductor.test_evacuation import TARGET, WEB, Node
from tests.conductor.test_interrupts import stage


def test_a_node_that_stays_cordoned_voids_the_trial_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(WEB)
    monkeypatch.setattr(undoing, "PAUSE_S", 0.0)
    monkeypatch.setattr(conductor, "_evidence", lambda _: nullcontext())
    monkeypatch.setattr(conductor, "observe", lambda *_: None)
    monkeypatch.setattr(probe, "evidence", lambda *_: iter(()))

    def terminate(_: object, armed: Any, *__: object) -> Any:
        accepted = armed.fire(timeout_s=5)
        assert node.unschedulable
        node.broken = lambda call: call.method == "PATCH"
        return accepted

    monkeypatch.setattr(conductor, "terminate", terminate)
    with serving(node, tmp_path) as (api, _):
        trial = stage(tmp_path)
        there: Any = SimpleNamespace(provider="existing")
        trial.cluster = there
        trial.api, trial.scenario = api, Scenario(trigger=Trigger.EVACUATE_NODE)
        held: Any = SimpleNamespace(
            probe=SimpleNamespace(stage=trial, watch=None, target=TARGET), agent=None
        )
        with pytest.raises(conductor.TrialVoid, match=r"void in phase 'put back': .*uncordon n1"):
            conductor.measure(held)
    last = loads((tmp_path / "recording.jsonl").read_text()).observations[-1]
    assert last.event is Event.VOID
    assert last.data["phase"] == "put back"
    assert "kubectl uncordon n1" in str(last.data["reason"])
    assert not (tmp_path / "report.json").exists()
