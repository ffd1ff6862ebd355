"""Who was hurt, for how long, and by what: claims that the evidence must carry."""

from __future__ import annotations

from dataclasses import replace

from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.render.page.data import Trial
from tests.core import story as s
from tests.core.tries import prober, tries
from tests.page.test_says import (
    ANSWERED,
    NOBODY,
    REFUSED,
    SIGTERM,
    TCP,
    Seen,
    drained,
    ended,
    measured,
    moved,
    reset,
    shown,
    survived,
)


def lost_at_the_end(flow: str) -> Seen:
    """Answered to the last second: the last datagrams were not."""
    return [
        *s.alive(flow, 58_000),
        s.unanswered(flow, 58_016, 59_900, 4),
        ended(flow, answered=196, unanswered=4),
    ]


def said(found: Trial) -> str:
    return " ".join(found["says"])


def hurt(found: Trial) -> str:
    assert found["hurt"] is not None
    return found["hurt"]["text"]


def changed(report: Report, **fields: object) -> Report:
    return replace(report, trial=replace(report.trial, **fields))  # type: ignore[arg-type]


def test_one_flow_that_never_came_back_is_not_all_of_them() -> None:
    found = shown(measured(moved(lost=7), lost_at_the_end("udp-0002"), ANSWERED))
    lanes = {lane["id"]: [band["id"] for band in lane["bands"]] for lane in found["lanes"]}
    assert lanes["udp"] == ["udp:outage", "udp:gone"]
    assert hurt(found).startswith("One of 2 UDP flows went unanswered from about +58.0")
    assert "to the end of the recording" in hurt(found)
    assert "One of 2 UDP flows went unanswered from about +3.01 s on; " in said(found)
    assert "one of 2 UDP flows went unanswered from about +58.0" in said(found)
    alone = shown(measured(moved(lost=7), ANSWERED))
    assert "to the end" not in said(alone) + hurt(alone)


def test_what_was_gone_to_the_end_outweighs_a_shorter_window() -> None:
    gone = [*s.alive("udp-0002", 3_000), s.unanswered("udp-0002", 3_016, 59_900, 90)]
    gone.append(ended("udp-0002", answered=110, unanswered=90))
    for_a_while = prober(
        tries(-900, 200), tries(900, 20, Result.REFUSED), tries(1_000, 500, who=s.NEW)
    )
    long = shown(measured(gone, for_a_while))
    assert long["hurt"] is not None
    assert long["hurt"]["band"] == "udp:gone"
    short = shown(measured(drained(), for_a_while))
    assert short["hurt"] is not None
    assert short["hurt"]["band"] == "new:tcp-new"


def test_a_window_in_which_few_failed_hurts_less_than_its_length() -> None:
    """Two that failed, five seconds apart, are not five seconds."""
    far_apart = prober(
        tries(-900, 200),
        tries(900, 1, Result.REFUSED),
        tries(905, 999),
        tries(5_900, 1, Result.REFUSED),
        tries(5_905, 200),
    )
    found = shown(measured(moved(lost=7), far_apart))
    assert found["hurt"] is not None
    assert found["hurt"]["band"] == "udp:outage"
    assert "New TCP connections failed in 2 stretches within 5.00 s" in said(found)
    assert "2 of 1,001 tried in that time" in said(found)
    together = prober(tries(-900, 200), tries(900, 1_000, Result.REFUSED), tries(5_900, 200))
    whole = shown(measured(moved(lost=7), together))
    assert whole["hurt"] is not None
    assert whole["hurt"]["band"] == "new:tcp-new"
    assert "failed for 5.00 s" in said(whole)


def test_what_was_not_the_triggers_doing_alone_is_said_beside_who_was_hurt() -> None:
    report = measured(drained(), REFUSED)
    assert "trigger's doing" not in hurt(shown(report))
    degraded = changed(report, degraded=("1 pod(s) went unready before",))
    assert "Not all of it need be the trigger's doing" in hurt(shown(degraded))


def test_a_connection_on_which_nothing_was_asked_did_not_answer() -> None:
    report = measured(survived(TCP), ANSWERED)
    assert "was still open and answering at the end." in said(shown(report))
    (flow,) = report.trial.flows
    silent = changed(report, flows=(replace(flow, answered=0),))
    assert "was still open at the end." in said(shown(silent))


def test_a_bystander_that_only_moved_was_not_hurt() -> None:
    """Else the page says that nobody was hurt, and that one was."""
    report = measured(drained(), moved(lost=0), drained("tcp-0002"), ANSWERED)
    flows = {flow.id: flow for flow in report.trial.flows}
    mover = replace(flows["udp-0001"], role=Role.BYSTANDER)
    other = replace(
        flows["tcp-0002"], role=Role.BYSTANDER, outcome=Outcome.SURVIVED, mechanism=Mechanism.NONE
    )
    well = shown(changed(report, flows=(flows[TCP], mover, other)))
    assert NOBODY in said(well)
    assert "None of the 2 flows to other pods was hurt." in said(well)
    cut = replace(other, outcome=Outcome.SEVERED, mechanism=Mechanism.RST)
    worse = shown(changed(report, flows=(flows[TCP], mover, cut)))
    assert "Of 2 flows to pods that were to stay one was hurt." in said(worse)
    assert NOBODY not in said(worse)


def test_how_an_app_is_built_is_no_claim_of_what_it_did() -> None:
    """A shell as PID 1 swallows SIGTERM: an app that drains then does not."""
    unheard = said(shown(measured(reset(), ANSWERED)))
    assert "When asked to stop (SIGTERM), it is built to drain" in unheard
    assert "It was asked" not in unheard
    heard = said(shown(measured(reset(), [SIGTERM], ANSWERED)))
    assert "It was asked to stop (SIGTERM) at +40.0 ms. It is built to drain" in heard


def test_failures_whose_order_is_not_known_last_up_to_so_long() -> None:
    report = measured(drained(), REFUSED)
    (tried,) = report.trial.new_connections
    failing = tried.observed_failing
    assert failing is not None
    wide = replace(
        failing,
        first_ns=(2_600_000_000, 3_700_000_000),
        last_ns=(3_410_000_000, 4_330_000_000),
        lasts_ns=(-290_000_000, 1_730_000_000),
    )
    found = shown(changed(report, new_connections=(replace(tried, observed_failing=wide),)))
    details = [band["detail"] for lane in found["lanes"] for band in lane["bands"]]
    assert "failed for up to 1.73 s" in hurt(found)
    assert not [text for text in (hurt(found), *found["says"], *details) if "for -" in text]


def test_what_a_report_says_is_no_template() -> None:
    """A behaviour, a verb and an event of a later version, or of somebody who means no good."""
    odd = "{0} {odd} {"
    report = measured(drained(), [SIGTERM], ANSWERED, config={"drain_behavior": odd})
    trial = report.trial
    timeline = tuple(replace(entry, event=odd) for entry in trial.timeline)
    trigger = replace(trial.trigger, verb=odd)
    found = shown(replace(report, trial=replace(trial, timeline=timeline, trigger=trigger)))
    assert f"the app's behaviour on SIGTERM is {odd}" in found["asked"]
    assert f"was terminated by {odd}" in said(found)
    assert odd in [mark["text"] for lane in found["lanes"] for mark in lane["marks"]]


def test_a_grace_period_that_is_not_known_is_left_out() -> None:
    known = shown(measured(drained(), ANSWERED))
    assert "grace period 10 s" in known["asked"]
    unknown = shown(measured(drained(), ANSWERED, config={"grace_period_seconds": None}))
    assert "grace period" not in unknown["asked"]
    bare = shown(measured(drained(), ANSWERED, config={"attached": {"workload": "deployment/web"}}))
    assert "None" not in bare["asked"] + bare["says"][1]
    assert "deployment/web in (namespace not known)" in bare["asked"]
