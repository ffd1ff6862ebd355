"""Damaged recordings and reports: judged without the odd part, or refused by name.

Whatever stands in a recording, :func:`derive` gives a report that can be read back, or
one of the errors that the command line knows. Never anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_drainwatch import report
from pytest_drainwatch.core.clock import ClockError
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import NodeFacts, Report
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.recording import (
    MAX_NESTING,
    Recording,
    RecordingError,
    dumps,
    loads,
)
from pytest_drainwatch.core.scenario import App, Behavior, Scenario
from pytest_drainwatch.core.start import CannotDerive
from pytest_drainwatch.render.terminal import show
from tests.core import one_way_story as w
from tests.core import story as s
from tests.core import trials
from tests.core.story import NEW, OLD, at
from tests.core.tries import prober, tries

UDP = "udp-0001"


def udp_trial(end: Sequence[Observation] = ()) -> Recording:
    """Both transports, a pod with a clock of its own, and each kind of remark."""
    data = {"t1": s.ns(-4000), "t2": s.ns(-3999), "t3": s.ns(-3999), "t4": s.ns(-3998)}
    flow = [
        *s.alive(UDP, 5100),
        s.unanswered(UDP, 5110, 7500, 140),
        s.responder(UDP, NEW, 5100, 7517, previous=OLD),
        s.answered(UDP, NEW, 7520, 39_990, (300, 900)),
        s.client(Event.FLOW_OPEN_AT_END, UDP, at(40_000), sent=900, answered=760, unsent=1),
    ]
    harness = [
        s.client(Event.CLOCK_EXCHANGE, f"{OLD}/n", at(-4000, -3998), clock="other/1", **data),
        s.client(Event.AGENT_STALLED, "", at(100, 150), late_ns=50_000_000),
        s.client(Event.AGENT_THROTTLED, "", at(200, 300), throttled_ns=40_000_000, periods=2),
        s.client(Event.HOST_SUSPENDED, "", at(400, 500), suspended_ns=50_000_000),
        s.client(
            Event.AGENT_SENDING,
            "",
            at(-5000, 40_000),
            proto="udp",
            rate_hz=50.0,
            flows=1,
            sends=900,
            missed_slots=0,
            late_p50_ns=1,
            late_p99_ns=2,
            late_max_ns=3,
        ),
        s.client(Event.AGENT_STARTED, "", at(-6000), pid=1, udp_rate_hz=50.0, cpu_stat="v2"),
    ]
    cluster = [
        _by(Event.TRIGGER_BLOCKED, -100, verb="evict", attempt=1, status=429, retry_after_s=1),
        _by(Event.WATCH_GAP, 8000, Source.K8S, resource="pods", reason="410"),
        _by(Event.WATCH_LISTED, -6500, Source.K8S, resource="pods", subjects=[OLD, NEW]),
        s.cluster_event("Killing"),
        s.log_ended(),
    ]
    logs = [
        s.log(event, ms, clock="other/1", nonce="n", in_flight=2, oldest_in_flight_ns=5, code=0)
        for event, ms in (
            (Event.PROBE_STARTED, -5950),
            (Event.SIGTERM_RECEIVED, 40),
            (Event.READYZ_NOW_503, 40.5),
            (Event.EXITING, 5190),
        )
    ]
    environment = {
        "kubernetes_version": "v1.37.2",
        "node_count": 1,
        "nodes": [{"name": "n1", "kernel_version": "6.1", "architecture": None}],
        "cpus": 2,
        "warnings": ["no CNI was found"],
        "deviations": ["settled for 1 s"],
    }
    tried = prober(tries(-500, 130), tries(200, 3, Result.REFUSED), tries(300, 5, who=NEW))
    reset = s.client(Event.FLOW_RESET, trials.TCP, at(5101, 5102), errno="ECONNRESET")
    config: dict[str, object] = {
        "drain_behavior": "drain",
        "grace_period_seconds": 10,
        "pre_stop": {"kind": "sleep", "seconds": 1},
    }
    told = s.recording(
        *([s.accepted()], flow, s.alive(trials.TCP, 5100), [reset], end),
        *(harness, cluster, logs, s.cluster(), tried),
        config=config,
    )
    return replace(told, header=replace(told.header, environment=environment))


def _by(event: Event, ms: float, source: Source = Source.ORCHESTRATOR, **data: Any) -> Observation:
    return Observation(source=source, event=event, at=at(ms), data=data)


def refused_by_icmp() -> Recording:
    icmp = s.client(
        Event.FLOW_ICMP, "udp-0002", at(5120), type=3, code=3, errno="ECONNREFUSED", seq=101
    )
    return udp_trial([*s.alive("udp-0002", 5100), icmp])


def one_way() -> Recording:
    parts = ([s.accepted()], w.sender(), [w.started(OLD, -5950), w.FINAL, s.log_ended()])
    return s.recording(*parts, w.cluster(), config={"udp_one_way_flows": 1})


ALL = (
    *(trials.recording_of(Scenario(app=App(behavior=b))) for b in Behavior),
    udp_trial(),
    refused_by_icmp(),
    one_way(),
)


# --- any value, anywhere ---------------------------------------------------------------------

ODD: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [
            None,
            True,
            False,
            [],
            {},
            [1],
            {"a": 1},
            "",
            "odd",
            "é\u2192",
            [[]],
            [None],
            [{}],
            [{"a": []}],
        ]
    ),
    st.sampled_from([0, -1, 1, -(2**63), 2**63 - 1, 2**63, -(10**400), 10**400, 1.5, -0.0, 1e308]),
    st.integers(-(10**12), 10**12),
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place below a JSON value, as its container and key."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A recording in whose header or data some values became odd, or are missing."""
    lines = [json.loads(line) for line in dumps(draw(st.sampled_from(ALL))).splitlines()]
    for _ in range(draw(st.integers(1, 3))):
        line = draw(st.sampled_from(lines))
        inside = [*places(line if "recording_schema" in line else line.get("data"))]
        if "at" in line:
            inside += [(line, name) for name in ("subject", "clock", "data") if name in line]
            # Most of these are refused at once.
            inside += [(line["at"], 0), (line["at"], 1)] if draw(st.integers(0, 3)) == 0 else []
        if not inside:
            continue  # a header that lost its first field
        container, key = draw(st.sampled_from(inside))
        if isinstance(container, dict) and draw(st.integers(0, 4)) == 0:
            del container[key]
        else:
            container[key] = deepcopy(draw(ODD))
    return "".join(json.dumps(line) + "\n" for line in lines)


def judged(text: str) -> Report | None:
    """What ``drainwatch derive`` makes of it; None where it refuses with an error of its own."""
    try:
        return derive(loads(text))
    except (RecordingError, CannotDerive, ClockError):
        return None


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged())
def test_whatever_a_recording_holds_the_answer_is_a_report_or_a_named_error(text: str) -> None:
    found = judged(text)
    if found is not None:
        kept = report.dumps(found)
        assert report.dumps(report.loads(kept)) == kept
        assert show(found)


def test_the_undamaged_ones_are_judged() -> None:
    """Else the property would hold by refusing everything."""
    assert all(judged(dumps(recording)) is not None for recording in ALL)


# --- one case each ---------------------------------------------------------------------------


def lines_of(recording: Recording) -> list[dict[str, Any]]:
    return [json.loads(line) for line in dumps(recording).splitlines()]


def written(lines: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def with_data(recording: Recording, event: Event, **data: Any) -> Recording:
    """The recording, in which every such observation says this too."""
    lines = lines_of(recording)
    touched = [line for line in lines if line.get("event") == event]
    assert touched
    for line in touched:
        line["data"] = {**line.get("data", {}), **data}
    return loads(written(lines))


@pytest.mark.parametrize("odd", [[1], {}, [], None, "three"])
def test_an_odd_kind_of_icmp_error_is_an_unreachable_of_no_known_kind(odd: Any) -> None:
    flow = derive(with_data(refused_by_icmp(), Event.FLOW_ICMP, type=odd)).trial.flows[2]
    asked = derive(refused_by_icmp()).trial.flows[2]
    assert (asked.id, asked.mechanism) == ("udp-0002", Mechanism.REFUSED)
    assert (flow.outcome, flow.mechanism) == (asked.outcome, Mechanism.UNREACHABLE)


@pytest.mark.parametrize("odd", [[1], {}, {"ECONNRESET": 1}, None])
def test_an_odd_kind_of_errno_is_an_error_of_no_known_kind(odd: Any) -> None:
    recording = trials.recording_of(Scenario(app=App(behavior=Behavior.EXIT_NOW)))
    (flow,) = derive(with_data(recording, Event.FLOW_RESET, errno=odd)).trial.flows
    assert derive(recording).trial.flows[0].mechanism is Mechanism.RST
    assert (flow.outcome, flow.mechanism) == (Outcome.SEVERED, Mechanism.UNREACHABLE)


@pytest.mark.parametrize("odd", [[1], {}, 7])
def test_an_odd_kind_of_nonce_names_no_process(odd: Any) -> None:
    """As if it were not there: the line belongs to the process that spoke before."""
    found = derive(with_data(udp_trial(), Event.READYZ_NOW_503, nonce=odd)).trial.pod_ends
    assert found == derive(with_data(udp_trial(), Event.READYZ_NOW_503, nonce=None)).trial.pod_ends


@pytest.mark.parametrize(
    ("facts", "dropped"),
    [
        ({"kubernetes_version": 5}, "kubernetes_version"),
        ({"node_count": "one"}, "node_count"),
        ({"cpus": True}, "cpus"),
        ({"cni": ["kindnet"]}, "cni"),
        ({"nodes": "n1"}, "nodes"),
        ({"nodes": [5]}, "nodes"),
        ({"nodes": [{"name": "n1", "kernel_version": 6.1}]}, "nodes.kernel_version"),
    ],
)
def test_a_fact_of_a_wrong_kind_is_not_known_and_a_warning_says_so(
    facts: dict[str, Any], dropped: str
) -> None:
    header, *rest = lines_of(ALL[0])
    found = derive(loads(written([{**header, "environment": facts}, *rest])))
    assert report.loads(report.dumps(found)) == found
    (warning,) = found.environment.warnings
    assert warning == f"{dropped} of the recording is no such fact and was dropped"


def test_facts_of_the_right_kind_are_kept_and_nothing_is_warned_of() -> None:
    facts = {"node_count": 1, "cni": None, "nodes": [{"name": "n1", "kernel_version": "6.1"}]}
    header, *rest = lines_of(ALL[0])
    found = derive(loads(written([{**header, "environment": facts}, *rest]))).environment
    assert (found.node_count, found.nodes, found.warnings) == (
        1,
        (NodeFacts(name="n1", kernel_version="6.1"),),
        (),
    )


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def nested(levels: int) -> str:
    return '{"at": [0, 1], "data": {"a": ' + deep(levels) + "}}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (nested(100_000), "nested too deeply"),
        (nested(MAX_NESTING), f"more than {MAX_NESTING} deep"),
        ('{"at": [0, 1], "data": {"a": NaN}}', "NaN is no number"),
        ('{"at": [0, 1], "data": {"a": 1e999}}', "1e999 is no number"),
        (r'{"at": [0, 1], "data": {"a": "\ud800"}}', "half a surrogate pair"),
        ('{"at": [0, 9223372036854775808]}', "two integers of 64 bits"),
        ('{"at": [1, 0]}', "lo <= hi"),
        ('{"at": 5}', "not an observation"),
        ('{"at": [0, 1], "data": {"a": "\ud83d', "not an observation"),
    ],
)
def test_an_observation_that_no_report_could_repeat_is_refused_by_its_line(
    line: str, said: str
) -> None:
    header = dumps(ALL[0]).splitlines()[0]
    whole = line.replace("{", '{"source": "client", "event": "flow_fin", ', 1)
    with pytest.raises(RecordingError, match=r"^line 2 is not an observation") as refusal:
        loads(f"{header}\n{whole}\n")
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("git_commit", 5, "'git_commit' is not a string"),
        ("trial_id", None, "'trial_id' is not a string"),
        ("recording_schema", "1", "'recording_schema' is a number"),
        ("recording_schema", 99, "newer than"),
        ("scenario", [], "'scenario' is not an object"),
        ("scenario", {"config": {"a": 10**30}}, "64 bits"),
    ],
)
def test_a_header_of_a_wrong_kind_is_refused(field: str, value: Any, said: str) -> None:
    header, *rest = lines_of(ALL[0])
    with pytest.raises(RecordingError) as refusal:
        loads(written([{**header, field: value}, *rest]))
    assert said in str(refusal.value)


def test_a_smiley_of_two_halves_and_a_nested_value_are_kept() -> None:
    lines = lines_of(ALL[0])
    lines[1]["data"]["note"] = "\U0001f600"
    lines[1]["data"]["deep"] = json.loads(deep(MAX_NESTING - 2))
    lines[1]["data"]["flat"] = [[]] * 1000
    assert loads(written(lines)).observations[0].data["note"] == "\U0001f600"


@pytest.mark.parametrize("nonsense", [5, "x", {"seconds": 1}, [1], True, -(10**300)])
def test_a_retry_after_of_another_kind_is_left_out(nonsense: Any) -> None:
    found = derive(with_data(udp_trial(), Event.TRIGGER_BLOCKED, retry_after_s=nonsense))
    (said,) = found.trial.trigger.blocked
    assert ("Retry-After 5 s" in said) is (nonsense == 5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not valid JSON: Expecting value: line 1 column 1"),
        ('{"schema_version": 1,\n "trial": {"id": ', "not valid JSON: Expecting value: line 2 col"),
        (deep(100_000), "nested too deeply"),
        (deep(500), "not valid JSON: recursion limit"),
        (r'"\ud800"', "not valid JSON: "),
        ('{"schema_version": NaN}', "NaN is no number"),
        ("1" * 5000, "5000 digits"),
        ('{"schema_version": 1}', "not a pytest-drainwatch report"),
    ],
)
def test_a_damaged_report_is_called_what_it_is(text: str, said: str) -> None:
    with pytest.raises(report.ReportError) as refusal:
        report.loads(text)
    assert said in str(refusal.value)
