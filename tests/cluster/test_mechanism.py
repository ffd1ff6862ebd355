"""What a real node's kernel and kube-proxy held at the moments that matter (K2–K4, M11)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_drainwatch import App, Flows, Mechanism, Scenario, Trial
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.jsonvalue import objects, texts
from pytest_drainwatch.core.mechanism.evidence import CONCLUDES, LACKS_IT, FlowEvidence
from pytest_drainwatch.core.mechanism.occasion import AFTER_EXIT_S, Occasion
from pytest_drainwatch.core.mechanism.snapshot import Snapshot
from pytest_drainwatch.core.observation import Source
from pytest_drainwatch.core.recording import dump_observation, loads
from pytest_drainwatch.core.scenario import ClusterNeeds, ProxyMode

pytestmark = pytest.mark.cluster

# Leaves a replacement time to start, on a busy machine too.
DRAIN_S = 5
FLOWS = 3


def scenario(mode: ProxyMode, verb: Verb) -> Scenario:
    return Scenario(
        app=App(drain_ns=DRAIN_S * NS_PER_S, grace_period_s=DRAIN_S + 3),
        flows=Flows(tcp=FLOWS, udp=FLOWS, udp_rate_hz=20),
        cluster=ClusterNeeds(kube_version="1.37", proxy_mode=mode),
        trigger=verb,
        settle_ns=1 * NS_PER_S,
        # Longer than the look after the exit takes to come, on a busy machine too.
        observe_timeout_ns=(DRAIN_S + AFTER_EXIT_S + 10) * NS_PER_S,
        name=f"mechanism-{mode}-{verb}",
    )


def snapshots(trial: Trial) -> dict[Occasion, Snapshot]:
    found = {each.occasion: each for each in trial.report.trial.mechanism}
    assert [each.problem for each in found.values()] == [None] * len(found)
    return found


def endpoints(snapshot: Snapshot) -> set[tuple[str, ...]]:
    assert snapshot.rules is not None
    assert len(snapshot.rules) == 4, "TCP and UDP, by ClusterIP and by node port"
    return {effect.endpoints for effect in snapshot.rules}


def evidence(trial: Trial, proto: str, occasion: Occasion) -> Sequence[FlowEvidence]:
    found = [
        piece
        for flow in trial.flows
        if flow.proto == proto
        for piece in flow.evidence
        if piece.occasion is occasion
    ]
    assert len(found) == FLOWS
    return found


@pytest.mark.parametrize(
    "scenario",
    [
        # Of iptables test_udp_dead_end tells the same.
        pytest.param(scenario(ProxyMode.IPTABLES, Verb.SCALE), marks=pytest.mark.slow),
        scenario(ProxyMode.NFTABLES, Verb.SCALE),
    ],
)
def test_udp_of_the_last_pod_is_led_to_a_dead_one(trial: Trial) -> None:
    """K3: 1.37 does not clean up behind a NodePort without endpoints, in either mode."""
    seen = snapshots(trial)
    assert list(seen) == [
        Occasion.TRIGGER, Occasion.READY_FALSE, Occasion.EXIT, Occasion.AFTER_EXIT
    ]  # fmt: skip
    (pod,) = trial.report.trial.trigger.targets
    ((address,),) = endpoints(seen[Occasion.TRIGGER])
    before = seen[Occasion.TRIGGER]
    assert before.at_ns[0] < 0 < before.at_ns[1] + 1 * NS_PER_S
    last = seen[Occasion.AFTER_EXIT]
    assert endpoints(last) == {()}
    assert last.rules is not None
    assert all(effect.rejects and not effect.drops for effect in last.rules)
    for piece in evidence(trial, "udp", Occasion.TRIGGER):
        assert (piece.to, piece.to_pod, piece.stale) == (address, pod, False)
    for piece in evidence(trial, "udp", Occasion.AFTER_EXIT):
        assert (piece.to, piece.to_pod, piece.stale) == (address, pod, True)
        assert piece.says.endswith("stale DNAT")
    # TCP is led there as well, but it is over: its pod closed it before it ended.
    for piece in evidence(trial, "tcp", Occasion.AFTER_EXIT):
        assert piece.stale is not True
    for flow in trial.flows:
        refused_by_the_pod = any(CONCLUDES in piece.says for piece in flow.evidence)
        assert refused_by_the_pod is (flow.mechanism is Mechanism.REFUSED)


@pytest.mark.parametrize(
    "scenario",
    [
        scenario(ProxyMode.IPTABLES, Verb.DELETE),
        # The rules of nftables are read after the scale above.
        pytest.param(scenario(ProxyMode.NFTABLES, Verb.DELETE), marks=pytest.mark.slow),
    ],
)
def test_rules_and_udp_flows_move_to_the_replacement(trial: Trial) -> None:
    seen = snapshots(trial)
    (old,) = trial.report.trial.trigger.targets
    ((before,),) = endpoints(seen[Occasion.TRIGGER])
    last = trial.report.trial.mechanism[-1].occasion
    ((after,),) = endpoints(seen[last])
    assert last in (Occasion.END, Occasion.AFTER_EXIT)
    assert before != after
    for piece in evidence(trial, "udp", Occasion.TRIGGER):
        assert (piece.to, piece.to_pod, piece.stale) == (before, old, False)
    for piece in evidence(trial, "udp", last):
        assert piece.to == after
        assert piece.to_pod not in (old, None)
        assert piece.stale is not True  # after the last look nothing is asked of the pod any more
    for piece in evidence(trial, "tcp", Occasion.TRIGGER):
        assert (piece.to, piece.state, piece.stale) == (before, "ESTABLISHED", False)
    for piece in evidence(trial, "tcp", last):
        assert piece.to in (before, None)
        assert piece.stale is not True
    assert not [p for flow in trial.flows for p in flow.evidence if p.says == LACKS_IT]
    sending = trial.report.trial.sending
    # Off the hot path: flows kept their schedule while the node was looked at four times.
    assert (sending.missed_slots or 0) * 100 <= (sending.sends or 0)
    _holds_no_others_connections(trial)


def _holds_no_others_connections(trial: Trial) -> None:
    """The API server's connections and Service are the node's too, and nobody's business."""
    recording = loads((trial.folder / "recording.jsonl").read_text())
    looks = [seen for seen in recording.observations if seen.source is Source.NODE]
    assert len(looks) >= 6
    for seen in looks:
        assert len(dump_observation(seen)) < 10_000
        ports = {entry["dport"] for entry in objects(seen.data.get("entries"))}
        assert len(ports) in (0, 2), "TCP's and UDP's node port"
        assert not any("default/kubernetes" in rule for rule in texts(seen.data.get("rules")))
