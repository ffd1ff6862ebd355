"""From a recording to a report: values with their bounds, and refusals."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch import report
from pytest_drainwatch.core.clock import ClockError
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import (
    Recording,
    RecordingError,
    dump_header,
    dumps,
    loads,
    merge,
)
from pytest_drainwatch.core.start import CannotDerive
from tests.core import story as s
from tests.core.story import NEW, OLD, OTHER, at

TCP, UDP = "tcp-0001", "udp-0001"
MS = NS_PER_MS


def drained() -> list[Observation]:
    return [
        *s.alive(TCP, 5100),
        s.client(Event.FLOW_ANNOUNCED, TCP, at(5101, 5101.5), seq=100, reason="drain-deadline"),
        s.client(Event.FLOW_FIN, TCP, at(5101, 5101.6)),
    ]


def rehomed() -> list[Observation]:
    return [*s.alive(UDP, 1990), s.responder(UDP, NEW, 1989.8, 2007, previous=OLD)]


def lifecycle() -> list[Observation]:
    return [
        s.log(Event.PROBE_STARTED, -5950, nonce="n"),
        s.log(Event.SIGTERM_RECEIVED, 40),
        s.log(Event.EXITING, 5102, code=0),
    ]


def ordinary() -> Recording:
    return s.recording([s.accepted()], drained(), rehomed(), lifecycle(), s.cluster())


def test_an_ordinary_drain() -> None:
    trial = derive(ordinary()).trial
    tcp, udp = trial.flows
    assert (tcp.outcome, tcp.mechanism) == ("drained-clean-close", "announced-fin")
    assert tcp.terminal_ns == (5101 * MS, 5101.6 * MS)
    assert tcp.t_terminal_ms == 5101
    assert (udp.outcome, udp.mechanism) == ("severed", "rehomed")
    assert udp.responders == (f"{OLD}/n", f"{NEW}/n")
    assert udp.last_answered_seq == 100
    assert tcp.last_heartbeat_seq == 100
    assert {flow.role for flow in trial.flows} == {Role.TARGET}
    assert trial.summary.tcp.drained == 1
    assert trial.summary.udp.mechanisms == {"rehomed": 1}
    assert [(e.exit_code, e.reason) for e in trial.container_exits] == [(0, "Completed")]
    assert [note.partition(":")[0] for note in trial.notes] == ["no new connections were tried"]


def test_derived_durations_are_intervals() -> None:
    found = derive(ordinary()).trial.summary
    assert found.trigger_to_sigterm_ns == (40 * MS, 40 * MS)
    # A container that still answered at 5099.8 ms had not terminated, and an endpoint
    # outlives its pod's containers.
    assert found.trigger_to_container_terminated_ns == (round(5099.8 * MS), 5200 * MS)
    assert found.trigger_to_endpoint_removed_ns == (round(5099.8 * MS), 5208 * MS)
    assert found.sigterm_to_last_flow_terminal_ns == (5061 * MS, round(5061.6 * MS))
    # Negative values are kept: ready:false may precede the SIGTERM stamp.
    assert found.sigterm_to_ready_false_ns == (-40 * MS, -20 * MS)
    assert found.sigterm_to_ready_false_ms == -20
    assert found.dead_endpoint_window_ms == 106


def test_an_endpoint_that_went_before_its_container_is_bounded_by_the_trigger_only() -> None:
    frames = [
        s.endpoints(-5900, (OLD, True, True, False)),
        s.endpoints(300),
        *[o for o in s.cluster() if o.event is Event.POD],
    ]
    found = derive(s.recording([s.accepted()], drained(), frames)).trial.summary
    assert found.trigger_to_endpoint_removed_ns == (0, 300 * MS)


def test_what_was_not_seen_is_null_with_a_note() -> None:
    trial = derive(s.recording([s.accepted()], drained(), [s.deleted()])).trial
    summary = trial.summary
    assert summary.trigger_to_sigterm_ms is None
    assert summary.sigterm_to_ready_false_ms is None
    assert summary.trigger_to_endpoint_removed_ns is None
    assert summary.dead_endpoint_window_ms is None
    assert len(trial.notes) == 5


def test_bystanders_are_counted_apart() -> None:
    bystander = [
        *s.alive("tcp-0002", 9000, OTHER),
        s.client(Event.FLOW_OPEN_AT_END, "tcp-0002", at(9001), sent=9, answered=9),
    ]
    both = s.recording([s.accepted()], drained(), bystander, s.cluster(), [s.pod(OTHER, -6000)])
    summary = derive(both).trial.summary
    assert (summary.tcp.total, summary.tcp.drained) == (1, 1)
    assert (summary.bystander_tcp.total, summary.bystander_tcp.survived_window) == (1, 1)


def test_another_pods_changes_are_not_the_targets() -> None:
    """The ancestor took the earliest event of a name, whoever it was about."""
    before = [
        s.endpoints(-7000, (OTHER, True, True, False)),
        s.endpoints(-6900),
        s.pod(OTHER, 5, deletion_timestamp="then"),
    ]
    trial = derive(s.recording([s.accepted()], drained(), s.cluster(), before)).trial
    assert trial.summary.trigger_to_endpoint_removed_ms == 5208
    assert trial.trigger.effective_ns == (0, 12 * MS)


def test_an_endpoint_in_two_slices_is_removed_with_the_last() -> None:
    """Case C47: dual-stack slices change one after the other."""
    slices = [
        s.endpoints(-100, (OLD, True, True, False), name="v4"),
        s.endpoints(-100, (OLD, True, True, False), name="v6"),
        s.endpoints(500, name="v4"),
        s.endpoints(900, name="v6"),
    ]
    trial = derive(s.recording([s.accepted()], drained(), slices, [s.deleted()])).trial
    assert trial.summary.trigger_to_endpoint_removed_ms == 900


def test_what_vanished_during_a_watch_gap_is_seen_at_the_next_list() -> None:
    frames = [
        s.pod(OLD, -6000),
        Observation(
            source=Source.K8S,
            event=Event.WATCH_GAP,
            at=at(100, 3000),
            data={"resource": "pods", "reason": "410 Gone"},
        ),
        Observation(
            source=Source.K8S,
            event=Event.WATCH_LISTED,
            at=at(2990, 3000),
            data={"resource": "pods", "subjects": [NEW]},
        ),
    ]
    trial = derive(s.recording([s.accepted()], drained(), frames)).trial
    gone = [e for e in trial.timeline if e.event == "pod_object_deleted"]
    assert [(e.subject, e.t_ms) for e in gone] == [(OLD, 3000)]
    assert [(gap.subject, gap.at_ns) for gap in trial.gaps] == [("pods", (100 * MS, 3000 * MS))]


@pytest.mark.parametrize("skew_ms", [-300, 300])
def test_a_probe_with_a_clock_of_its_own_is_placed_within_bounds(skew_ms: int) -> None:
    """Case C53: the same corrected interval whatever the skew, bounded by the round trip."""
    other = "boot-2/1"
    exchange = s.client(
        Event.CLOCK_EXCHANGE,
        TCP,
        at(-1000, -999),
        clock=other,
        t1=s.ns(-1000),
        t2=s.ns(-999.5 + skew_ms),
        t3=s.ns(-999.5 + skew_ms),
        t4=s.ns(-999),
    )
    term = s.log(Event.SIGTERM_RECEIVED, 40 + skew_ms, clock=other)
    trial = derive(s.recording([s.accepted(), s.deleted()], [exchange], drained(), [term])).trial
    # Half the round trip each way, and the drift of a second between exchange and signal.
    drift = round(0.10395 * MS)
    assert trial.summary.trigger_to_sigterm_ns == (
        round(39.5 * MS) - drift,
        round(40.5 * MS) + drift,
    )
    assert [c.same_clock for c in trial.clock] == [False]
    assert [e.approximate for e in trial.timeline if e.event == "sigterm_received"] == [True]


def exchange(ms: float, skew_ms: float) -> Observation:
    """A round trip of 0.2 ms with a clock that is ahead by ``skew_ms``."""
    middle = s.ns(ms + 0.1 + skew_ms)
    stamps = {"t1": s.ns(ms), "t2": middle, "t3": middle, "t4": s.ns(ms + 0.2)}
    when = at(ms, ms + 0.2)
    return s.client(Event.CLOCK_EXCHANGE, TCP, when, clock="boot-2/1", **stamps)


@pytest.mark.parametrize("ppm", [0, 5, 50])
def test_a_drifting_clock_widens_bounds_and_breaks_nothing(ppm: int) -> None:
    """70 s at 5 ppm is 350 us: more than a quick round trip allows a constant offset."""
    seen = [exchange(ms, 300 + ms * ppm / 1e6) for ms in range(-10_000, 60_001, 5000)]
    term = s.log(Event.SIGTERM_RECEIVED, 340 + 40 * ppm / 1e6, clock="boot-2/1")
    trial = derive(s.recording([s.accepted(), s.deleted()], seen, drained(), [term])).trial
    bounds = trial.summary.trigger_to_sigterm_ns
    assert bounds is not None
    assert bounds[0] <= 40 * MS <= bounds[1]
    assert bounds[1] - bounds[0] < 1.2 * MS


def test_a_stepped_clock_is_an_error() -> None:
    seen = [exchange(-1000, 300), exchange(1000, 500)]
    term = s.log(Event.SIGTERM_RECEIVED, 340, clock="boot-2/1")
    with pytest.raises(ClockError, match="exclude each other"):
        derive(s.recording([s.accepted(), s.deleted()], seen, drained(), [term]))


def orders_of(rec: Recording) -> dict[tuple[str, str], str]:
    found = derive(rec).trial.summary.orders
    return {(o.first, o.second): str(o.order) for o in found}


def test_an_order_is_said_only_where_the_intervals_allow_one() -> None:
    term, last = ("sigterm", "last_flow_terminal"), ("last_tcp_terminal", "endpoint_removed")
    told = orders_of(s.recording([s.accepted()], drained(), lifecycle(), s.cluster()))
    assert told[term] == "before"
    # ready:false came some time between the trigger and 20 ms, SIGTERM at 40 ms.
    assert told["sigterm", "endpoint_ready_false"] == "after"
    # The watch said so at 5208 ms; the endpoint may have gone since the last answer at 5100 ms.
    assert told[last] == "indeterminate"
    early = s.log(Event.SIGTERM_RECEIVED, 15)
    close = orders_of(s.recording([s.accepted()], drained(), [early], s.cluster()))
    assert close["sigterm", "endpoint_ready_false"] == "indeterminate"
    assert term not in orders_of(s.recording([s.accepted()], drained(), s.cluster()))


def refused(ms: float) -> list[Observation]:
    """A UDP flow that was served until ``ms``, and refused from then on."""
    icmp = s.client(Event.FLOW_ICMP, UDP, at(ms, ms + 1), type=3, code=3, errno="ECONNREFUSED")
    return [*s.alive(UDP, ms - 1), icmp, s.client(Event.FLOW_OPEN_AT_END, UDP, at(59_000))]


def reset(ms: float) -> list[Observation]:
    return [*s.alive(TCP, ms - 1), s.client(Event.FLOW_RESET, TCP, at(ms, ms + 1), errno="E")]


def test_the_last_flow_may_be_a_udp_one_and_the_last_tcp_flow_never_is() -> None:
    """TCP ended before SIGTERM was logged, UDP after it; the endpoint went after both or one."""
    frames = s.cluster(0, 5200)
    told = derive(s.recording([s.accepted()], reset(30), refused(5190), lifecycle(), frames)).trial
    orders = {(o.first, o.second): str(o.order) for o in told.summary.orders}
    assert orders["sigterm", "last_flow_terminal"] == "before"
    # Only TCP tells when a dead endpoint began to be one: connections there end at once.
    assert orders["last_tcp_terminal", "endpoint_removed"] == "before"
    window = told.summary.dead_endpoint_window_ns
    assert window is not None
    assert window[1] == 5208 * MS - 30 * MS
    assert told.summary.sigterm_to_last_flow_terminal_ms == 5191 - 40


def test_an_endpoint_that_went_first_is_not_said_to_have_gone_last() -> None:
    frames = [
        s.endpoints(-5900, (OLD, True, True, False)),
        s.endpoints(300),
        *[o for o in s.cluster() if o.event is Event.POD],
    ]
    told = orders_of(s.recording([s.accepted()], drained(), frames))
    assert told["container_terminated", "endpoint_removed"] == "after"
    assert told["last_tcp_terminal", "endpoint_removed"] == "after"


def test_a_bystanders_sigterm_is_not_the_targets() -> None:
    other = s.log(Event.SIGTERM_RECEIVED, 10, OTHER)
    told = s.recording([s.accepted()], drained(), lifecycle(), [other], s.cluster())
    assert derive(told).trial.summary.trigger_to_sigterm_ns == (40 * MS, 40 * MS)
    alone = s.recording([s.accepted()], drained(), [other], s.cluster())
    assert derive(alone).trial.summary.trigger_to_sigterm_ns is None


def test_a_flow_that_comes_back_to_its_first_responder_ended_all_the_same() -> None:
    flow = [
        s.connected(UDP),
        s.responder(UDP, OLD, -4999, -4998),
        s.answered(UDP, OLD, -4999, 1000, (1, 20)),
        s.responder(UDP, NEW, 999.8, 1016, previous=OLD),
        s.answered(UDP, NEW, 1015, 2000, (21, 40)),
        s.responder(UDP, OLD, 1999.8, 2016, previous=NEW),
        s.answered(UDP, OLD, 2015, 3000, (41, 60)),
    ]
    (report,) = derive(s.recording([s.accepted()], flow, s.cluster())).trial.flows
    assert (report.last_answered_seq, report.last_data_t_ms, report.t_terminal_ms) == (
        20,
        1000,
        1016,
    )


def two_pods(*terms: Observation) -> TrialReport:
    """Scaled away: two pods, the one gone long before the other."""
    frames = [
        *(s.pod(uid, -6000) for uid in (OLD, OTHER)),
        s.endpoints(-5900, (OLD, True, True, False), (OTHER, True, True, False)),
        *(s.pod(uid, 12, deletion_timestamp="then") for uid in (OLD, OTHER)),
        s.endpoints(400, (OTHER, False, True, True)),
        s.endpoints(6000),
    ]
    ends = [
        *(s.client(Event.FLOW_RESET, TCP, at(300, 301), errno="ECONNRESET"),),
        *(s.client(Event.FLOW_RESET, "tcp-0002", at(5900, 5901), errno="ECONNRESET"),),
    ]
    flows = [*s.alive(TCP, 299), *s.alive("tcp-0002", 5899, OTHER), *ends]
    both = s.accepted(targets=(OLD, OTHER))
    return derive(s.recording([both], flows, frames, terms)).trial


def test_instants_of_two_pods_are_not_subtracted_from_each_other() -> None:
    trial = two_pods(s.log(Event.SIGTERM_RECEIVED, 40), s.log(Event.SIGTERM_RECEIVED, 30, OTHER))
    assert trial.summary.trigger_to_sigterm_ns == (30 * MS, 30 * MS)
    assert trial.summary.dead_endpoint_window_ns is None
    assert trial.summary.dead_endpoint_window_ms is None
    assert trial.summary.sigterm_to_ready_false_ns is None
    assert trial.summary.sigterm_to_last_flow_terminal_ns is None, "of whichever pod was last"
    assert trial.summary.sigterm_to_last_flow_terminal_ms is None
    assert trial.summary.orders == ()
    assert any("2 pods were terminated" in note for note in trial.notes)


def test_a_pod_that_told_no_sigterm_may_have_been_the_first() -> None:
    trial = two_pods(s.log(Event.SIGTERM_RECEIVED, 900, OTHER))
    assert trial.summary.trigger_to_sigterm_ns == (0, 900 * MS)
    assert any("1 of 2 target pods told of no SIGTERM" in note for note in trial.notes)


def test_the_first_of_several_sigterms_lies_as_early_as_any_of_them_may() -> None:
    """One pod's clock is known to 0.1 ms only: its SIGTERM may have been the first."""
    vague = s.log(Event.SIGTERM_RECEIVED, 40.02, clock="boot-2/1")
    sharp = s.log(Event.SIGTERM_RECEIVED, 40, OTHER)
    bounds = two_pods(exchange(-1, 0), vague, sharp).summary.trigger_to_sigterm_ns
    assert bounds is not None
    assert bounds[1] == 40 * MS
    assert 39.9 * MS < bounds[0] < 40 * MS


def test_an_answer_of_one_pod_bounds_nothing_of_another() -> None:
    """OTHER answered until 5.9 s; OLD was silent by then, and its end is shown late."""
    ended = s.pod(OLD, 6000, deletion_timestamp="then", containers=[s.gone(0)])
    summary = two_pods(s.pod(OLD, -5999, containers=[s.LIVE]), ended).summary
    own = (298.8 * MS, 6000 * MS)
    assert summary.trigger_to_container_terminated_ns == own, "after its own last answer"


def test_one_whose_end_was_not_seen_may_have_ended_first() -> None:
    """OLD answered until 0.3 s and vanished; OTHER ended, as was seen, after 5.9 s."""
    ended = s.pod(OTHER, 6000, deletion_timestamp="then", containers=[s.gone(0)])
    summary = two_pods(s.pod(OTHER, -5999, containers=[s.LIVE]), ended).summary
    assert summary.trigger_to_container_terminated_ns == (298.8 * MS, 6000 * MS)


def test_one_pods_container_bounds_no_other_pods_endpoint() -> None:
    """A gap hid the slices: the endpoint that went first may have gone before the trigger."""
    gap = Observation(
        source=Source.K8S,
        event=Event.WATCH_GAP,
        at=at(-3000, 200),
        data={"resource": "endpointslices", "reason": "410 Gone"},
    )
    leaving = [
        s.pod(uid, 250, deletion_timestamp="then", containers=[s.LIVE]) for uid in (OLD, OTHER)
    ]
    ended = s.pod(OLD, 350, deletion_timestamp="then", containers=[s.gone(0)])
    summary = two_pods(gap, *leaving, ended).summary
    assert summary.trigger_to_container_terminated_ns == (298.8 * MS, 350 * MS)
    # OTHER's may have gone before OLD's, as far as its own frames tell.
    assert summary.trigger_to_endpoint_removed_ns == (0, 400 * MS)


def caused(deadline_ms: float, started_ms: float = -9000, term_ms: float = 40) -> Recording:
    """A drain whose bye the client reads at 5101..5101.5 ms."""
    logs = [
        s.log(Event.PROBE_STARTED, started_ms, nonce="n"),
        s.log(Event.SIGTERM_RECEIVED, term_ms, nonce="n"),
        s.log(Event.DRAIN_DEADLINE_REACHED, deadline_ms, nonce="n"),
    ]
    same = s.client(
        Event.CLOCK_EXCHANGE,
        TCP,
        at(-1, 1),
        clock=s.CLOCK,
        t1=s.ns(-1),
        t2=s.ns(0),
        t3=s.ns(0),
        t4=s.ns(1),
    )
    return s.recording([s.accepted(), s.deleted()], drained(), [same], logs)


@pytest.mark.parametrize(
    ("impossible", "law"),
    [
        (caused(5102), "says bye when its drain window has ended"),
        (caused(5101, started_ms=-4000), "answers after it has started"),
        (caused(5101, term_ms=-1), "SIGTERM after the trigger was sent"),
    ],
)
def test_an_effect_that_is_over_before_its_cause_is_an_error(
    impossible: Recording, law: str
) -> None:
    """As in the ancestor's B/trial-001, where a FIN came 3 ms before its cause."""
    assert derive(caused(5101.2)).trial.summary.trigger_to_sigterm_ms == 40  # overlap is no crime
    with pytest.raises(ClockError, match=law) as error:
        derive(impossible)
    assert "cause: " in str(error.value)
    assert "effect: " in str(error.value)


def test_how_early_an_effect_was_is_the_least_that_it_can_have_been() -> None:
    """The bye was read by 5101.5 ms, half a millisecond before the deadline at 5102."""
    with pytest.raises(ClockError, match=r"at least 0\.500 ms before the first"):
        derive(caused(5102))


def test_a_bye_for_another_reason_waits_for_no_deadline() -> None:
    early = caused(5102)
    other = [
        replace(o, data={**o.data, "reason": "asked-to"}) if o.event is Event.FLOW_ANNOUNCED else o
        for o in early.observations
    ]
    told = derive(replace(early, observations=tuple(other))).trial
    assert told.flows[0].mechanism == "announced-fin"


def test_an_unbounded_clock_places_nothing() -> None:
    term = s.log(Event.SIGTERM_RECEIVED, 40, clock="boot-2/1")
    trial = derive(s.recording([s.accepted(), s.deleted()], drained(), [term])).trial
    assert trial.summary.trigger_to_sigterm_ns is None
    assert not [e for e in trial.timeline if e.event == "sigterm_received"]


def test_an_effect_before_its_cause_is_an_error() -> None:
    early = s.client(
        Event.CLOCK_EXCHANGE,
        TCP,
        at(-10, -9),
        clock=s.CLOCK,
        t1=s.ns(-10),
        t2=s.ns(-11),
        t3=s.ns(-11),
        t4=s.ns(-9),
    )
    with pytest.raises(ClockError, match="effect before its cause"):
        derive(s.recording([s.accepted()], [early], drained()))


@pytest.mark.parametrize("event", [Event.VOID, Event.INTERRUPTED])
def test_a_void_trial_yields_no_report(event: Event) -> None:
    void = Observation(
        source=Source.ORCHESTRATOR, event=event, at=at(7), data={"phase": "x", "reason": "why"}
    )
    with pytest.raises(CannotDerive, match="why"):
        derive(replace(ordinary(), observations=(*ordinary().observations, void)))


def test_a_recording_without_a_trigger_yields_no_report() -> None:
    with pytest.raises(CannotDerive, match="one accepted trigger"):
        derive(s.recording(drained()))


def test_the_report_is_what_its_schema_says() -> None:
    text = report.dumps(derive(ordinary()))
    jsonschema.validate(json.loads(text), report.schema("report"))
    assert report.loads(text) == derive(ordinary())
    with pytest.raises(report.ReportError, match="outcome"):
        report.loads(text.replace("drained-clean-close", "drained-probably"))


def test_recording_lines_are_what_their_schema_says() -> None:
    schema = report.schema("recording")
    for line in dumps(ordinary()).splitlines():
        jsonschema.validate(json.loads(line), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"source": "client", "event": "no such event", "at": [1, 2]}, schema)


def test_a_recording_survives_its_file() -> None:
    text = dumps(ordinary())
    assert loads(text) == ordinary()
    torn = loads(text + '{"source": "cli')
    assert torn.observations == ordinary().observations
    assert "torn" in (torn.damage or "")
    assert any("torn" in note for note in derive(torn).trial.notes)


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "{}",
        "nonsense",
        '{"source":"client","event":"flow_fin","at":[2,1]}',
        '{"source":"client","event":"flow_fin","at":[1.5,2]}',
        '{"source":"client","event":"flow_fin","at":[1,2],"subject":7}',
        '{"source":"nobody","event":"flow_fin","at":[1,2]}',
    ],
)
def test_a_bad_line_is_named(line: str) -> None:
    with pytest.raises(RecordingError, match="line 2"):
        loads(dump_header(ordinary().header) + "\n" + line + "\n")


def test_a_newer_recording_is_refused() -> None:
    text = dumps(s.recording()).replace('"recording_schema":1', '"recording_schema":99')
    with pytest.raises(RecordingError, match="newer"):
        loads(text)


@given(st.permutations(ordinary().observations))
@settings(max_examples=60, deadline=None)
def test_any_order_of_any_part_has_a_report(order: list[Observation]) -> None:
    """Random event orders never crash, and every flow has a verdict."""
    shuffled = Recording(ordinary().header, tuple(order))
    trial = derive(shuffled).trial
    assert len(trial.flows) == 2
    assert report.dumps(derive(shuffled)) == report.dumps(derive(shuffled))


@given(st.lists(st.sampled_from(ordinary().observations), max_size=20))
@settings(max_examples=60)
def test_any_subset_has_a_report_or_a_refusal(some: list[Observation]) -> None:
    part = Recording(ordinary().header, tuple(some))
    events = [seen.event for seen in some]
    whole = (
        events.count(Event.TRIGGER_ACCEPTED) == 1
        and Event.AGENT_SUMMARY in events
        and Event.OBSERVATION_WINDOW_CLOSED in events
    )
    if not whole:
        with pytest.raises(CannotDerive):
            derive(part)
        return
    try:
        trial = derive(part).trial
    except CannotDerive as refusal:
        assert "blocked" in str(refusal)  # noqa: PT017
    else:
        assert trial.trigger.effective_ns is not None


def without(event: Event) -> Recording:
    whole = ordinary()
    return replace(whole, observations=tuple(o for o in whole.observations if o.event != event))


@pytest.mark.parametrize(
    ("recording", "said"),
    [
        (without(Event.AGENT_SUMMARY), "agent's summary is missing"),
        (without(Event.OBSERVATION_WINDOW_CLOSED), "does not say that its observation ended"),
        (without(Event.POD), "accepted the trigger and did not carry it out"),
        (
            s.recording([s.accepted()], drained(), s.cluster(), config={"tcp_flows": 10}),
            "1 tcp flows were held on the target, expected 10",
        ),
        (
            s.recording([s.accepted()], drained(), s.cluster(), config={"udp_flows": 1}),
            "0 udp flows were held on the target, expected 1",
        ),
        (
            s.recording(
                [s.accepted()],
                s.alive(TCP, -1001),
                [s.client(Event.FLOW_RESET, TCP, at(-1000, -999), errno="ECONNRESET")],
                s.cluster(),
            ),
            "ended before the trigger",
        ),
    ],
)
def test_what_was_not_measured_yields_no_report(recording: Recording, said: str) -> None:
    """A lost agent, a lost part, a disturbed settle: each looks like nothing bad happened."""
    with pytest.raises(CannotDerive, match=said):
        derive(recording)


def test_a_gap_over_the_trigger_moves_lower_bounds_before_it() -> None:
    gap = Observation(
        source=Source.K8S,
        event=Event.WATCH_GAP,
        at=at(-3000, 100),
        data={"resource": "endpointslices", "reason": "410 Gone"},
    )
    found = derive(s.recording([s.accepted()], drained(), lifecycle(), s.cluster(), [gap])).trial
    # ready:false was received at 20 ms, within the gap: it may have come first.
    assert found.summary.sigterm_to_ready_false_ns == (-3040 * MS, -20 * MS)
    assert found.summary.trigger_to_container_terminated_ns == (round(5099.8 * MS), 5200 * MS)


def test_a_gap_hides_nothing_that_a_later_frame_still_showed() -> None:
    """Right after the gap the endpoint was there and ready: it went after that."""
    gap = Observation(
        source=Source.K8S,
        event=Event.WATCH_GAP,
        at=at(-3000, 100),
        data={"resource": "endpointslices", "reason": "410 Gone"},
    )
    there = s.endpoints(150, (OLD, True, True, False))
    frames = [o for o in s.cluster() if o.event is Event.POD]
    slices = [s.endpoints(-5900, (OLD, True, True, False)), s.endpoints(300)]
    found = derive(s.recording([s.accepted()], drained(), frames, slices, [gap])).trial.summary
    assert found.trigger_to_endpoint_removed_ns == (-3000 * MS, 300 * MS)
    seen = s.recording([s.accepted()], drained(), frames, slices, [gap, there])
    assert derive(seen).trial.summary.trigger_to_endpoint_removed_ns == (0, 300 * MS)


def test_evidence_against_itself_bounds_nothing() -> None:
    """A container cannot have ended before it answered: say only what is sure."""
    early = s.cluster(0, 300)
    found = derive(s.recording([s.accepted()], drained(), early)).trial.summary
    assert found.trigger_to_container_terminated_ns == (0, 300 * MS)


def test_one_flow_without_an_end_leaves_the_last_end_unknown() -> None:
    open_still = [
        *s.alive("tcp-0002", 9000),
        s.client(Event.FLOW_OPEN_AT_END, "tcp-0002", at(9001), sent=9, answered=9),
    ]
    trial = derive(
        s.recording([s.accepted()], drained(), open_still, lifecycle(), s.cluster())
    ).trial
    assert trial.summary.sigterm_to_last_flow_terminal_ms is None
    assert trial.summary.dead_endpoint_window_ms is None
    assert any("'last flow' values are null" in note for note in trial.notes)


@given(st.permutations(["uid-a", "uid-b"]))
def test_relabelling_identities_changes_nothing(names: list[str]) -> None:
    """No verdict rests on what a pod is called."""
    text = dumps(ordinary())
    renamed = loads(text.replace(OLD, names[0]).replace(NEW, names[1]))

    def verdicts(found: Recording) -> list[tuple[object, ...]]:
        trial = derive(found).trial
        return [(f.id, f.outcome, f.mechanism, f.role, f.terminal_ns) for f in trial.flows]

    assert verdicts(renamed) == verdicts(ordinary())


def test_merging_keeps_each_parts_order() -> None:
    late = s.client(Event.FLOW_FIN, TCP, at(9))
    early = s.client(Event.FLOW_FIN, TCP, at(3))
    other = s.client(Event.FLOW_FIN, UDP, at(5))
    assert merge([late, early], [other]) == (other, late, early)
