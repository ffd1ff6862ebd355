"""Text for people: uncertainty is shown where it is larger than the last digit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Counts, OrderReport, Report
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, Order
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.pod.ending import PreStopOutcome
from pytest_drainwatch.core.scenario import App, Behavior, Scenario, matrix
from pytest_drainwatch.render import terminal
from tests.core import story as s
from tests.core.endings import served
from tests.core.trials import recording_of

MS = NS_PER_MS


@pytest.mark.parametrize(
    ("bounds", "shown"),
    [
        (None, "not measured"),
        ((41 * MS, 41 * MS + 200_000), "41 ms"),
        ((41 * MS, 46 * MS), "41–46 ms"),
        # Narrower than a millisecond, across the edge of one: the upper bound, as in *_ms.
        ((41 * MS + 400_000, 41 * MS + 600_000), "42 ms"),
        ((-8 * MS, 3 * MS), "-8 to 3 ms"),
        ((25_041 * MS, 25_043 * MS), "25.04 s"),
        # Outward, so that both ends are inside what is shown.
        ((1926 * MS, 2414 * MS), "1.92–2.42 s"),
        ((-400_000, -100_000), "0 ms"),
        ((25_041 * MS, 25_066 * MS), "25.04–25.07 s"),
        ((1920 * MS, 2420 * MS), "1.92–2.42 s"),
        ((-323 * MS, 1177 * MS), "-0.33 to 1.18 s"),
        ((0, 0), "0 ms"),
    ],
)
def test_durations_show_their_uncertainty(bounds: tuple[int, int] | None, shown: str) -> None:
    assert terminal.duration(bounds) == shown


def test_a_report_has_its_three_parts() -> None:
    text = terminal.show(derive(recording_of(Scenario())))
    lines = text.splitlines()
    parts = [line for line in lines if line in {"SUMMARY", "TIMELINE", "FLOWS"}]
    assert parts == ["SUMMARY", "TIMELINE", "FLOWS"]
    rows = [" ".join(line.split()) for line in lines]
    assert "trigger -> sigterm 40 ms" in rows
    (accepted,) = [row for row in rows if row.startswith("trigger -> accepted")]
    (effective,) = [row for row in rows if row.startswith("trigger -> effective")]
    assert "not measured" not in accepted + effective
    assert "sigterm before last flow terminal yes" in rows
    assert any("tcp-0001  target  drained-clean-close  announced-fin" in line for line in lines)
    assert any("sigterm_received" in line for line in lines)


def test_what_was_not_measured_says_so() -> None:
    recording = recording_of(Scenario())
    blind = replace(
        recording, observations=tuple(o for o in recording.observations if o.source != "probe")
    )
    text = terminal.show(derive(blind))
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "trigger -> sigterm not measured" in rows
    assert not [row for row in rows if row.startswith("sigterm before")]
    assert "note: no SIGTERM line" in text


@pytest.mark.parametrize("scenario", matrix(behavior=list(Behavior), trigger=["delete"]))
def test_a_short_timeline_keeps_both_ends(scenario: Scenario) -> None:
    entries = derive(recording_of(scenario)).trial.timeline
    rows = terminal.timeline(entries, limit=6)
    assert len(rows) == 6
    assert "more" in rows[2]
    assert "observation_window_closed" in rows[-1]
    assert "pod_object_deleted" in rows[-2]


def test_equal_ends_are_folded() -> None:
    (end,) = [
        e for e in derive(recording_of(Scenario())).trial.timeline if e.event == "flow_terminal"
    ]
    ends = [replace(end, flow_id=f"tcp-000{n}", t_ms=end.t_ms + n) for n in range(4)]
    rows = terminal.timeline(ends, limit=20)
    assert len(rows) == 1
    assert "4 flows by +5044 ms: drained-clean-close" in rows[0]


def test_counts_in_words() -> None:
    assert terminal.counts(Counts()) == "none"
    mixed = Counts(total=10, severed=10, mechanisms={"refused": 6, "rehomed": 4})
    assert terminal.counts(mixed) == "6/10 refused, 4/10 rehomed"
    assert terminal.counts(Counts(total=2, survived_window=2, mechanisms={"none": 2})) == (
        "2/2 survived"
    )


def test_what_was_not_measured_is_not_called_survived() -> None:
    mixed = Counts(total=3, survived_window=1, not_measured=2, mechanisms={"none": 3})
    assert terminal.counts(mixed) == "1/3 survived, 2/3 not explained (2 not measured)"
    taken_over = Counts(total=1, severed=1, mechanisms={"none": 1})
    assert terminal.counts(taken_over) == "1/1 not explained"
    stalled = Counts(total=2, not_measured=2, mechanisms={"client-stall": 2})
    assert terminal.counts(stalled) == "2/2 client-stall (2 not measured)"


def test_a_line_for_each_container_that_ended() -> None:
    def line(scenario: Scenario) -> str:
        rows = [
            " ".join(r.split()) for r in terminal.show(derive(recording_of(scenario))).splitlines()
        ]
        (found,) = [row for row in rows if row.startswith("ended ")]
        return found

    drained = line(Scenario())
    assert drained.startswith("ended pod-uid-old/probe: exit by api-delete, at ")
    assert "grace 10 s" in drained
    assert "kill expected" not in drained, "what ends by itself needs no kill"
    killed = line(Scenario(app=App(behavior=Behavior.IGNORE)))
    assert "sigkill-at-grace by api-delete" in killed
    assert "kill expected 10.00–10.04 s" in killed


def test_hook_and_requests_in_flight_are_told() -> None:
    seen = [
        *served(4100),
        s.log(Event.PROBE_STARTED, -5950, nonce="n"),
        s.log(Event.SIGTERM_RECEIVED, 3050, nonce="n", in_flight=3, oldest_in_flight_ns=250 * MS),
    ]
    told = s.recording(
        [s.accepted()], seen, s.cluster(0, 4200), config={"pre_stop": {"sleep_seconds": 3}}
    )
    text = terminal.show(derive(told))
    assert "preStop completed after 3.00–3.05 s" in text
    assert "3 in flight at SIGTERM, the oldest for 250 ms" in text


def rows_of(report: Report) -> list[str]:
    """The lines of the shown report, each blank of one width."""
    return [" ".join(line.split()) for line in terminal.show(report).splitlines()]


def test_every_value_of_the_summary_stands_in_its_own_row() -> None:
    report = derive(recording_of(Scenario()))
    named = {
        "trigger -> sigterm": "trigger_to_sigterm_ns",
        "sigterm -> endpoint ready:false": "sigterm_to_ready_false_ns",
        "sigterm -> last flow terminal": "sigterm_to_last_flow_terminal_ns",
        "trigger -> container terminated": "trigger_to_container_terminated_ns",
        "trigger -> endpoint removed": "trigger_to_endpoint_removed_ns",
        "last tcp end -> endpoint removed": "dead_endpoint_window_ns",
    }
    values = {field: (n * MS, n * MS) for n, field in enumerate(named.values(), start=101)}
    summary = replace(report.trial.summary, **values)  # type: ignore[arg-type]
    rows = rows_of(replace(report, trial=replace(report.trial, summary=summary)))
    for n, row in enumerate(named, start=101):
        assert f"{row} {n} ms" in rows


@pytest.mark.parametrize(
    ("order", "answer"),
    [(Order.BEFORE, "yes"), (Order.AFTER, "no"), (Order.INDETERMINATE, "indeterminate")],
)
def test_an_order_is_a_question_with_three_answers(order: Order, answer: str) -> None:
    report = derive(recording_of(Scenario()))
    asked = (OrderReport(first="sigterm", second="endpoint_removed", order=order),)
    summary = replace(report.trial.summary, orders=asked)
    rows = rows_of(replace(report, trial=replace(report.trial, summary=summary)))
    assert [row for row in rows if row.startswith("sigterm before")] == [
        f"sigterm before endpoint removed {answer}"
    ]


def test_only_the_targets_ends_are_in_the_row_of_a_run() -> None:
    (flow,) = derive(recording_of(Scenario())).trial.flows
    ended = (5040 * MS, 5041 * MS)
    assert flow.terminal_ns == ended
    assert terminal.ends([flow], Proto.TCP) == "5.04 s"
    assert terminal.ends([flow], Proto.UDP) == "-"
    other = replace(flow, role=Role.BYSTANDER, terminal_ns=(9000 * MS, 9000 * MS))
    assert terminal.ends([flow, other], Proto.TCP) == "5.04 s"
    assert terminal.ends([other], Proto.TCP) == "-"
    late = replace(flow, terminal_ns=(6000 * MS, 6000 * MS))
    assert terminal.ends([flow, late], Proto.TCP) == "5.04–6.00 s"


def test_a_flows_row_says_when_it_ended() -> None:
    report = derive(recording_of(Scenario()))
    (row,) = [row for row in rows_of(report) if row.startswith("tcp-0001 target")]
    assert row.startswith("tcp-0001 target drained-clean-close announced-fin 5.04 s 100 ")
    (flow,) = report.trial.flows
    still = replace(flow, terminal_ns=None)
    (row,) = [
        row
        for row in rows_of(replace(report, trial=replace(report.trial, flows=(still,))))
        if row.startswith("tcp-0001 target")
    ]
    assert row.startswith("tcp-0001 target drained-clean-close announced-fin - 100 ")


def test_a_hook_of_which_nothing_is_known_is_said_to_be() -> None:
    report = derive(recording_of(Scenario()))
    (end,) = report.trial.pod_ends

    def line(pre_stop: PreStopOutcome | None) -> str:
        ends = (replace(end, pre_stop=pre_stop, pre_stop_ns=None),)
        rows = rows_of(replace(report, trial=replace(report.trial, pod_ends=ends)))
        (found,) = [row for row in rows if row.startswith("ended ")]
        return found

    assert "preStop unknown" in line(None)
    assert "preStop" not in line(PreStopOutcome.NONE)


def test_what_the_environment_did_not_tell_is_said() -> None:
    report = derive(recording_of(Scenario()))
    warned = replace(report.environment, warnings=("kube-proxy's mode could not be read",))
    rows = rows_of(replace(report, environment=warned))
    assert "note: kube-proxy's mode could not be read" in rows
    assert "note: kube-proxy's mode could not be read" not in rows_of(report)
