"""The node's network as text: where new connections are led, and what holds on to old ones."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pytest_drainwatch import report as reports
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.mechanism.evidence import CONCLUDES, FlowEvidence
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.mechanism.rules import Effect
from pytest_drainwatch.core.mechanism.snapshot import Snapshot
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.render.network import network, stale
from pytest_drainwatch.render.terminal import show
from tests.core import story as s
from tests.core.test_mechanism_evidence import (
    NEW_IP,
    OLD_IP,
    REJECTS,
    conntrack,
    entry,
    proxy,
    slice_of,
)
from tests.core.trials import recording_of

LEADS_TO_NEW = (
    "-A KUBE-NODEPORTS -p udp -m udp --dport 30257 -j KUBE-EXT-X",
    "-A KUBE-EXT-X -j KUBE-SVC-X",
    "-A KUBE-SVC-X -j KUBE-SEP-N",
    f"-A KUBE-SEP-N -p udp -m udp -j DNAT --to-destination {NEW_IP}:7002",
)


def flow(name: str, port: int, until: float = 5000) -> list[Observation]:
    ends = {"local": f"198.18.0.1:{port}", "remote": "198.18.0.8:30257", "proto": name[:3]}
    connected = s.client(Event.FLOW_CONNECTED, name, s.at(-5000, -4999), **ends)
    return [connected, *s.alive(name, until)[1:]]


def trial(*looks: Observation, flows: int = 2) -> Report:
    """UDP flows from ports 5000 and up, all answered by the old pod until it exits."""
    opened = [each for n in range(flows) for each in flow(f"udp-{n + 1:04d}", 5000 + n)]
    homes = slice_of(-5900, (s.OLD, OLD_IP))
    return derive(s.recording([s.accepted()], [homes], opened, s.cluster(), looks))


def rows(report: Report) -> list[str]:
    """The lines of the part, each blank of one width."""
    return [" ".join(line.split()) for line in network(report.trial)]


def held(occasion: Occasion, ms: float, ports: range | tuple[int, ...]) -> Observation:
    """A look that finds entries of flows from these ports, all led to the old pod."""
    return conntrack(occasion, ms, *(entry(OLD_IP, sport=port) for port in ports))


def test_what_was_held_at_each_look_and_what_it_did_to_the_flows() -> None:
    told = trial(
        held(Occasion.TRIGGER, -30, range(5000, 5010)),
        proxy(Occasion.TRIGGER, -15),
        held(Occasion.AFTER_EXIT, 10_300, range(5000, 5010)),
        proxy(Occasion.AFTER_EXIT, 10_315, REJECTS),
        flows=10,
    )
    assert rows(told) == [
        "NETWORK",
        "LOOK AT CONNTRACK ENTRIES KUBE-PROXY LEADS NEW CONNECTIONS TO",
        "trigger -30 to -5 ms 10 no rule",
        "exit+5s 10.30–10.33 s 10 tcp: no rule; udp: rejected",
        "",
        "FLOWS LOOK CONNTRACK LED THEM TO",
        "udp-0001 … udp-0010 (10) trigger the living pod pod-uid-old",
        "udp-0001 … udp-0010 (10) exit+5s the dead pod pod-uid-old, at least 5.1 s after its exit: "
        "stale DNAT",
        "",
    ]
    assert stale(told.trial.flows) == (
        "at exit+5s conntrack led 10 udp flow(s) to a pod that had ended (stale DNAT)"
    )


def test_it_stands_before_the_timeline_and_only_if_somebody_looked() -> None:
    lines = show(trial(held(Occasion.TRIGGER, -30, (5000, 5001)))).splitlines()
    assert lines.index("NETWORK") < lines.index("TIMELINE")
    nobody = derive(recording_of(Scenario()))
    assert network(nobody.trial) == []
    assert "NETWORK" not in show(nobody)
    assert stale(nobody.trial.flows) is None


def test_a_cluster_that_cannot_be_looked_into_is_one_line() -> None:
    blind = conntrack(Occasion.TRIGGER, -30, problem="only an embedded cluster can")
    blind = replace(blind, data={k: v for k, v in blind.data.items() if k != "entries"})
    assert rows(trial(blind)) == ["NETWORK", "not looked into: only an embedded cluster can", ""]


def test_a_look_that_failed_in_part_says_in_which() -> None:
    told = rows(
        trial(
            held(Occasion.TRIGGER, -30, (5000, 5001)),
            replace(
                proxy(Occasion.TRIGGER, -15),
                data={"occasion": "trigger", "mode": "ipvs", "problem": "ipvs is not read"},
            ),
        )
    )
    assert "trigger -30 to -5 ms 2 not read" in told
    assert "trigger: ipvs is not read" in told


def test_new_connections_are_led_to_pods_by_name_where_it_is_known() -> None:
    opened = [
        *flow("udp-0001", 5000),
        s.responder("udp-0001", s.NEW, 5200, 5201, previous=s.OLD),
        s.answered("udp-0001", s.NEW, 5201, 59_000, seqs=(200, 900)),
    ]
    looks = [
        conntrack(Occasion.EXIT, 5250, entry(NEW_IP)),
        proxy(Occasion.EXIT, 5260, *LEADS_TO_NEW),
    ]
    homes = [slice_of(-5900, (s.OLD, OLD_IP)), slice_of(5000, (s.NEW, NEW_IP))]
    told = derive(s.recording([s.accepted()], homes, opened, s.cluster(), looks))
    unnamed = rows(told)
    assert f"exit 5.25–5.27 s 1 tcp: no rule; udp: {NEW_IP}" in unnamed
    assert f"udp-0001 exit the living pod {NEW_IP} (uid {s.NEW})" in unnamed
    (ended,) = told.trial.pod_ends
    known = (ended, replace(ended, pod_uid=s.NEW, pod="drainwatch-probe-6777cfb759-g5dcz"))
    named = rows(replace(told, trial=replace(told.trial, pod_ends=known)))
    assert "exit 5.25–5.27 s 1 tcp: no rule; udp: …g5dcz" in named
    assert "udp-0001 exit the living pod …g5dcz" in named


def test_names_whose_ends_are_alike_stay_whole() -> None:
    told = trial(held(Occasion.TRIGGER, -30, (5000, 5001)))
    (ended,) = told.trial.pod_ends
    alike = tuple(
        replace(ended, pod_uid=uid, pod=f"{name}-0")
        for uid, name in ((s.OLD, "a-quite-long-name-of-one"), (s.NEW, "a-quite-long-name-of-two"))
    )
    whole = replace(told.trial, pod_ends=alike, windows=(), container_exits=())
    assert any("the living pod a-quite-long-name-of-one-0" in line for line in network(whole))
    single = replace(whole, pod_ends=alike[:1])
    assert any("the living pod …0" in line for line in network(single))


def test_a_name_that_two_pods_had_names_neither() -> None:
    told = trial(held(Occasion.TRIGGER, -30, (5000, 5001)))
    (ended,) = told.trial.pod_ends
    both = tuple(replace(ended, pod_uid=uid, pod="probe-0") for uid in (s.OLD, s.NEW))
    again = replace(told.trial, pod_ends=both, windows=(), container_exits=())
    assert any(f"the living pod {OLD_IP} (uid {s.OLD})" in line for line in network(again))
    once = replace(again, pod_ends=both[:1])
    assert any(line.endswith("the living pod probe-0") for line in network(once))


def test_stale_is_told_of_the_last_look_that_saw_it() -> None:
    told = trial(
        held(Occasion.EXIT, 5300, (5000, 5001)),
        held(Occasion.AFTER_EXIT, 10_300, (5001,)),
        held(Occasion.END, 11_000, ()),
    )
    assert stale(told.trial.flows) == (
        "at exit+5s conntrack led 1 udp flow(s) to a pod that had ended (stale DNAT)"
    )


def effect(*endpoints: str, port: int = 7002, rejects: bool = False, drops: bool = False) -> Effect:
    return Effect(proto="udp", port=port, endpoints=endpoints, rejects=rejects, drops=drops)


@pytest.mark.parametrize(
    ("rules", "led"),
    [
        ((effect("10.0.0.1"), effect("10.0.0.1", port=30257)), "10.0.0.1"),
        ((effect("10.0.0.1", "10.0.0.2"),), "10.0.0.1, 10.0.0.2"),
        ((effect(drops=True),), "dropped"),
        ((effect(rejects=True),), "rejected"),
        ((effect("10.0.0.1", drops=True),), "10.0.0.1 or dropped"),
        ((effect(),), "nowhere"),
        (
            (effect("10.0.0.1"), effect(port=30257, drops=True)),
            "port 7002 to 10.0.0.1, port 30257 to dropped",
        ),
        ((), "no rule"),
        (None, "not read"),
    ],
)
def test_what_rules_do(rules: tuple[Effect, ...] | None, led: str) -> None:
    tcp = tuple(replace(rule, proto="tcp") for rule in rules or ())
    look = Snapshot(
        occasion=Occasion.EXIT,
        at_ns=(0, 0),
        conntrack_entries=0,
        proxy_mode="iptables",
        rules=None if rules is None else (*tcp, *rules),
    )
    told = derive(recording_of(Scenario())).trial
    assert network(replace(told, mechanism=(look,)))[2].endswith(f"   0  {led}")


def test_flows_are_folded_by_what_is_said_at_which_looks() -> None:
    told = rows(
        trial(
            held(Occasion.TRIGGER, -30, range(5000, 5006)),
            held(Occasion.READY_FALSE, 30, range(5000, 5006)),
            held(Occasion.EXIT, 5300, (5000, 5002, 5003, 5004)),
            flows=6,
        )
    )
    assert told[told.index("FLOWS LOOK CONNTRACK LED THEM TO") + 1 :] == [
        "udp-0001 … udp-0006 (6) trigger, ready-false the living pod pod-uid-old",
        "udp-0001 and 3 more exit the dead pod pod-uid-old, at least 0.1 s after its exit: "
        "stale DNAT",
        "udp-0002, udp-0006 exit no entry; what kube-proxy does with new connections could not "
        "be read",
        "",
    ]


def piece(occasion: Occasion, says: str, *, dead: bool | None, **fields: object) -> FlowEvidence:
    known: dict[str, object] = {"to": OLD_IP, "to_pod": s.OLD, "state": None, **fields}
    return FlowEvidence(occasion=occasion, at_ns=(0, 0), stale=dead, says=says, **known)  # type: ignore[arg-type]


def test_of_many_lines_the_most_telling_are_shown_in_order() -> None:
    told = trial(held(Occasion.TRIGGER, -30, (5000,)))
    first = told.trial.flows[0]
    usual = [piece(Occasion.TRIGGER, f"living {n}", dead=False) for n in range(5)]
    over = [piece(Occasion.EXIT, f"over {n}", dead=False, state="TIME_WAIT") for n in range(5)]
    moved = [piece(Occasion.EXIT, f"moved {n}", dead=False) for n in range(3)]
    gone = [piece(Occasion.AFTER_EXIT, f"stale {n}", dead=True) for n in range(5)]
    flows = tuple(
        replace(first, id=f"udp-{n:04d}", evidence=(each,))
        for n, each in enumerate([*usual, *over, *moved, *gone])
    )
    lines = rows(replace(told, trial=replace(told.trial, flows=flows)))
    said = lines[lines.index("FLOWS LOOK CONNTRACK LED THEM TO") + 1 : -1]
    assert [line.split(" ", 2)[2] for line in said[:-1]] == [
        *(f"living {n}" for n in range(2)),
        *(f"moved {n}" for n in range(3)),
        *(f"stale {n}" for n in range(5)),
    ]
    assert said[-1] == "… 8 more: see each flow's `evidence` in report.json"
    assert len(lines) <= 20


def test_transports_are_told_apart_and_tcp_comes_first() -> None:
    told = trial(held(Occasion.TRIGGER, -30, (5000,)))
    first = told.trial.flows[0]
    same = (piece(Occasion.EXIT, "conntrack led it to nobody", dead=True),)
    flows = tuple(
        replace(first, id=f"{proto}-0001", proto=proto, evidence=same)
        for proto in (Proto.UDP, Proto.TCP)
    )
    lines = rows(replace(told, trial=replace(told.trial, flows=flows)))
    assert lines[-3:-1] == ["tcp-0001 exit nobody", "udp-0001 exit nobody"]
    assert stale(flows) == (
        "at exit conntrack led 1 tcp and 1 udp flow(s) to a pod that had ended (stale DNAT)"
    )


def test_who_refused_is_said_shortly_and_an_address_is_not_taken_for_a_longer_one() -> None:
    told = trial(held(Occasion.TRIGGER, -30, (5000,)))
    first = told.trial.flows[0]
    longer = f"{OLD_IP}1"
    said = (
        piece(Occasion.EXIT, f"conntrack led it to {OLD_IP} (uid {s.OLD}); {CONCLUDES}", dead=True),
        piece(Occasion.AFTER_EXIT, f"no entry; leads to {OLD_IP}, {longer}", dead=None, to=None),
    )
    lines = rows(replace(told, trial=replace(told.trial, flows=(replace(first, evidence=said),))))
    assert lines[-3] == "udp-0001 exit pod-uid-old; the pod's own kernel refused it"
    assert lines[-2] == f"udp-0001 exit+5s no entry; leads to pod-uid-old, {longer}"


def test_a_report_of_before_there_were_looks_shows_all_the_rest() -> None:
    told = trial(held(Occasion.TRIGGER, -30, (5000, 5001)))
    older = json.loads(reports.dumps(told))
    for name in ("mechanism", "new_connections", "windows", "integrity", "degraded", "pod_ends"):
        del older["trial"][name]
    for each in older["trial"]["flows"]:
        del each["evidence"]
    text = show(reports.loads(json.dumps(older)))
    assert [line for line in text.splitlines() if line.isupper() and line[0] != " "] == [
        "SUMMARY",
        "TIMELINE",
        "FLOWS",
    ]
