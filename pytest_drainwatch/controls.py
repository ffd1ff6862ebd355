"""Controls: trials whose outcome is known beforehand, so that the instrument is what is tested.

Without a trigger nothing may be reported lost; and for every outcome there is a
workload that must be given it. ``drainwatch doctor --trial`` runs them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pytest_drainwatch.core.document import FlowReport, TrialReport
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.probing.document import UNKNOWN, NewConnections
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.scenario import App, Behavior, Flows, Pid1, PreStop, Scenario, Trigger

# A hook that freezes the probe: its kernel goes on accepting, and nobody ever answers. Only a
# process that is not PID 1 can be stopped from inside its own PID namespace.
FREEZE = (
    "python3",
    "-c",
    "import os, pathlib, signal\n"
    "for entry in pathlib.Path('/proc').iterdir():\n"
    "    if entry.name.isdigit() and int(entry.name) not in (1, os.getpid()):\n"
    "        if b'probe' + b'.py' in (entry / 'cmdline').read_bytes():\n"
    "            os.kill(int(entry.name), signal.SIGSTOP)\n",
)
SILENT_S = 10  # a TCP flow that is silent for so long has timed out
FLOWS = Flows(tcp=2, udp=2)
QUICK = Scenario(
    app=App(grace_period_s=5, drain_ns=2 * NS_PER_S), flows=FLOWS, settle_ns=2 * NS_PER_S
)
FROZEN = replace(
    QUICK,
    app=App(
        behavior=Behavior.IGNORE,
        grace_period_s=SILENT_S + 6,
        pid1=Pid1.SHELL,
        pre_stop=PreStop(exec=FREEZE),
    ),
)


Judge = Callable[[TrialReport], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A trial and what must come out; ``judge`` says what did not, one line each."""

    shows: str
    scenario: Scenario
    judge: Judge

    @property
    def name(self) -> str:
        """The scenario's id."""
        return self.scenario.id


def tcp_ends(outcome: Outcome, mechanism: Mechanism) -> Judge:
    """Every TCP flow of the target has this end."""

    def judge(trial: TrialReport) -> list[str]:
        flows = [f for f in trial.flows if f.proto is Proto.TCP and f.role is Role.TARGET]
        wrong = [f for f in flows if (f.outcome, f.mechanism) != (outcome, mechanism)]
        if not flows:
            return ["there is no TCP flow of the target"]
        return [
            f"{f.id} is {f.outcome} by {f.mechanism}, expected {outcome} by {mechanism}"
            for f in wrong
        ]

    return judge


def udp_ends(outcome: Outcome) -> Judge:
    """Every UDP flow of the target has this outcome; by what it was severed is not determined."""

    def judge(trial: TrialReport) -> list[str]:
        flows = [f for f in trial.flows if f.proto is Proto.UDP and f.role is Role.TARGET]
        if not flows:
            return ["there is no UDP flow of the target"]
        return [
            f"{f.id} is {f.outcome} by {f.mechanism}, expected {outcome}"
            for f in flows
            if f.outcome is not outcome
        ]

    return judge


def nothing_lost(trial: TrialReport) -> list[str]:
    """Every flow survived, and every new connection was answered, as is known of each."""
    wrong = [
        f"{f.id} is {f.outcome} by {f.mechanism}, expected {Outcome.SURVIVED}"
        for f in trial.flows
        if f.outcome is not Outcome.SURVIVED
    ]
    wrong += [
        f"{flow.id} lost {lost} request(s), expected none"
        for flow in trial.flows
        if (lost := _lost(flow)) != 0
    ]
    if not trial.flows:
        wrong.append("there are no flows")
    for prober in trial.new_connections:
        if prober.failed or not prober.attempts:
            wrong.append(
                f"{prober.failed} of {prober.attempts} new connections ({prober.proto}) failed, "
                "expected 0 of many"
            )
        wrong += [f"{prober.prober}: {what}, expected 0" for what in _unclear(prober)]
    if not trial.new_connections:
        wrong.append("no new connections were tried")
    return wrong


def _unclear(prober: NewConnections) -> Iterator[str]:
    """What keeps one from saying that no new connection failed."""
    if prober.lost is None:
        yield "an unknown number of attempts lost"
    elif prober.lost:
        yield f"{prober.lost} attempt(s) lost"
    if prober.failed_before:
        yield f"{prober.failed_before} attempt(s) failed before the trigger"
    for fate in sorted({Result.CLIENT_LIMIT, *UNKNOWN}):
        each = (prober.results, prober.results_before)
        if number := sum(results.get(fate, 0) for results in each):
            yield f"{number} {fate}"


def _lost(flow: FlowReport) -> int | None:
    """Requests that nobody answered, but for the last one, which may be on its way still."""
    if flow.continuity is not None:
        return flow.continuity.lost
    return None if flow.unanswered is None else max(0, flow.unanswered - 1)


def new_connections_end(*accepted: Result) -> Judge:
    """New TCP connections failed, and in at least one of these ways."""

    def judge(trial: TrialReport) -> list[str]:
        found = {
            name: number
            for prober in trial.new_connections
            if prober.proto is Proto.TCP
            for name, number in prober.results.items()
        }
        if any(found.get(name) for name in accepted):
            return []
        return [f"new connections ended as {found}, expected some {' or '.join(accepted)}"]

    return judge


def both(*judges: Judge) -> Judge:
    """All of these."""
    return lambda trial: [wrong for judge in judges for wrong in judge(trial)]


CONTROLS = (
    Control(
        shows="without a trigger nothing is lost",
        scenario=replace(QUICK, trigger=Trigger.NONE, name="control-nothing"),
        judge=nothing_lost,
    ),
    Control(
        shows="an app that closes in order is drained",
        scenario=replace(QUICK, name="control-closed"),
        judge=both(tcp_ends(Outcome.DRAINED, Mechanism.ANNOUNCED_FIN), udp_ends(Outcome.SEVERED)),
    ),
    Control(
        shows="an app that resets is severed, and with no replacement new connections are refused",
        scenario=replace(
            QUICK,
            app=App(behavior=Behavior.EXIT_NOW, grace_period_s=5),
            trigger=Trigger.SCALE,
            name="control-reset",
        ),
        judge=both(
            tcp_ends(Outcome.SEVERED, Mechanism.RST),
            udp_ends(Outcome.SEVERED),
            new_connections_end(Result.REFUSED, Result.UNREACHABLE),
        ),
    ),
    Control(
        shows="an app that freezes times out, and accepts what it never serves",
        scenario=replace(
            FROZEN, observe_timeout_ns=(SILENT_S + 3) * NS_PER_S, name="control-frozen"
        ),
        judge=both(
            tcp_ends(Outcome.READ_TIMEOUT, Mechanism.SILENCE),
            new_connections_end(Result.NEVER_SERVED),
        ),
    ),
    Control(
        shows="silence that was watched for too short a time is not measured",
        scenario=replace(FROZEN, observe_timeout_ns=4 * NS_PER_S, name="control-cut-short"),
        judge=tcp_ends(Outcome.NOT_MEASURED, Mechanism.SILENCE),
    ),
    Control(
        shows="an app that is still open when the window closes survived it",
        scenario=replace(
            QUICK,
            app=App(behavior=Behavior.IGNORE, grace_period_s=10),
            observe_timeout_ns=3 * NS_PER_S,
            name="control-survivor",
        ),
        judge=both(tcp_ends(Outcome.SURVIVED, Mechanism.NONE), udp_ends(Outcome.SURVIVED)),
    ),
)
