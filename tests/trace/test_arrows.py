"""Arrows: drawn where the evidence carries them, and not where it is missing or speaks against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_drainwatch.core.document import (
    FlowReport,
    PodEnd,
    Report,
    TimelineEntry,
    TrialReport,
)
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Source
from pytest_drainwatch.core.pod.ending import EndedBy, Initiator, PreStopOutcome
from pytest_drainwatch.render.trace.arrows import MOST
from pytest_drainwatch.render.trace.picture import Arrow
from pytest_drainwatch.render.trace.trials import picture
from tests.trace import reports

Change = Callable[[TrialReport], TrialReport]


def arrows(judged: Report, *changes: Change) -> list[Arrow]:
    trial = judged.trial
    for change in changes:
        trial = change(trial)
    return list(picture(replace(judged, trial=trial)).arrows)


def names(judged: Report, *changes: Change) -> Counter[str]:
    return Counter(arrow.name for arrow in arrows(judged, *changes))


def flows(change: Callable[[FlowReport], FlowReport]) -> Change:
    return lambda trial: replace(trial, flows=tuple(map(change, trial.flows)))


def ends(**changes: Any) -> Change:
    def change(end: PodEnd) -> PodEnd:
        return replace(end, **changes)

    return lambda trial: replace(trial, pod_ends=tuple(map(change, trial.pod_ends)))


def without(event: str) -> Change:
    return lambda trial: replace(
        trial, timeline=tuple(entry for entry in trial.timeline if entry.event != event)
    )


DRAIN, EXIT_NOW, IGNORE = "B-drain-delete", "A-exit-now-delete", "C-ignore-delete"


@pytest.mark.parametrize(
    ("arm", "chain"),
    [
        (DRAIN, ["deletes", "SIGTERM", "drains", "drain window", "FIN"]),
        (DRAIN, ["deletes", "ready:false", "rules lead elsewhere by this look"]),
        (EXIT_NOW, ["deletes", "SIGTERM", "RST"]),
        (IGNORE, ["deletes", "grace period", "SIGKILL"]),
    ],
)
def test_a_chain_leads_from_the_trigger_to_the_end(arm: str, chain: list[str]) -> None:
    found = arrows(reports.sample(arm))
    at = next(arrow.cause for arrow in found if arrow.name == chain[0])
    assert at.name == "accepted by the API server"
    for name in chain:
        at = next(arrow.effect for arrow in found if arrow.name == name and arrow.cause is at)


@pytest.mark.parametrize(
    ("arm", "name", "number"),
    [
        (DRAIN, "FIN", 10),
        (DRAIN, "re-homed after ready:false", 10),
        (DRAIN, "answers from now on", 10),
        (DRAIN, "RST", 0),
        (DRAIN, "SIGKILL", 0),
        (DRAIN, "grace period", 0),
        (EXIT_NOW, "RST", 10),
        (EXIT_NOW, "FIN", 0),
        (EXIT_NOW, "drains", 0),
        (EXIT_NOW, "refused", 6),
        (IGNORE, "SIGKILL", 11),  # the container, and each TCP connection
        (IGNORE, "FIN", 0),
        (IGNORE, "ignores it", 1),
    ],
)
def test_each_behaviour_has_its_own(arm: str, name: str, number: int) -> None:
    assert names(reports.sample(arm))[name] == number


def no_reason(flow: FlowReport) -> FlowReport:
    history = tuple(replace(step, detail="seq=1 reason=idle") for step in flow.history)
    return replace(flow, history=history)


def other_pod(flow: FlowReport) -> FlowReport:
    return replace(flow, responders=("another/nonce",))


def nobody(flow: FlowReport) -> FlowReport:
    return replace(flow, responders=())


def early(flow: FlowReport) -> FlowReport:
    return replace(flow, terminal_ns=(-2_000_000, -1_000_000))


@pytest.mark.parametrize(
    ("arm", "name", "change"),
    [
        # Without the evidence.
        (DRAIN, "FIN", flows(no_reason)),
        (DRAIN, "FIN", flows(other_pod)),
        (DRAIN, "FIN", flows(nobody)),
        (DRAIN, "FIN", without("drain_deadline_reached")),
        (DRAIN, "drains", without("drain_started")),
        (DRAIN, "deletes", ends(initiator=Initiator.OTHER_DELETION)),
        (DRAIN, "SIGTERM", ends(initiator=Initiator.CONTAINER_RESTART)),
        (DRAIN, "SIGTERM", ends(sigterm_ns=None, stop_signal_ns=None)),
        (
            DRAIN,
            "ready:false",
            lambda t: replace(t, windows=tuple(replace(w, terminating_ns=None) for w in t.windows)),
        ),
        (DRAIN, "re-homed after ready:false", flows(lambda f: replace(f, evidence=()))),
        (DRAIN, "answers from now on", flows(lambda f: replace(f, responders=f.responders[:1]))),
        (DRAIN, "rules lead elsewhere by this look", lambda t: replace(t, mechanism=())),
        (EXIT_NOW, "RST", without("tcp_flows_closed")),
        (EXIT_NOW, "RST", flows(lambda f: replace(f, mechanism=Mechanism.EPIPE))),
        (EXIT_NOW, "refused", flows(lambda f: replace(f, evidence=()))),
        (IGNORE, "SIGKILL", ends(ended_by=EndedBy.UNKNOWN)),
        (IGNORE, "grace period", ends(expected_kill_ns=None)),
        # Against it.
        (DRAIN, "FIN", flows(early)),
        (EXIT_NOW, "RST", flows(early)),
        (DRAIN, "FIN", flows(lambda f: replace(f, outcome=Outcome.SEVERED))),
    ],
)
def test_what_evidence_does_not_carry_is_not_drawn(arm: str, name: str, change: Change) -> None:
    judged = reports.sample(arm)
    assert names(judged)[name]
    assert not names(judged, change)[name]


def hooked(outcome: PreStopOutcome | None) -> Change:
    """A hook that the probe tells of, between the deletion and SIGTERM."""

    def change(trial: TrialReport) -> TrialReport:
        (uid,) = trial.trigger.targets
        told = tuple(
            TimelineEntry(
                t_ms=ms,
                t_ns=(ms * NS_PER_MS, ms * NS_PER_MS),
                source=Source.PROBE,
                event=event,
                subject=uid,
            )
            for event, ms in (("prestop_called", 20), ("prestop_answered", 40))
        )
        return ends(pre_stop=outcome)(replace(trial, timeline=(*trial.timeline, *told)))

    return change


@pytest.mark.parametrize(
    ("outcome", "over"),
    [(PreStopOutcome.COMPLETED, 1), (PreStopOutcome.CUT_OFF, 0), (None, 0)],
)
def test_sigterm_follows_a_hook_that_was_completed(
    outcome: PreStopOutcome | None, over: int
) -> None:
    found = names(reports.sample(DRAIN), hooked(outcome))
    assert found["preStop"] == 1
    assert found["hook over"] == over
    assert not names(reports.sample(DRAIN))["preStop"]


def test_no_effect_is_before_its_cause_and_each_names_its_evidence() -> None:
    for arm in (DRAIN, EXIT_NOW, IGNORE, "D-drain-evict", "E-drain-scale"):
        for arrow in arrows(reports.sample(arm)):
            assert arrow.cause.at_us[0] < arrow.effect.at_us[1]
            assert arrow.why


def test_of_many_flows_the_first_ones_have_arrows() -> None:
    judged = reports.sample(EXIT_NOW)
    tcp = next(f for f in judged.trial.flows if f.proto == "tcp")
    assert tcp.terminal_ns is not None
    lo, hi = tcp.terminal_ns
    many = tuple(
        replace(tcp, id=f"tcp-{n:05d}", terminal_ns=(lo + n, hi + n)) for n in range(MOST + 50)
    )
    found = [a for a in arrows(judged, lambda t: replace(t, flows=many)) if a.name == "RST"]
    assert len(found) == MOST
    assert max(arrow.effect.at_us[0] for arrow in found) <= (lo + MOST) // 1000
