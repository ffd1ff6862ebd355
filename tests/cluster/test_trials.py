"""Real trials: real kubelet, kube-proxy and sockets; behaviour x trigger, outcomes asserted."""

from __future__ import annotations

import json

import jsonschema
import pytest

from pytest_drainwatch import App, Behavior, Mechanism, Role, Scenario, Trial, matrix
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch import report as reports
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.recording import loads

pytestmark = pytest.mark.cluster

# The window leaves a replacement pod time to start and to serve, on a busy machine too.
GRACE_S, DRAIN_S = 8, 5
LATE_NS = 1 * NS_PER_S
SHORT = Scenario(
    app=App(grace_period_s=GRACE_S, drain_ns=DRAIN_S * NS_PER_S), settle_ns=1 * NS_PER_S
)
# The behaviour is told by its delete, the trigger by its drain, and the dead end by exit-now.
PRODUCTS = {"exit-now-evict", "ignore-evict", "ignore-scale"}
# What a UDP path to a pod that is gone can look like (FACTS K3, K4, K13).
DEAD_END = {Mechanism.REFUSED, Mechanism.UNREACHABLE, Mechanism.SILENCE}


def tcp_ends(trial: Trial) -> list[tuple[int, int]]:
    flows = [f for f in trial.flows if f.proto == "tcp" and f.role is Role.TARGET]
    ends = [f.terminal_ns for f in flows if f.terminal_ns is not None]
    assert len(ends) == len(flows) == trial.scenario.flows.tcp
    return ends


def sigterm(trial: Trial) -> tuple[int, int]:
    found = trial.summary.trigger_to_sigterm_ns
    assert found is not None
    return found


def _sooner(scenario: Scenario) -> object:
    """Each behaviour and each trigger without ``slow``; of their products, not all."""
    marks = pytest.mark.slow if scenario.id in PRODUCTS else ()
    return pytest.param(scenario, marks=marks)


@pytest.mark.parametrize("scenario", [_sooner(s) for s in matrix(base=SHORT)])
def test_behaviour_by_trigger(trial: Trial) -> None:
    behavior, verb = trial.scenario.app.behavior, trial.scenario.trigger
    term = sigterm(trial)
    ends = tcp_ends(trial)
    if behavior is Behavior.DRAIN:
        assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: 10}
        assert trial.exit_codes == (0,)
        assert all(hi - term[0] >= DRAIN_S * NS_PER_S for _, hi in ends)
        assert all(lo - term[1] <= DRAIN_S * NS_PER_S + LATE_NS for lo, _ in ends)
    elif behavior is Behavior.EXIT_NOW:
        assert trial.tcp.mechanisms == {Mechanism.RST: 10}
        assert trial.exit_codes == (0,)
        assert all(lo - term[1] <= 200 * NS_PER_MS for lo, _ in ends)
    else:
        assert trial.tcp.severed == 10
        assert trial.exit_codes == (137,)
        assert all(hi >= GRACE_S * NS_PER_S for _, hi in ends)
        assert all(lo <= GRACE_S * NS_PER_S + LATE_NS for lo, _ in ends)
    # UDP: with a replacement the flows follow, without one they run into a dead end.
    assert trial.udp.severed == 10
    allowed = DEAD_END if verb is Verb.SCALE else {Mechanism.REHOMED, *DEAD_END}
    assert set(trial.udp.mechanisms) <= allowed
    if behavior is Behavior.DRAIN and verb is not Verb.SCALE:
        # A draining pod that fails readiness stops serving, so conntrack lets go of it (K3).
        assert trial.udp.mechanisms == {Mechanism.REHOMED: 10}
    _is_reproducible(trial)


def _is_reproducible(trial: Trial) -> None:
    written = (trial.folder / "report.json").read_text()
    again = derive(loads((trial.folder / "recording.jsonl").read_text()))
    assert reports.dumps(again) == written
    jsonschema.validate(json.loads(written), reports.schema("report"))


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(behavior=Behavior.EXIT_NOW, replicas=2, grace_period_s=GRACE_S),
            settle_ns=1 * NS_PER_S,
            name="two-replicas",
        )
    ],
)
def test_flows_of_another_replica_survive(trial: Trial) -> None:
    assert trial.tcp.mechanisms == {Mechanism.RST: 10}
    assert trial.summary.bystander_tcp.survived_window == trial.summary.bystander_tcp.total > 0
    targets = trial.report.trial.trigger.targets
    assert len(targets) == 1
    for flow in trial.flows:
        uid = flow.responders[0].partition("/")[0]
        assert (uid in targets) == (flow.role is Role.TARGET)


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(grace_period_s=2, drain_ns=8 * NS_PER_S),
            settle_ns=1 * NS_PER_S,
            name="window-longer-than-grace",
        )
    ],
)
def test_a_drain_window_longer_than_the_grace_period_is_cut_off(trial: Trial) -> None:
    assert trial.tcp.severed == 10
    assert trial.exit_codes == (137,)
    assert all(lo <= 2 * NS_PER_S + LATE_NS for lo, _ in tcp_ends(trial))
    assert "drain window" in trial.report.trial.flags[0]
