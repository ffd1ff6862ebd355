"""What a trial says, and the input that must make it say something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
from pytest_drainwatch.core.http.document import FailingRequests, KindRequests, Requests
from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.render.page.data import Trial
from pytest_drainwatch.render.page.trial import trial
from tests.core import story as s
from tests.core.tries import prober, tries
from tests.page.shape import check_trial

CONFIG: Mapping[str, object] = {
    "drain_behavior": "drain",
    "drain_max_seconds": 5.0,
    "grace_period_seconds": 10,
    "replicas": 1,
    "probe_interval_ms": 5.0,
}
TCP, UDP = "tcp-0001", "udp-0001"
SIGTERM = s.log(Event.SIGTERM_RECEIVED, 40)
Seen = Iterable[Observation]


def measured(*seen: Seen, config: Mapping[str, object] | None = None) -> Report:
    whole = {**CONFIG, **(config or {})}
    return derive(s.recording([s.accepted()], s.cluster(0, 5200), *seen, config=whole))


def shown(report: Report) -> Trial:
    found = trial(report)
    check_trial(found)
    return found


def drained(flow: str = TCP) -> Seen:
    return [
        *s.alive(flow, 5039),
        s.client(Event.FLOW_ANNOUNCED, flow, s.at(5040, 5041), seq=100, reason="drain-deadline"),
        s.client(Event.FLOW_FIN, flow, s.at(5040, 5041)),
    ]


def reset(flow: str = TCP) -> Seen:
    return [
        *s.alive(flow, 40),
        s.client(Event.FLOW_RESET, flow, s.at(41, 42), errno="ECONNRESET"),
    ]


def ended(flow: str, **counts: int) -> Observation:
    data = {"sent": 200, "answered": 200, "unanswered": 0, "late": 0, "reordered": 0}
    return s.client(
        Event.FLOW_OPEN_AT_END, flow, s.at(60_000),
        **{**data, "duplicates": 0, "last_seq": 200, "unsent": 0, **counts},
    )  # fmt: skip


def survived(flow: str) -> Seen:
    return [*s.alive(flow, 59_900), ended(flow)]


def moved(*, lost: int) -> Seen:
    losses = [s.unanswered(UDP, 3_016, 3_116, lost)] if lost else []
    return [
        *s.alive(UDP, 3_000),
        *losses,
        s.responder(UDP, s.NEW, 3_130, 3_131, s.OLD),
        s.answered(UDP, s.NEW, 3_130, 59_900, (101 + lost, 200)),
        ended(UDP, answered=200 - lost, unanswered=lost),
    ]


def never_back() -> Seen:
    return [
        *s.alive(UDP, 3_000),
        s.unanswered(UDP, 3_016, 59_900, 90),
        ended(UDP, answered=110, unanswered=90),
    ]


NOBODY = "Nobody was hurt, as far as this trial looked."
ANSWERED = prober(tries(-900, 200), tries(1_000, 500))
REFUSED = prober(tries(-900, 200), tries(900, 20, Result.REFUSED), tries(1_100, 500, who=s.NEW))
TO_THE_END = prober(tries(-900, 200), tries(900, 500, Result.REFUSED))


@pytest.mark.parametrize(
    ("report", "band", "words"),
    [
        (measured(drained(), REFUSED), "new:tcp-new", "New TCP connections failed for"),
        (
            measured(drained(), TO_THE_END),
            "new:tcp-new",
            "New TCP connections failed from about +900 ms on, to the end of the recording",
        ),
        (measured(reset(), ANSWERED), None, "One open TCP connection was cut off, at about +42 ms"),
        (
            measured(moved(lost=7), ANSWERED),
            "udp:outage",
            "The one UDP flow went unanswered for up to",
        ),
        (
            measured(never_back(), ANSWERED),
            "udp:gone",
            "The one UDP flow went unanswered from about",
        ),
    ],
    ids=["refused", "to the end", "cut", "lost", "never back"],
)
def test_who_was_hurt_is_said_and_the_window_named(
    report: Report, band: str | None, words: str
) -> None:
    found = shown(report)
    assert found["hurt"] is not None
    assert found["hurt"]["band"] == band
    assert found["hurt"]["text"].startswith(words)
    assert NOBODY not in " ".join(found["says"])


@pytest.mark.parametrize(
    "report",
    [
        measured(drained(), ANSWERED),
        measured(moved(lost=0), ANSWERED),
        measured(survived(TCP), survived(UDP), ANSWERED),
    ],
    ids=["drained", "moved", "survived"],
)
def test_that_nobody_was_hurt_is_said_first(report: Report) -> None:
    found = shown(report)
    assert found["hurt"] is None
    assert found["says"][0].startswith(NOBODY)


def test_a_single_datagram_is_not_nothing() -> None:
    report = measured(survived(UDP), ANSWERED)
    (flow,) = report.trial.flows
    assert flow.continuity is not None
    lossy = replace(flow, continuity=replace(flow.continuity, lost=1))
    found = shown(replace(report, trial=replace(report.trial, flows=(lossy,))))
    assert found["hurt"] == {"band": None, "text": "One datagram was lost."}
    assert "The one UDP flow was answered to the end, but for 1 datagram." in found["says"]
    whole = shown(report)
    assert whole["hurt"] is None
    assert "The one UDP flow was answered to the end." in whole["says"]


def test_of_two_windows_the_longer_one_hurts_most() -> None:
    both = shown(measured(moved(lost=7), TO_THE_END))
    assert both["hurt"] is not None
    assert both["hurt"]["band"] == "new:tcp-new"
    long = [
        *s.alive(UDP, 3_000),
        s.unanswered(UDP, 3_016, 33_116, 70),
        s.responder(UDP, s.NEW, 33_130, 33_131, s.OLD),
        s.answered(UDP, s.NEW, 33_130, 59_900, (171, 200)),
        ended(UDP, answered=130, unanswered=70),
    ]
    udp = shown(measured(long, REFUSED))
    assert udp["hurt"] is not None
    assert udp["hurt"]["band"] == "udp:outage"


def test_what_was_not_measured_is_named_and_is_no_pass() -> None:
    without = shown(measured(drained()))
    assert (
        "Not measured: new connections (none were tried); when SIGTERM came." in without["says"][0]
    )
    told = shown(measured(drained(), [SIGTERM], ANSWERED))
    assert "Not measured" not in told["says"][0]
    report = measured(drained())
    (flow,) = report.trial.flows
    unknown = replace(
        flow, outcome=Outcome.NOT_MEASURED, mechanism=Mechanism.CLIENT_STALL, terminal_ns=None
    )
    nothing = shown(replace(report, trial=replace(report.trial, flows=(unknown,))))
    assert NOBODY not in " ".join(nothing["says"])
    assert "the fate of 1 of 1 flows" in nothing["says"][-1]
    assert nothing["hurt"] is not None
    assert "Whether anybody was hurt is not known" in nothing["hurt"]["text"]


def test_flows_of_other_pods_are_told_apart() -> None:
    report = measured(drained(), survived("tcp-0002"), ANSWERED)
    first, second = report.trial.flows

    def with_bystander(outcome: Outcome, mechanism: Mechanism) -> Trial:
        other = replace(second, role=Role.BYSTANDER, outcome=outcome, mechanism=mechanism)
        return shown(replace(report, trial=replace(report.trial, flows=(first, other))))

    well = with_bystander(Outcome.SURVIVED, Mechanism.NONE)
    assert "The one flow to a pod that was to stay was not hurt." in " ".join(well["says"])
    assert well["hurt"] is None
    cut = with_bystander(Outcome.SEVERED, Mechanism.RST)
    assert "The one flow to a pod that was to stay was hurt." in " ".join(cut["says"])
    assert cut["hurt"] is not None


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("delete", "Pod A (the only one) was deleted through the Kubernetes API while"),
        ("force-delete", "was deleted with force"),
        ("evict", "was evicted"),
        ("scale", "The workload was scaled down, which ended pod A"),
        ("rollout", "was rolled out anew"),
        ("evacuate-node", "The node of pod A (the only one) was evacuated"),
        ("namespace-delete", "The whole namespace was deleted"),
        ("container-kill", "was killed (SIGKILL), past the Kubernetes API"),
        ("something-new", "was terminated by something-new"),
    ],
)
def test_what_was_done_is_said_without_jargon(verb: str, words: str) -> None:
    report = measured(drained(), ANSWERED)
    trigger = replace(report.trial.trigger, verb=verb)
    found = shown(replace(report, trial=replace(report.trial, trigger=trigger)))
    assert words in found["says"][1]
    assert "while 1 TCP connection talked to it" in found["says"][1]


def test_a_control_says_that_nothing_was_terminated() -> None:
    report = measured(survived(TCP), ANSWERED)
    trigger = replace(report.trial.trigger, verb="none")
    found = shown(replace(report, trial=replace(report.trial, trigger=trigger)))
    assert found["says"][1].startswith("Nothing was terminated, with 1 TCP connection open:")
    assert "SIGTERM" not in " ".join(found["says"])


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"drain_behavior": "drain"}, "to drain: to take no new connections"),
        ({"drain_behavior": "drain", "accept_on_drain": "keep"}, "go on accepting connections"),
        ({"drain_behavior": "exit-now"}, "to exit at once."),
        ({"drain_behavior": "ignore"}, "to ignore that, until it is killed when its grace period"),
    ],
)
def test_how_the_pod_is_built(config: Mapping[str, object], words: str) -> None:
    found = shown(measured(drained(), [SIGTERM], ANSWERED, config=config))
    assert words in found["says"][1]
    assert "It was asked to stop (SIGTERM) at +40.0 ms. It is built " in found["says"][1]
    without = shown(measured(drained(), ANSWERED, config=config))
    assert "When asked to stop (SIGTERM), it is built " in without["says"][1]


def test_several_fates_are_counted() -> None:
    found = shown(measured(drained("tcp-0001"), drained("tcp-0002"), reset("tcp-0003"), ANSWERED))
    assert found["says"][1] == (
        "Of 3 open TCP connections 2 were closed cleanly, as the pod had announced, at about "
        "+5.04 s and one was cut off by a reset, without warning, at about +42 ms."
    )
    pair = shown(measured(drained("tcp-0001"), drained("tcp-0002"), ANSWERED))
    assert pair["says"][2].startswith("Both open TCP connections were closed cleanly")


def requests(failing: FailingRequests | None) -> Requests:
    failed = 0 if failing is None else failing.failures
    fates = {"served": 90, **({"written-then-reset": failed} if failed else {})}
    kind = KindRequests(
        kind=LaneKind.KEEPALIVE, lanes=1, planned=100, missed_slots=0, requests=100,
        attempts=90 + failed, served=90, failed=failed, failure_rate=None, fates=fates,
        failing=failing,
    )  # fmt: skip
    return Requests(method="GET", expect_status=200, timeout_ns=None, kinds=(kind,))


def test_requests_that_failed_are_a_window_and_those_that_did_not_are_said() -> None:
    report = measured(drained(), [SIGTERM])
    bounds = (50_000_000, 51_000_000), (950_000_000, 952_000_000)
    failing = FailingRequests(
        begun_ns=(50_000_000, 950_000_000), first_ns=bounds[0], last_ns=bounds[1],
        lasts_ns=(899_000_000, 902_000_000), requests=20, failures=10,
        served_before_ns=(0, 1), recovered_ns=(960_000_000, 961_000_000),
    )  # fmt: skip
    hurt = shown(replace(report, trial=replace(report.trial, requests=requests(failing))))
    assert hurt["hurt"] is not None
    assert hurt["hurt"]["band"] == "http:keepalive"
    assert "10 of 100 requests over kept-alive connections failed (sent, then reset)" in (
        " ".join(hurt["says"])
    )
    fine = shown(replace(report, trial=replace(report.trial, requests=requests(None))))
    assert fine["hurt"] is None
    assert "None of 90 requests over kept-alive connections failed." in fine["says"]


def test_requests_that_were_served_are_runs_too() -> None:
    report = measured(drained(), [SIGTERM])
    fine = shown(replace(report, trial=replace(report.trial, requests=requests(None))))
    (runs,) = [tried["runs"] for tried in fine["attempts"]]
    assert sum(count for _, _, _, count in runs) == 90
    assert all(0 <= lo <= hi <= fine["recorded"][1] for lo, hi, _, _ in runs)
