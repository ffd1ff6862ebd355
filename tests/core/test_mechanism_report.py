"""The looks in a whole report: snapshots of the trial, evidence of each flow."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch import report as reports
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.observation import Event, Observation, Source
from tests.core import story as s
from tests.core.test_mechanism_evidence import OLD_IP, REJECTS, conntrack, entry, proxy, slice_of

UDP, OTHER = "udp-0001", "udp-0002"


def flow(name: str, local: str) -> list[Observation]:
    connected = s.client(
        Event.FLOW_CONNECTED, name, s.at(-5000, -4999), local=local, remote="198.18.0.8:30257"
    )
    return [connected, *s.alive(name, 5000)[1:], s.unanswered(name, 5050, 59_000, 100, end=60_000)]


def judged(*looks: Observation) -> TrialReport:
    recording = s.recording(
        [s.accepted()],
        [slice_of(-5900, (s.OLD, OLD_IP))],
        flow(UDP, "198.18.0.1:5000"),
        flow(OTHER, "198.18.0.1:5001"),
        s.cluster(),
        looks,
    )
    return derive(recording).trial


LOOKS = (
    conntrack(Occasion.TRIGGER, -20, entry(OLD_IP), entry(OLD_IP, sport=5001)),
    proxy(Occasion.TRIGGER, -10),
    conntrack(Occasion.AFTER_EXIT, 10_300, entry(OLD_IP)),
    proxy(Occasion.AFTER_EXIT, 10_310, REJECTS),
)


def test_each_flow_has_its_own_evidence() -> None:
    trial = judged(*LOOKS)
    assert [each.occasion for each in trial.mechanism] == [Occasion.TRIGGER, Occasion.AFTER_EXIT]
    assert [each.conntrack_entries for each in trial.mechanism] == [2, 1]
    led, absent = trial.flows
    assert (led.id, absent.id) == (UDP, OTHER)
    assert [(e.to_pod, e.stale) for e in led.evidence] == [(s.OLD, False), (s.OLD, True)]
    assert [e.to for e in absent.evidence] == [OLD_IP, None]
    assert absent.evidence[1].says == "no entry; kube-proxy rejects new connections"


def test_evidence_changes_no_verdict() -> None:
    with_looks, without = judged(*LOOKS), judged()
    assert without.mechanism == ()
    assert {flow.evidence for flow in without.flows} == {()}
    assert [(f.outcome, f.mechanism, f.terminal_ns) for f in with_looks.flows] == [
        (f.outcome, f.mechanism, f.terminal_ns) for f in without.flows
    ]
    assert with_looks.summary == without.summary
    assert with_looks.timeline == without.timeline


def test_a_report_is_read_back_whole_and_an_older_one_without_looks() -> None:
    report = derive(s.recording([s.accepted()], flow(UDP, "198.18.0.1:5000"), s.cluster(), LOOKS))
    assert reports.loads(reports.dumps(report)) == report
    older = json.loads(reports.dumps(report))
    del older["trial"]["mechanism"]
    for each in older["trial"]["flows"]:
        del each["evidence"]
    read = reports.loads(json.dumps(older))
    assert read.trial.mechanism == ()
    assert read.trial.flows[0].evidence == ()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["", "udp", "iptables", OLD_IP]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(list(entry(OLD_IP))), inner, max_size=3)
    ),
    max_leaves=6,
)
ODD = st.fixed_dictionaries(
    {"occasion": st.sampled_from(["trigger", "exit", "never", None])},
    optional=dict.fromkeys(("entries", "rules", "mode", "left_out", "problem"), JSON),
)


@given(st.lists(st.tuples(st.sampled_from([Event.CONNTRACK, Event.PROXY_RULES]), ODD), max_size=4))
def test_odd_looks_are_read_as_far_as_they_go(odd: list[tuple[Event, dict[str, object]]]) -> None:
    looks = [
        Observation(source=Source.NODE, event=event, at=s.at(5, 6), data=data)
        for event, data in odd
    ]
    trial = judged(*looks)
    assert len(trial.mechanism) == len(
        {str(data["occasion"]) for _, data in odd} & {"trigger", "exit"}
    )


def test_sockets_that_are_none() -> None:
    for local in ("", "5000", "198.18.0.1:", "198.18.0.1:http", "198.18.0.1:" + "5" * 5000):
        recording = s.recording(
            [s.accepted()],
            flow(UDP, local),
            s.cluster(),
            [conntrack(Occasion.EXIT, 9, entry(OLD_IP))],
        )
        assert derive(recording).trial.flows[0].evidence == ()
