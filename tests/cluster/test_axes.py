"""Axes of a scenario in real trials: controller, Service, what a draining probe accepts."""

from __future__ import annotations

import socket
import time
from dataclasses import replace

import pytest

from pytest_drainwatch import (
    Accept,
    Access,
    Affinity,
    App,
    Controller,
    Flows,
    Mechanism,
    Scenario,
    Service,
    TrafficPolicy,
    Trial,
)
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.standing import Standing
from pytest_drainwatch.workload import manifests
from pytest_drainwatch.workload.probe import apply

pytestmark = pytest.mark.cluster

FEW = Flows(tcp=3, udp=3, probe_interval_ns=None)
APP = App(grace_period_s=6, drain_ns=3 * NS_PER_S)
STATEFUL = App(grace_period_s=6, drain_ns=3 * NS_PER_S, controller=Controller.STATEFUL_SET)


def recorded(trial: Trial) -> tuple[Observation, ...]:
    return tuple(loads((trial.folder / "recording.jsonl").read_text()).observations)


def endpoints(trial: Trial) -> list[dict[str, object]]:
    """What slices said about the target from the trigger on, in order."""
    seen = recorded(trial)
    t0 = next(o.at.lo for o in seen if o.event is Event.TRIGGER_ACCEPTED)
    (target,) = trial.report.trial.trigger.targets
    return [
        endpoint
        for o in seen
        if o.event is Event.ENDPOINT_SLICE and o.at.hi > t0
        for endpoint in o.data["endpoints"]  # type: ignore[attr-defined]
        if endpoint["uid"] == target
    ]


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(app=STATEFUL, flows=FEW, settle_ns=NS_PER_S, name="stateful-delete"),
    ],
)
def test_a_stateful_pod_comes_back_under_its_name_as_somebody_else(trial: Trial) -> None:
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: 3}
    assert trial.exit_codes == (0,)
    (target,) = trial.report.trial.trigger.targets
    names = {o.subject: o.data["name"] for o in recorded(trial) if o.event is Event.POD}
    assert names[target] == "drainwatch-probe-0"
    # Its successor waits for it to be gone, and bears its name.
    frames = [o for o in recorded(trial) if o.event is Event.POD]
    gone = next(o.at for o in frames if o.subject == target and o.data["type"] == "DELETED")
    others = [o for o in frames if o.subject != target]
    assert all(o.data["name"] == "drainwatch-probe-0" for o in others)
    assert all(o.at.hi >= gone.lo for o in others)


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(
                grace_period_s=6,
                drain_ns=2 * NS_PER_S,
                controller=Controller.STATEFUL_SET,
                replicas=2,
            ),
            flows=FEW,
            settle_ns=NS_PER_S,
            trigger=Verb.SCALE,
            name="stateful-scale",
        ),
    ],
)
def test_a_stateful_set_is_scaled_to_zero_at_once(trial: Trial) -> None:
    assert trial.exit_codes == (0, 0)
    assert len(trial.report.trial.trigger.targets) == 2
    seen = recorded(trial)
    terms = [o.at.lo for o in seen if o.event is Event.SIGTERM_RECEIVED]
    assert len(terms) == 2
    assert max(terms) - min(terms) < 2 * NS_PER_S, "Parallel: none waits for the other's end"


@pytest.mark.slow  # case C44 tells the same from the report
@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=APP,
            flows=FEW,
            service=Service(publish_not_ready_addresses=True),
            settle_ns=NS_PER_S,
            name="published-not-ready",
        ),
    ],
)
def test_a_published_endpoint_stays_ready_while_it_terminates(trial: Trial) -> None:
    seen = endpoints(trial)
    assert any(e["terminating"] is True for e in seen), "the rest of its end is still told"
    assert any(e["serving"] is False for e in seen), "and that it failed its readiness probe"
    assert not [e for e in seen if e["ready"] is not True]
    assert trial.summary.sigterm_to_ready_false_ns is None


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=APP,
            flows=FEW,
            service=Service(external_traffic_policy=policy),
            settle_ns=NS_PER_S,
            name=f"policy-{policy.lower()}",
        )
        for policy in TrafficPolicy
    ],
)
def test_only_a_local_policy_shows_the_pod_who_asked(dw_probe: Standing) -> None:
    """kube-proxy hides the client's address of what it might have to lead to another node."""
    stage = dw_probe.stage
    source = stage.cluster.source_addresses[0]
    with socket.create_connection(
        (stage.cluster.node_address, dw_probe.way.tcp), timeout=5, source_address=(source, 0)
    ) as sock:
        sock.sendall(b"no request of ours\n")
        while sock.recv(100):  # it hangs up, and tells its log on whom
            pass
    deadline = time.monotonic() + 10
    told: list[str] = []
    while not told and time.monotonic() < deadline:
        time.sleep(0.05)
        told = [
            str(o.data["peer"])
            for o in stage.recorder.observations()
            if o.event is Event.TCP_LINE_REFUSED
        ]
    (peer,) = told
    local = stage.scenario.service.external_traffic_policy is TrafficPolicy.LOCAL
    assert (peer.split()[0].removeprefix("::ffff:") == source) is local


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(
                grace_period_s=6,
                drain_ns=3 * NS_PER_S,
                replicas=2,
                controller=Controller.DEPLOYMENT,
            ),
            flows=Flows(tcp=4, udp=0, probe_interval_ns=None),
            service=Service(session_affinity=Affinity.CLIENT_IP),
            settle_ns=NS_PER_S,
            name="pinned",
        ),
    ],
)
def test_a_pinned_clients_flows_all_lead_to_the_pod_that_is_terminated(trial: Trial) -> None:
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: 4}
    assert trial.summary.bystander_tcp.total == 0, "affinity leaves nobody for the other pod"


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(grace_period_s=6, drain_ns=3 * NS_PER_S, accept_on_drain=Accept.KEEP),
            flows=FEW,
            settle_ns=NS_PER_S,
            name="keeps-accepting",
        ),
    ],
)
def test_a_probe_that_keeps_accepting_stops_when_its_window_ends(trial: Trial) -> None:
    seen = {o.event: o.at.lo for o in recorded(trial) if o.subject in _targets(trial)}
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: 3}
    assert seen[Event.STOPPED_ACCEPTING] - seen[Event.DRAIN_STARTED] >= 3 * NS_PER_S


def _targets(trial: Trial) -> tuple[str, ...]:
    return trial.report.trial.trigger.targets


@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize("affinity", list(Affinity))
@pytest.mark.parametrize("scenario", [Scenario(name="applied")])
def test_the_api_server_takes_every_service_and_tells_where_it_answers(
    dw_namespace: Stage, access: Access, affinity: Affinity
) -> None:
    stage = dw_namespace
    service = Service(access=access, session_affinity=affinity, publish_not_ready_addresses=True)
    ports = apply(stage.api, stage.place, replace(stage.scenario, service=service), stage.image)
    made = stage.api.core.read_namespaced_service(manifests.NAME, stage.namespace).spec
    assert (made.session_affinity, made.publish_not_ready_addresses) == (affinity, True)
    if access is Access.CLUSTER_IP:
        assert (made.type, ports.address) == ("ClusterIP", made.cluster_ip)
        assert (ports.tcp, ports.udp) == (manifests.TCP_PORT, manifests.UDP_PORT)
    elif access is Access.LOAD_BALANCER:
        assert (made.type, ports.address) == ("LoadBalancer", None)
        assert (ports.tcp, ports.udp) == (manifests.TCP_PORT, manifests.UDP_PORT)
    else:
        assert (made.type, ports.address) == ("NodePort", None)
        assert {ports.tcp, ports.udp} == {port.node_port for port in made.ports}
