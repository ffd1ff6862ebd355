"""Workloads that do not sign their answers: whose a flow is, and what is not known of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import FlowReport, PodEnd, TrialReport
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
from pytest_drainwatch.core.http.ending import Over
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.pod.ending import EndedBy
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.start import CannotDerive
from pytest_drainwatch.render.terminal import show
from tests.core import story as s
from tests.core.http.asked import Asked, Lane, http
from tests.core.http.asked import end as http_end
from tests.core.story import NEW, OLD, OTHER, at
from tests.core.tries import prober, tries

CONFIG: dict[str, object] = {
    "attached": {"workload": "deployment/web", "protocol": "tcp"},
    "pre_stop": None,
    "tcp_flows": 1,
}
UDP = {**CONFIG, "tcp_flows": 0, "udp_flows": 1}
TWO = [s.endpoints(-5800, (OLD, True, True, False), (OTHER, True, True, False))]


def opened(flow: str, port: int = 40_001, **about: object) -> Observation:
    seen = s.connected(flow)
    data = {**seen.data, "anonymous": True, "local": f"198.18.0.1:{port}", **about}
    return replace(seen, data=data)


def answered(flow: str, lo: float, hi: float, seqs: tuple[int, int] = (1, 100)) -> Observation:
    seen = s.answered(flow, "", lo, hi, seqs)
    return replace(seen, data={**seen.data, "responder": ""})


def talking(flow: str, until: float, port: int = 40_001) -> list[Observation]:
    first = s.responder(flow, "", -4999, -4998)
    return [
        opened(flow, port),
        replace(first, data={**first.data, "responder": ""}),
        answered(flow, -4999, until),
    ]


def fin(flow: str, ms: float) -> Observation:
    return s.client(Event.FLOW_FIN, flow, at(ms, ms + 1), bytes_pending=0)


def open_at_end(flow: str, **data: object) -> Observation:
    return s.client(Event.FLOW_OPEN_AT_END, flow, at(59_900), **data)


def conntrack(occasion: str, ms: float, leads: dict[int, str], proto: str = "tcp") -> Observation:
    """A look at the node: to which address each port of ours is led."""
    entries = [
        {"proto": proto, "src": "198.18.0.1", "sport": port, "dst": "198.18.0.24", "dport": 30_001,
         "to": to, "to_port": 80, "state": "ESTABLISHED", "replied": True}
        for port, to in leads.items()
    ]  # fmt: skip
    data = {"occasion": occasion, "problem": None, "entries": entries, "left_out": 0}
    return Observation(source=Source.NODE, event=Event.CONNTRACK, at=at(ms, ms + 1), data=data)


def addresses(ms: float, *who: tuple[str, str]) -> Observation:
    """A slice that says which pod has which address."""
    listed = [
        {"uid": uid, "addresses": [address], "ready": True, "serving": True, "terminating": False}
        for uid, address in who
    ]
    data = {"type": "MODIFIED", "endpoints": listed}
    return Observation(
        source=Source.K8S, event=Event.ENDPOINT_SLICE, at=at(ms), subject="slice-1", data=data
    )


def judged(*parts: list[Observation], config: dict[str, object] = CONFIG) -> TrialReport:
    return derive(s.recording([s.accepted()], *parts, config=config)).trial


def only(trial: TrialReport) -> FlowReport:
    (flow,) = trial.flows
    return flow


def test_the_only_endpoint_is_whom_a_flow_leads_to() -> None:
    trial = judged(s.cluster(), [*talking("tcp-1", 5000), fin("tcp-1", 5100)])
    flow = only(trial)
    assert (flow.role, flow.responders) == (Role.TARGET, (OLD,))
    assert (flow.outcome, flow.mechanism) == (Outcome.SEVERED, Mechanism.FIN_UNANNOUNCED)
    assert trial.integrity is None
    assert any("known by the only endpoint" in note for note in trial.notes)


def test_with_several_endpoints_conntrack_tells() -> None:
    where = addresses(-5700, (OLD, "10.0.0.1"), (OTHER, "10.0.0.2"))
    look = conntrack("trigger", -50, {40_001: "10.0.0.1", 40_002: "10.0.0.2"})
    trial = judged(
        s.cluster(),
        [where, look],
        [*talking("tcp-1", 5000, 40_001), fin("tcp-1", 5100)],
        [*talking("tcp-2", 59_000, 40_002), open_at_end("tcp-2")],
    )
    one, two = trial.flows
    assert (one.role, one.responders) == (Role.TARGET, (OLD,))
    assert (two.role, two.responders) == (Role.BYSTANDER, (OTHER,))
    assert (trial.summary.tcp.total, trial.summary.bystander_tcp.total) == (1, 1)


def test_where_nothing_tells_the_role_is_null_and_a_note_says_so() -> None:
    trial = judged(s.cluster(), TWO, [*talking("tcp-1", 5000), fin("tcp-1", 5100)])
    flow = only(trial)
    assert (flow.role, flow.responders) == (None, ())
    assert flow.outcome is Outcome.SEVERED, "what happened to it is known all the same"
    assert any("1 of 1 flows lead is not known" in note for note in trial.notes)


def test_where_every_pod_ends_each_flow_is_a_targets() -> None:
    trial = derive(
        s.recording(
            [s.accepted(targets=(OLD, OTHER))],
            s.cluster(),
            TWO,
            [*talking("tcp-1", 5000), fin("tcp-1", 5100)],
            config=CONFIG,
        )
    ).trial
    assert (only(trial).role, only(trial).responders) == (Role.TARGET, ())


def test_flows_that_lead_to_others_alone_measure_nothing() -> None:
    where = addresses(-5700, (OLD, "10.0.0.1"), (OTHER, "10.0.0.2"))
    look = conntrack("trigger", -50, {40_001: "10.0.0.2"})
    with pytest.raises(CannotDerive, match="none of 1 tcp flows led to a pod that was terminated"):
        judged(s.cluster(), [where, look], [*talking("tcp-1", 59_000), open_at_end("tcp-1")])


def test_fewer_flows_than_asked_for_are_refused() -> None:
    with pytest.raises(CannotDerive, match="1 tcp flows were held, expected 2"):
        judged(s.cluster(), talking("tcp-1", 5000), config={**CONFIG, "tcp_flows": 2})


@pytest.mark.parametrize(
    ("ago_ms", "outcome"),
    [
        (900, Outcome.SURVIVED),
        (9_000, Outcome.NOT_MEASURED),  # silent for longer than keepalives allow
    ],
)
def test_a_connection_on_which_nothing_is_said_lives_as_long_as_it_is_acknowledged(
    ago_ms: int, outcome: Outcome
) -> None:
    held = opened("tcp-1", held=True)
    trial = judged(s.cluster(), [held, open_at_end("tcp-1", last_ack_ms=ago_ms)])
    flow = only(trial)
    assert (flow.role, flow.outcome) == (Role.TARGET, outcome)
    assert (flow.answered, flow.last_heartbeat_seq) == (0, None)


def test_a_connection_on_which_nothing_is_said_ends() -> None:
    flow = only(judged(s.cluster(), [opened("tcp-1", held=True), fin("tcp-1", 5100)]))
    assert (flow.outcome, flow.terminal_ns) == (Outcome.SEVERED, (5_100_000_000, 5_101_000_000))


def test_datagrams_that_are_answered_after_the_pods_end_are_answered_by_another() -> None:
    trial = judged(
        s.cluster(), [*talking("udp-1", 20_000), open_at_end("udp-1", sent=100)], config=UDP
    )
    flow = only(trial)
    assert (flow.outcome, flow.mechanism) == (Outcome.SEVERED, Mechanism.REHOMED)
    assert flow.terminal_ns == (0, 5_200_000_000), "between the trigger and the pod's end"
    assert flow.last_answered_seq is None, "how many of the answers were whose is not told"


def test_datagrams_that_are_answered_until_the_pods_end_are_its_own() -> None:
    trial = judged(
        s.cluster(),
        [
            *talking("udp-1", 5_100),
            s.unanswered("udp-1", 5_110, 59_000, 500, 59_900),
            open_at_end("udp-1"),
        ],
        config=UDP,
    )
    flow = only(trial)
    assert (flow.role, flow.mechanism) == (Role.TARGET, Mechanism.SILENCE)
    assert flow.responders == (OLD,)


def test_conntrack_narrows_when_datagrams_moved() -> None:
    where = [
        addresses(-5900, (OLD, "10.0.0.1")),
        addresses(2_000, (OLD, "10.0.0.1"), (NEW, "10.0.0.3")),
    ]
    looks = [
        conntrack("trigger", -50, {40_001: "10.0.0.1"}, "udp"),
        conntrack("ready-false", 1_000, {40_001: "10.0.0.1"}, "udp"),
        conntrack("exit", 3_000, {40_001: "10.0.0.3"}, "udp"),
    ]
    cluster = [o for o in s.cluster() if o.event is not Event.ENDPOINT_SLICE]
    trial = judged(
        cluster, where, looks, [*talking("udp-1", 20_000), open_at_end("udp-1")], config=UDP
    )
    assert only(trial).terminal_ns == (1_000_000_000, 3_001_000_000)


def test_new_connections_are_answered_though_nobody_says_by_whom() -> None:
    attempts = [
        *tries(-100, 100, who="", period_ms=10),
        *tries(900, 50, result=Result.REFUSED, period_ms=10),
        *tries(1_400, 100, who="", period_ms=10),
    ]
    trial = judged(
        s.cluster(),
        [*talking("tcp-1", 5000), fin("tcp-1", 5100)],
        prober(attempts, period_ms=10),
    )
    (found,) = trial.new_connections
    assert (found.failed, found.not_judged) == (50, 0)
    assert found.results["answered"] >= 100
    assert (found.by_terminating, found.after_unready, found.answered_by) == (None, None, ())


def test_sigterm_is_bounded_by_the_hook_and_the_end_and_never_made_up() -> None:
    config = {**CONFIG, "pre_stop": {"sleep_seconds": 3}}
    trial = judged(s.cluster(), [*talking("tcp-1", 5000), fin("tcp-1", 5100)], config=config)
    (end,) = trial.pod_ends
    assert end.ended_by is EndedBy.EXIT
    assert end.stop_signal_ns == (3_000_000_000, 5_200_000_000)
    assert end.sigterm_ns is None, "its image may name another signal"
    assert trial.summary.trigger_to_sigterm_ms is None
    assert any("no probe runs in this workload" in note for note in trial.notes)


def test_who_ends_before_his_hook_got_no_sigterm() -> None:
    config = {**CONFIG, "pre_stop": {"sleep_seconds": 9}}
    trial = judged(s.cluster(), [*talking("tcp-1", 5000), fin("tcp-1", 5100)], config=config)
    (end,) = trial.pod_ends
    assert (end.stop_signal_ns, end.sigterm_ns) == (None, None)


def test_requests_that_were_asked_for_and_are_not_there_are_refused() -> None:
    config = {"attached": {"protocol": "http"}, "tcp_flows": 0, "udp_flows": 0}
    with pytest.raises(CannotDerive, match="HTTP requests were asked for"):
        judged(s.cluster(), config=config)


def test_a_probes_answers_need_a_name_as_ever() -> None:
    """The same recording, and no word of an attached workload: nobody may be anonymous."""
    trial = derive(
        s.recording([s.accepted()], s.cluster(), s.alive("tcp-1", 5000), [fin("tcp-1", 5100)])
    ).trial
    assert trial.integrity is not None


@given(st.lists(st.tuples(st.integers(-4000, 20_000), st.integers(1, 3000)), max_size=6))
def test_no_answer_is_lost_or_told_twice(stretches: list[tuple[int, int]]) -> None:
    life, now, seq = talking("udp-1", -4500), -4400.0, 101
    for lo, lasts in sorted(stretches):
        lo_ms = max(now, lo)
        life.append(answered("udp-1", lo_ms, lo_ms + lasts, (seq, seq + 9)))
        now, seq = lo_ms + lasts + 1, seq + 10
    trial = judged(s.cluster(), [*life, open_at_end("udp-1")], config=UDP)
    assert only(trial).answered == 100 + 10 * len(stretches)


def ended_with(hook: object, *found: Observation, **about: Any) -> PodEnd:
    """How the only container is said to have ended, at 5.0 to 5.2 s."""
    config = {**CONFIG, "pre_stop": hook, "grace_period_seconds": 10}
    flow = [*talking("tcp-1", 5000), fin("tcp-1", 5100)]
    trial = judged(s.cluster(**about), list(found), flow, config=config)
    (end,) = trial.pod_ends
    return end


QUITS: dict[str, object] = {"exec": ["(not recorded)"]}
KILLED = {"reason": "Error", "signal": 9}


@pytest.mark.parametrize(
    ("hook", "how", "is_told", "said"),
    [
        (None, EndedBy.EXIT, True, None),
        ({"sleep_seconds": 3}, EndedBy.EXIT, True, None),
        ({"sleep_seconds": 9}, EndedBy.EXIT_BEFORE_SIGTERM, False, "it ended before its preStop"),
        (QUITS, EndedBy.UNKNOWN, False, "it may have ended before its preStop hook was over"),
    ],
    ids=["no-hook", "slept", "still-sleeping", "quit-by-its-hook"],
)
def test_whether_a_signal_came_is_not_made_up(
    hook: object, how: EndedBy, is_told: bool, said: str | None
) -> None:
    """A hook such as `nginx -s quit` ends its container, and no signal is sent any more."""
    end = ended_with(hook)
    assert (end.ended_by, end.stop_signal_ns is not None) == (how, is_told)
    assert any("before any SIGTERM" in line for line in end.evidence) == (said is not None)
    assert said is None or any(line.startswith(said) for line in end.evidence)


def test_who_had_to_be_killed_had_got_a_signal_first() -> None:
    end = ended_with(QUITS, exit_code=137, end_ms=12_500, gone=KILLED)
    assert end.ended_by is EndedBy.UNKNOWN, "the hook's length is not known: killed early, or not"
    flow = [*talking("tcp-1", 10_050), fin("tcp-1", 10_060)]
    trial = judged(s.cluster(137, 10_100, gone=KILLED), flow)
    (end,) = trial.pod_ends
    assert (end.ended_by, end.stop_signal_ns) == (EndedBy.SIGKILL_AT_GRACE, (0, 10_100_000_000))


def found(**hooks: object) -> Observation:
    """The workload as it was found: its containers by name, each with its own hook."""
    listed = [{"name": name, "pre_stop": hook} for name, hook in hooks.items()]
    return Observation(
        source=Source.ORCHESTRATOR,
        event=Event.WORKLOAD_FOUND,
        at=at(-6500),
        data={"pod": {"grace_period_s": 10, "containers": listed}},
    )


@pytest.mark.parametrize(
    ("workload", "how", "signal_ns"),
    [
        (found(probe=None, mesh={"sleep_seconds": 9}), EndedBy.EXIT, (0, 5_200_000_000)),
        (found(probe={"sleep_seconds": 9}, mesh=None), EndedBy.EXIT_BEFORE_SIGTERM, None),
        (found(web=None), EndedBy.UNKNOWN, None),  # somebody put this one beside it
    ],
    ids=["none-of-its-own", "its-own", "not-the-workloads"],
)
def test_each_container_has_its_own_hook(
    workload: Observation, how: EndedBy, signal_ns: tuple[int, int] | None
) -> None:
    """The scenario names one hook; the kubelet runs each container's beside the others'."""
    end = ended_with({"sleep_seconds": 9}, workload)
    assert (end.ended_by, end.stop_signal_ns) == (how, signal_ns)


@pytest.mark.parametrize(("signal", "told"), [(None, False), ("SIGTERM", True), ("SIGQUIT", False)])
def test_it_is_called_sigterm_only_where_the_pod_says_so(signal: str | None, told: bool) -> None:
    """An image may name another one, and the API server does not tell (nginx: SIGQUIT)."""
    workload = found(probe=None)
    (container,) = workload.data["pod"]["containers"]  # type: ignore[index]
    container["stop_signal"] = signal
    end = ended_with(None, workload)
    assert end.stop_signal_ns == (0, 5_200_000_000)
    assert (end.sigterm_ns == end.stop_signal_ns) is told


def killed_at(ms: float, *lanes: Lane) -> PodEnd:
    """How a container is said to have ended that SIGKILL met then, and HTTP is spoken with."""
    config = {"attached": {"protocol": "http"}, "tcp_flows": 0, "udp_flows": 0, "pre_stop": None}
    (end,) = judged(s.cluster(137, ms, gone=KILLED), http(*lanes), config=config).pod_ends
    return end


def lane(until_ms: float, **about: Any) -> Lane:
    """Requests ten times a second on one connection, all of them answered until it is cut."""
    asked = Asked(ms=-4_900, count=round((until_ms + 4_900) / 100) + 1, **about)
    gone = http_end("keepalive-00", Over.RST, until_ms + 99, opened_ms=-4_950)
    return Lane(asked=[asked], ends=[gone])


def test_who_answers_requests_until_the_grace_period_ends_is_killed_by_it() -> None:
    """Python under a shell serves on: its answers say how long it lived."""
    end = killed_at(10_100, lane(10_000))
    assert end.ended_by is EndedBy.SIGKILL_AT_GRACE
    assert end.ended_ns == (10_000_000_000, 10_100_000_000)
    assert end.stop_signal_ns == (0, 10_100_000_000)


def test_who_was_not_heard_of_for_long_may_have_been_killed_at_any_time() -> None:
    assert killed_at(10_100, lane(4_000)).ended_by is EndedBy.UNKNOWN
    assert killed_at(4_100, lane(4_000)).ended_by is EndedBy.KILLED_EARLY


def test_answers_of_several_endpoints_say_nothing_of_one_of_them() -> None:
    config = {"attached": {"protocol": "http"}, "tcp_flows": 0, "udp_flows": 0, "pre_stop": None}
    seen = [s.cluster(137, 10_100, gone=KILLED), TWO, http(lane(10_000))]
    (end,) = judged(*seen, config=config).pod_ends
    assert end.ended_by is EndedBy.UNKNOWN


def test_who_ended_by_his_signal_ended_after_it() -> None:
    """Nothing was heard of it since before the trigger, and the signal follows that."""
    config = {"attached": {"protocol": "http"}, "tcp_flows": 0, "udp_flows": 0, "pre_stop": None}
    (end,) = judged(s.cluster(0, 240), http(lane(-100)), config=config).pod_ends
    assert end.ended_by is EndedBy.EXIT
    assert end.ended_ns == (0, 240_000_000)


def test_pods_of_others_behind_the_service_are_told() -> None:
    """A canary's, say: all pods of the workload may end and some flow lead to nobody of it."""
    told = "the Service led to 1 pod(s) that are not this workload's"
    flows = [*talking("tcp-1", 5000), fin("tcp-1", 5100)]
    shared = judged(s.cluster(), TWO, flows)
    assert any(told in note for note in shared.notes)
    assert only(shared).role is None
    own = judged(s.cluster(), TWO, [s.pod(OTHER, -5900)], flows)
    assert not any("not this workload's" in note for note in own.notes)


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ({"sleep_seconds": 5}, "preStop sleep 5 s"),
        ({"exec": "(not recorded)"}, "preStop a command"),
        ({"http_get": "(not recorded)"}, "preStop an httpGet"),
        ({"later": 1}, "preStop of some kind"),
    ],
)
def test_a_report_says_what_kind_of_hook_there_is(hook: dict[str, object], words: str) -> None:
    life = [*talking("tcp-1", 5000), fin("tcp-1", 5100)]
    config = {**CONFIG, "pre_stop": hook}
    text = show(derive(s.recording([s.accepted()], s.cluster(), life, config=config)))
    assert f"{words}; tcp through Service" in text
