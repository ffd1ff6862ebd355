"""What is said to have broken, why, and what to try: a row a verdict, and its opposite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from pytest_drainwatch import report as reading
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import FlowReport, Report, TrialReport
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.http.ending import Ending
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.pod.ending import EndedBy, PreStopOutcome
from pytest_drainwatch.core.probing.document import NewConnections
from pytest_drainwatch.render.advice import Finding, findings
from tests.core import story as s
from tests.core.http.asked import Asked, Lane, http

SAMPLE = Path(__file__).parents[2] / "results/sample/kubernetes-1.37"
Change = Callable[[TrialReport], TrialReport]


@cache
def sample(arm: str) -> Report:
    """One of the ancestor's five arms, as measured here."""
    (found,) = SAMPLE.glob(f"{arm}-*/r00/report.json")
    return reading.loads(found.read_text(encoding="utf-8"))


def found(arm: str, *changes: Change, **facts: object) -> dict[str, Finding]:
    """What is found of it, by part; the trial changed, or the environment."""
    report = sample(arm)
    trial = report.trial
    for change in changes:
        trial = change(trial)
    environment = replace(report.environment, **facts)  # type: ignore[arg-type]
    return {
        each.part: each for each in findings(replace(report, trial=trial, environment=environment))
    }


def said(finding: Finding) -> tuple[str, str]:
    """All reasons and all advice."""
    return (
        " | ".join(each.why for each in finding.because),
        " | ".join(text for each in finding.because for text in each.advice),
    )


def ended(**how: object) -> Change:
    return lambda trial: replace(
        trial,
        pod_ends=tuple(replace(end, **how) for end in trial.pod_ends),  # type: ignore[arg-type]
    )


def verb(name: str) -> Change:
    return lambda trial: replace(trial, trigger=replace(trial.trigger, verb=name))


def config(**values: object) -> Change:
    return lambda trial: replace(trial, config={**trial.config, **values})


def without(event: str) -> Change:
    return lambda trial: replace(
        trial, timeline=tuple(entry for entry in trial.timeline if entry.event != event)
    )


def also(event: str) -> Change:
    def change(trial: TrialReport) -> TrialReport:
        one = next(entry for entry in trial.timeline if entry.event == "sigterm_received")
        return replace(trial, timeline=(*trial.timeline, replace(one, event=event)))

    return change


def flows(proto: Proto, **how: object) -> Change:
    def one(flow: FlowReport) -> FlowReport:
        return replace(flow, **how) if flow.proto is proto else flow  # type: ignore[arg-type]

    return lambda trial: replace(trial, flows=tuple(map(one, trial.flows)))


def prober(**how: object) -> Change:
    def one(each: NewConnections) -> NewConnections:
        return replace(each, **how)  # type: ignore[arg-type]

    return lambda trial: replace(trial, new_connections=tuple(map(one, trial.new_connections)))


def twice(trial: TrialReport) -> TrialReport:
    (one,) = trial.pod_ends
    return replace(trial, pod_ends=(one, replace(one, pod_uid="another")))


KILLED = {"ended_by": EndedBy.SIGKILL_AT_GRACE, "exit_code": 137, "deletion_grace_period_s": 10}


# --- open TCP connections ----------------------------------------------------------------


def test_connections_that_were_cut_are_counted_timed_and_named() -> None:
    tcp = found("A")["tcp"]
    assert tcp.broken is True
    assert tcp.what.startswith("10/10 rst, ")
    assert "after the trigger" in tcp.what
    # Over the same instant: which of them came first is not known.
    assert tcp.what.endswith("within 1 ms of SIGTERM")
    assert tcp.which == "tcp-0001 … tcp-0010"


def test_connections_that_were_closed_cleanly_are_no_finding() -> None:
    tcp = found("B")["tcp"]
    assert tcp.broken is False
    assert tcp.because == ()


@pytest.mark.parametrize(
    ("arm", "changes", "why", "advice"),
    [
        ("A", [], "it does not drain", "handle SIGTERM"),
        # Bounds that overlap: no less than nothing passed between.
        ("A", [ended(ended_ns=(-NS_PER_S, NS_PER_S // 2))], ") 0–", "handle SIGTERM"),
        # It took its time: what it did with it the trial cannot tell.
        ("A", [ended(ended_ns=(20 * NS_PER_S, 20 * NS_PER_S))], "after SIGTERM", ""),
        ("A", [ended(sigterm_ns=None)], "how long after SIGTERM is not known", ""),
        ("A", [ended(sigterm_ns=(0, 2 * NS_PER_S))], "how long after SIGTERM is not known", ""),
        ("A", [twice], "2 apps ended by themselves (exit code 0) 1–343 ms", "handle SIGTERM"),
        ("A", [ended(ended_by=EndedBy.EXIT_BEFORE_SIGTERM)], "before it got SIGTERM", ""),
        ("A", [ended(ended_by=EndedBy.KILLED_EARLY)], "by whom is not known", ""),
        ("A", [ended(ended_by=EndedBy.UNKNOWN)], "is not known", ""),
        ("A", [lambda t: replace(t, pod_ends=())], "was not seen", ""),
        ("A", [ended(ended_by=EndedBy.OOM_KILLED)], "OOMKilled", "resources.limits.memory"),
        ("A", [ended(ended_by=EndedBy.SIGNAL_NOT_DELIVERED)], "SIGTERM never reached", "exec app"),
        (
            "A",
            [ended(ended_by=EndedBy.SIGNAL_NOT_DELIVERED), config(pid1="shell")],
            "a shell is PID 1",
            "exec app",
        ),
        ("A", [verb("force-delete")], "deleted by force", "without --force"),
        ("A", [verb("container-kill")], "nobody was told", "more replicas"),
        ("A", [verb("none")], "why they ended is not known", ""),
        # Killed at the end of the grace period: what it did until then decides.
        ("C", [], "killed at the end of its grace period of 30 s", "handle SIGTERM"),
        (
            "C",
            [ended(**KILLED), without("sigterm_ignored"), also("drain_started")],
            "its grace period of 10 s",
            "terminationGracePeriodSeconds above 25",
        ),
        (
            "C",
            [
                ended(**KILLED, pre_stop_ns=(4 * NS_PER_S, 5 * NS_PER_S)),
                without("sigterm_ignored"),
                also("drain_started"),
            ],
            "killed",
            "terminationGracePeriodSeconds above 30",
        ),
        ("C", [without("sigterm_ignored")], "killed at the end", ""),
        (
            "C",
            [
                config(drain_max_seconds=None),
                without("sigterm_ignored"),
                also("drain_started"),
            ],
            "killed at the end",
            "above 30",
        ),
        (
            "C",
            [ended(**KILLED), config(attached={"workload": "deployment/web"})],
            "killed at the end",
            "if SIGTERM does not reach it",
        ),
        (
            "C",
            [ended(**KILLED, pre_stop=PreStopOutcome.CUT_OFF)],
            "killed at the end",
            "shorten the preStop hook",
        ),
    ],
)
def test_why_they_were_cut_and_what_to_try(
    arm: str, changes: list[Change], why: str, advice: str
) -> None:
    """Where the evidence carries no advice there is none, and it is said what is not known."""
    reasons, tries = said(found(arm, *changes)["tcp"])
    assert why in reasons
    assert advice in tries if advice else tries == ""


@pytest.mark.parametrize(
    ("outcome", "mechanism", "advice"),
    [
        (Outcome.READ_TIMEOUT, Mechanism.SILENCE, "TCP keepalive"),
        (Outcome.READ_TIMEOUT, Mechanism.ACCEPTED_NEVER_SERVED, "TCP keepalive"),
        (Outcome.SEVERED, Mechanism.ANNOUNCED_RST, "shut down only the sending side"),
    ],
)
def test_ends_that_are_no_cut_have_reasons_of_their_own(
    outcome: Outcome, mechanism: Mechanism, advice: str
) -> None:
    changed = flows(Proto.TCP, outcome=outcome, mechanism=mechanism)
    reasons, tries = said(found("A", changed)["tcp"])
    assert advice in tries
    assert "does not drain" not in reasons


@pytest.mark.parametrize(
    ("mechanism", "why"),
    [
        (Mechanism.CLIENT_STALL, "of 10 our own machine could not look"),
        (Mechanism.NONE, "of 10 the recording does not show the end"),
    ],
)
def test_what_was_not_measured_is_neither_broken_nor_kept(mechanism: Mechanism, why: str) -> None:
    tcp = found("A", flows(Proto.TCP, outcome=Outcome.NOT_MEASURED, mechanism=mechanism))["tcp"]
    assert tcp.broken is None
    assert why in said(tcp)[0]


def test_flows_of_pods_that_nobody_terminated_must_not_end() -> None:
    others = found("A", flows(Proto.TCP, role=Role.BYSTANDER))["others"]
    assert others.broken is True
    assert others.what == "10 flow(s) of pods that were not terminated ended too"
    alive = flows(Proto.TCP, role=Role.BYSTANDER, outcome=Outcome.SURVIVED)
    assert "others" not in found("A", alive)


# --- UDP -----------------------------------------------------------------------------------


def test_udp_that_is_led_away_from_a_pod_that_serves_follows_its_readiness() -> None:
    reasons, tries = said(found("B")["udp"])
    assert "10 were led away from a pod that still served" in reasons
    assert tries == "keep the readiness probe passing while the app drains (until it ends)"
    reasons, tries = said(found("B", without("readyz_now_503"))["udp"])
    assert "what did it is not known" in reasons
    assert tries == ""


def test_udp_that_ends_with_its_pod_is_for_clients_to_repeat() -> None:
    reasons, tries = said(found("A")["udp"])
    assert "they ended with their pod, without an answer for" in reasons
    assert "let clients repeat what is not answered" in tries


def test_udp_that_nobody_answers_any_more_has_no_advice() -> None:
    reasons, tries = said(found("E")["udp"])
    assert "nothing was left that could" in reasons
    assert tries == ""


def test_of_an_older_report_it_is_not_known_what_came_after() -> None:
    reasons, tries = said(found("E", flows(Proto.UDP, continuity=None))["udp"])
    assert (reasons, tries) == ("what came after them is not recorded", "")
    reasons, _ = said(found("A", flows(Proto.UDP, continuity=None))["udp"])
    assert "they ended with their pod" in reasons, "some were answered by another one"


def test_udp_whose_pods_end_was_not_seen_did_not_surely_end_with_it() -> None:
    reasons, _ = said(found("A", ended(ended_ns=None))["udp"])
    assert "whether they ended with their pod or were led away from it is not known" in reasons
    reasons, _ = said(found("A", lambda t: replace(t, pod_ends=()))["udp"])
    assert "is not known" in reasons
    assert "they ended with their pod," not in reasons


def test_where_somebody_is_meant_to_serve_it_is_not_known_why_nobody_did() -> None:
    reasons, _ = said(found("E")["udp"])
    assert "nothing was left that could" in reasons
    reasons, _ = said(found("E", verb("delete"))["udp"])
    assert "no pod answered any flow after the target's: " in reasons
    assert "nothing was left" not in reasons


# --- new connections -----------------------------------------------------------------------


def test_a_sleep_until_the_last_that_failed_was_begun() -> None:
    new = found("B")["new"]
    assert new.what.startswith("54/610 failed, 0.06–1.13 s")
    reasons, tries = said(new)
    assert "54 of them while the endpoint was still advertised" in reasons
    assert "a preStop sleep of 2 s or more (lifecycle.preStop.sleep.seconds: 2)" in tries


def test_where_none_failed_there_is_nothing_to_try() -> None:
    new = found("B", prober(observed_failing=None, failed=0))["new"]
    assert (new.broken, new.because) == (False, ())
    new = found("B", prober(observed_failing=None, failed=0, attempts=0))["new"]
    assert new.broken is None


def late(seconds: int) -> Change:
    """All pods deleted that long after the trigger, as one after the other in a rollout."""
    return ended(deletion_ns=(seconds * NS_PER_S, seconds * NS_PER_S))


def some_served(trial: TrialReport) -> TrialReport:
    (one,) = trial.new_connections
    failing = one.observed_failing
    assert failing is not None
    wider = replace(failing, attempts=failing.attempts + 100)
    return replace(trial, new_connections=(replace(one, observed_failing=wider),))


@pytest.mark.parametrize(
    ("arm", "changes", "facts", "why", "advice"),
    [
        ("A", [], {}, "served again after 2.20 s", "preStop sleep of 3 s"),
        ("B", [config(pre_stop={"sleep_seconds": 1})], {}, "", "preStop sleep of 2 s"),
        # It slept as long, and they failed all the same.
        ("B", [config(pre_stop={"sleep_seconds": 2})], {}, "took 2.00 s: why is not known", ""),
        ("B", [ended(deletion_grace_period_s=2)], {}, "", "it is 2, and the sleep counts"),
        ("E", [], {}, "no pod was left to serve", ""),
        ("E", [verb("delete")], {}, "why is not known", ""),
        ("B", [verb("container-kill")], {}, "no preStop hook runs", ""),
        ("B", [verb("force-delete")], {}, "no preStop hook runs", ""),
        ("B", [ended(sigterm_ns=None, ended_ns=None)], {}, "stopped serving is not known", ""),
        ("B", [ended(sigterm_ns=(5 * NS_PER_S,) * 2)], {}, "before any pod was told to stop", ""),
        # One pod after the other: what kube-proxy promises, if others served meanwhile.
        *(
            ("B", [late(3), some_served, config(replicas=2)], {"min_sync_period_ms": ms}, "", so)
            for ms, so in (
                (
                    0,
                    "preStop sleep of 1 s or more (lifecycle.preStop.sleep.seconds: 1): kube-proxy",
                ),
                (1000, "preStop sleep of 2 s"),
                (10_000, "preStop sleep of 11 s"),
                (None, "minSyncPeriod is 1 s by default (what it is here is not known)"),
            )
        ),
        # The same where all were told at once.
        ("B", [some_served, config(replicas=2)], {"min_sync_period_ms": 10_000}, "", "of 11 s"),
        ("B", [late(3)], {}, "no other pod served meanwhile", ""),
        # What a single pod of a Deployment served itself is nobody else's.
        ("B", [late(3), some_served], {}, "no other pod served meanwhile", ""),
        # All old pods at once, as strategy Recreate does: new ones come when they have gone.
        ("B", [verb("rollout")], {}, "strategy", ""),
        ("B", [config(workload="statefulset")], {}, "would only put this off", ""),
        ("B", [config(workload="statefulset/db")], {}, "would only put this off", ""),
        ("B", [config(workload="app=web")], {}, "is not known", ""),
        ("B", [config(workload="deployment/web")], {}, "", "preStop sleep of 2 s"),
        # It has a hook that is no sleep; a container has one at most.
        ("B", [config(pre_stop={"exec": ["true"]})], {}, "", "by a sleep in the one it has"),
        # A hook that sleeps does not put off what does not wait for SIGTERM.
        *(
            ("B", [ended(ended_by=how)], {}, "ends before SIGTERM", "")
            for how in (EndedBy.OOM_KILLED, EndedBy.KILLED_EARLY, EndedBy.EXIT_BEFORE_SIGTERM)
        ),
        (
            "B",
            [ended(ended_by=EndedBy.UNKNOWN, sigterm_ns=None, stop_signal_ns=None)],
            {},
            "stopped serving is not known",
            "",
        ),
    ],
)
def test_why_new_connections_failed_and_what_to_try(
    arm: str, changes: list[Change], facts: Mapping[str, object], why: str, advice: str
) -> None:
    reasons, tries = said(found(arm, *changes, **facts)["new"])
    assert why in reasons
    assert advice in tries if advice else tries == ""


# --- HTTP ------------------------------------------------------------------------------------


def test_requests_that_were_cut_and_those_that_found_nobody() -> None:
    failed = [
        Asked(ms=0, count=10),
        Asked(ms=1000, ended=Ending.RST, took_ms=1),
        *(Asked(ms=1100 + 100 * n, ended=Ending.REFUSED, connection=None) for n in range(3)),
        Asked(ms=1400, count=10, connection=2),
    ]
    fine = Lane(name="new-00", asked=[Asked(ms=0, count=20)])
    report = derive(s.recording([s.accepted()], s.cluster(), http(Lane(asked=failed), fine)))
    hurt, unhurt = (each for each in findings(report) if each.part == "http")
    assert hurt.broken is True
    assert hurt.what.startswith("keepalive 4/24 failed")
    assert hurt.which == "keepalive-00"
    reasons, tries = said(hurt)
    assert "1 had been written when their connection was cut" in reasons
    assert "3 found nobody to connect to" in reasons
    assert "on SIGTERM answer what is under way" in tries
    assert (unhurt.broken, unhurt.because) == (False, ())
    assert unhurt.what.startswith("new 0/20 failed")


# --- exits, and all together -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "broken"), [(0, False), (137, True), (1, True), (None, None)], ids=str
)
def test_exit_codes_other_than_0_are_broken(code: int | None, broken: bool | None) -> None:
    exit_ = found("B", ended(exit_code=code))["exit"]
    assert exit_.broken is broken


def test_143_is_a_death_by_sigterm_or_a_jvms_orderly_end() -> None:
    reasons, tries = said(found("B", ended(exit_code=143))["exit"])
    assert "as a JVM does; which of the two is not known" in reasons
    assert tries == ""


def test_an_exit_code_alone_does_not_tell_that_the_app_does_not_drain() -> None:
    reasons, tries = said(found("B", ended(exit_code=1, ended_ns=(60_000_000,) * 2))["exit"])
    assert reasons == "1 is the app's own: why is for its log to say"
    assert tries == ""


@pytest.mark.parametrize("arm", "ABCDE")
def test_who_was_hurt_comes_first_and_nothing_is_said_twice(arm: str) -> None:
    every = findings(sample(arm))
    ranks = [each.broken is not True for each in every]
    assert ranks == sorted(ranks)
    reasons = [because for each in every for because in each.because]
    assert len(reasons) == len(set(reasons))
    assert all(each.because for each in every if each.broken and each.part != "exit")


def test_a_trial_without_anything_has_no_findings() -> None:
    empty = replace(sample("A").trial, flows=(), new_connections=(), requests=None, pod_ends=())
    assert findings(replace(sample("A"), trial=empty)) == ()
