"""Triggers that reach a node, on a real kind cluster: pods evicted, a container killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kind.lab import Place
from tests.kind.test_real import pytest_run

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.alone]

SUITE = """
import pytest
from pytest_drainwatch import App, Behavior, Flows, Scenario
from pytest_drainwatch.core.interval import NS_PER_S

QUICK = Scenario(
    app=App(behavior=Behavior.EXIT_NOW, grace_period_s=3),
    flows=Flows(tcp=3, udp=3),
    settle_ns=2 * NS_PER_S,
)

@pytest.mark.parametrize("scenario", [
    Scenario(app=QUICK.app, flows=QUICK.flows, settle_ns=QUICK.settle_ns, trigger=trigger)
    for trigger in ("evacuate-node", "container-kill", "force-delete")
], ids=lambda scenario: scenario.id)
def test_quick(trial):
    assert trial.tcp.severed == 3
"""


def test_a_node_is_emptied_and_a_container_killed(kind_place: Place, tmp_path: Path) -> None:
    """kind's own pods are on the node as well: DaemonSets stay, and what else is there goes."""
    (tmp_path / "test_quick.py").write_text(SUITE)
    words = ["test_quick.py", "--dw-nodes", "2", "--cluster-name", "dw-triggers"]
    _, reports = pytest_run(kind_place, tmp_path, *words)
    found = {report["trial"]["trigger"]["verb"]: report["trial"] for report in reports}
    initiators = {verb: {end["initiator"] for end in t["pod_ends"]} for verb, t in found.items()}
    assert initiators == {
        "container-kill": {"container-kill"},
        "evacuate-node": {"evacuate-node"},
        "force-delete": {"force-delete"},
    }
    (killed,) = found["container-kill"]["pod_ends"]
    assert (killed["ended_by"], killed["exit_code"]) == ("killed-by-trigger", 137)
    told = [e for e in found["evacuate-node"]["timeline"] if e["event"] == "node_cordoned"]
    assert len(told) == 1
