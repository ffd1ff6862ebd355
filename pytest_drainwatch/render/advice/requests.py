"""What HTTP requests met, and what would have let them be served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytest_drainwatch.core.document import Environment, TrialReport
from pytest_drainwatch.core.http.document import FailingRequests, KindRequests
from pytest_drainwatch.core.http.fate import FAILED, Fate
from pytest_drainwatch.render import http
from pytest_drainwatch.render.advice.ended import ended
from pytest_drainwatch.render.advice.finding import Because, Finding, named
from pytest_drainwatch.render.advice.pre_stop import failed_for_a_time
from pytest_drainwatch.render.text import duration

NOT_CONNECTED = frozenset(
    {Fate.REFUSED, Fate.UNREACHABLE, Fate.CONNECT_TIMEOUT, Fate.RESET_AT_CONNECT}
)
CUT = frozenset({Fate.WRITTEN_THEN_RESET, Fate.WRITTEN_THEN_CLOSED})
SAID = frozenset({Fate.SERVER_ERROR, Fate.UNEXPECTED_STATUS, Fate.NOT_HTTP})

FINISH = (
    "on SIGTERM answer what is under way, with `Connection: close`, and only then close: "
    "clients dial again for the next request"
)


def asked(trial: TrialReport, environment: Environment) -> Iterator[Finding]:
    """A finding for each kind of lanes."""
    if trial.requests is None:
        return
    for kind in trial.requests.kinds:
        lanes = dict.fromkeys(
            each.lane
            for each in trial.requests.not_served
            if each.fate in FAILED and each.lane.rpartition("-")[0] == kind.kind
        )
        failing = kind.failing
        yield Finding(
            part="http",
            broken=True if failing else False if kind.attempts else None,
            what=next(http.met(replace(trial.requests, kinds=(kind,), not_served=()))),
            which=named(list(lanes)),
            because=tuple(_because(kind, failing, trial, environment)) if failing else (),
        )


def _because(
    kind: KindRequests, failing: FailingRequests, trial: TrialReport, environment: Environment
) -> Iterator[Because]:
    def number(fates: frozenset[Fate]) -> int:
        return sum(count for fate, count in kind.fates.items() if fate in fates)

    if cut := number(CUT):
        yield Because(
            why=f"{cut:,} had been written when their connection was cut{_repeatable(kind)}",
            advice=(FINISH,),
        )
        yield from ended(trial)
    if said := number(SAID):
        met = ", ".join(f"{n:,} x {status}" for status, n in kind.statuses.items())
        yield Because(
            why=f"{said:,} got another answer than the one expected ({met}): why is for the app's "
            "log to say"
        )
    if missed := number(NOT_CONNECTED):
        nobody = f"{missed:,} found nobody to connect to"
        if failing.recovered_ns is None:
            last = duration((failing.begun_ns[1],) * 2)
            yield Because(why=f"{nobody}, and none was served after {last}")
            return
        yield failed_for_a_time(
            failing.begun_ns,
            failing.first_ns,
            what=f"{nobody}; ",
            alone=failing.failures == failing.requests,
            trial=trial,
            environment=environment,
        )


def _repeatable(kind: KindRequests) -> str:
    """How many of those that failed a client may not repeat unasked."""
    if kind.not_retry_safe:
        return f"; {kind.not_retry_safe:,} of those that failed are not safe to repeat"
    return "; all that failed are safe to repeat" if kind.retry_safe else ""
