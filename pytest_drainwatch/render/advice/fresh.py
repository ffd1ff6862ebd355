"""What new connections met."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.document import Environment, TrialReport
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.probing.document import NewConnections, ObservedFailing
from pytest_drainwatch.render import probing
from pytest_drainwatch.render.advice.ended import FOR_GOOD
from pytest_drainwatch.render.advice.finding import Because, Finding
from pytest_drainwatch.render.advice.pre_stop import failed_for_a_time


def tried(trial: TrialReport, environment: Environment) -> Iterator[Finding]:
    """A finding for each prober."""
    for prober in trial.new_connections:
        several = len(trial.new_connections) > 1 and prober.node
        what, *answers = probing.met([prober])
        failing = prober.observed_failing
        yield Finding(
            part="new",
            broken=True if failing else False if prober.attempts else None,
            what=f"at {prober.node}: {what}" if several else what,
            which="; ".join(answers),
            because=(_because(prober, failing, trial, environment),) if failing else (),
        )


def _because(
    prober: NewConnections, failing: ObservedFailing, trial: TrialReport, environment: Environment
) -> Because:
    last = prober.last_answered_ns
    if last is None or last[0] <= failing.begun_ns[1]:
        return Because(why=_for_good(prober, trial) + _advertised(trial))
    return failed_for_a_time(
        failing.begun_ns,
        failing.first_ns,
        what=_advertised(trial).removeprefix("; ") + ("; " if _advertised(trial) else ""),
        alone=failing.failures == failing.attempts,
        trial=trial,
        environment=environment,
    )


def _for_good(prober: NewConnections, trial: TrialReport) -> str:
    others = [one for one in prober.answered_by if one.role is not Role.TARGET]
    if trial.trigger.verb in FOR_GOOD and not others:
        return "no pod was left to serve, as the trigger has it"
    return (
        "none was served again while it was watched: why is not known. Look at: kubectl get pods, "
        "and whether a replacement became Ready"
    )


def _advertised(trial: TrialReport) -> str:
    """How many failed that were surely begun while the target was in an EndpointSlice.

    Windows count for a pod, and for all probers: of several it is not known whose they are.
    """
    if len(trial.new_connections) > 1 or len(trial.windows) > 1:
        return ""
    found = [pod.advertised.met for pod in trial.windows if pod.advertised.met is not None]
    failed = sum(met.failed for met in found)
    return f"; {failed:,} of them while the endpoint was still advertised" if failed else ""
