"""What a measured trial shows of each part of a termination, in ns.

An instant is taken as a report shows it: at its upper bound, by which it had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.fidelity.moved import moved_ns, udp_moved_ns
from pytest_drainwatch.core.fidelity.trial import Trial
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.flow.signals import QUIET_NS
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.jsonvalue import integer_or_none
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.pod.kubelet import remaining_after
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.repeats.stats import median
from pytest_drainwatch.core.scenario import Behavior, Trigger
from pytest_drainwatch.core.simulation.trial import LINGER_UNANSWERED_NS

Read = Callable[[Trial], int | None]


def since(begin: str, end: str) -> Read:
    """Of the target: from one entry of the timeline to another."""

    def read(trial: Trial) -> int | None:
        return _between(trial.instant(begin, trial.targets), trial.instant(end, trial.targets))

    return read


def of_newcomer(begin: str, end: str) -> Read:
    """Of the target's replacement: the same. With several targets nobody knows whose it is."""

    def read(trial: Trial) -> int | None:
        who = trial.newcomers
        if len(who) != 1:
            return None
        return _between(trial.instant(begin, who), trial.instant(end, who))

    return read


# --- the API server and the endpoints --------------------------------------------------


def call(trial: Trial) -> int | None:
    return trial.report.trial.trigger.accepted_ns[1]


def deletion(trial: Trial) -> int | None:
    return trial.instant("pod_deletion_timestamp_set", trial.targets)


def endpoint(trial: Trial) -> int | None:
    old, new = trial.targets, trial.newcomers
    pairs = [
        ("container_terminated", "endpointslice_endpoint_removed", old),
        ("pod_ready_false", "endpointslice_serving_false", old),
        ("pod_ready_true", "endpointslice_ready_true", new),
    ]
    return _median(_between(trial.instant(a, who), trial.instant(b, who)) for a, b, who in pairs)


# --- the kubelet and the container ------------------------------------------------------


def sigterm(trial: Trial) -> int | None:
    """A hook's own time is not known as well as this has to be."""
    if trial.scenario.app.pre_stop is not None:
        return None
    return since("pod_deletion_timestamp_set", "sigterm_received")(trial)


def unready(trial: Trial) -> int | None:
    """Only of a container that ran on: one that ended is not ready for that reason."""
    unready, ended = (trial.instant(e, trial.targets) for e in ("pod_ready_false", "exiting"))
    if unready is None or ended is None or unready > ended:
        return None
    return _between(trial.instant("readyz_now_503", trial.targets), unready)


def kill(trial: Trial) -> int | None:
    """Of one that no hook delayed and that outlived its grace period."""
    app, term = trial.scenario.app, trial.instant("sigterm_received", trial.targets)
    if app.behavior is not Behavior.IGNORE or app.pre_stop is not None or term is None:
        return None
    return _between(term + remaining_after(app.grace_period_s, 0), _tcp_end(trial))


def _exit(trial: Trial) -> int | None:
    """When its process ended: by its own log, or, killed, when its connections were closed."""
    exited = trial.instant("exiting", trial.targets)
    return exited if exited is not None else _tcp_end(trial)


def status(trial: Trial) -> int | None:
    return _between(_exit(trial), trial.instant("container_terminated", trial.targets))


def network(trial: Trial) -> int | None:
    """From exit until new connections time out that the dead pod's kernel refused before.

    Between the last that was refused and the first that was not; only while kube-proxy had no
    reason yet to lead them elsewhere.
    """
    exited = trial.instant("exiting", trial.targets)
    if trial.scenario.app.behavior is not Behavior.EXIT_NOW or exited is None:
        return None
    period_ns = (trial.report.environment.min_sync_period_ms or 0) * NS_PER_S // 1000
    for prober in trial.report.trial.new_connections:
        refused: int | None = None
        for run in prober.runs:
            if run.at_ns[1] < exited or (run.result == Result.ANSWERED and run.at_ns[0] < exited):
                continue
            if run.result in (Result.REFUSED, Result.RESET):
                refused = run.at_ns[1]
            elif run.result == Result.TIMEOUT and refused is not None and refused < period_ns:
                return (refused + run.at_ns[0]) // 2 - exited
            else:
                break
    return None


# --- the probe ---------------------------------------------------------------------------


def farewell(trial: Trial) -> int | None:
    behavior = trial.scenario.app.behavior
    if behavior is Behavior.EXIT_NOW:
        return _between(trial.instant("sigterm_received", trial.targets), _tcp_end(trial))
    return _between(_deadline(trial), _tcp_end(trial)) if behavior is Behavior.DRAIN else None


def lingering(trial: Trial) -> int | None:
    return _between(_deadline(trial), trial.instant("exiting", trial.targets))


def leaving(trial: Trial) -> int | None:
    if trial.scenario.app.behavior is not Behavior.EXIT_NOW:
        return None
    return since("sigterm_received", "exiting")(trial)


def _deadline(trial: Trial) -> int | None:
    started = trial.instant("drain_started", trial.targets)
    return None if started is None else started + trial.scenario.app.drain_ns


# --- the replacement, the client ---------------------------------------------------------


def started(trial: Trial) -> int | None:
    who = trial.newcomers
    if len(who) != 1:
        return None
    running = (
        at_ns
        for at_ns, frame in trial.frames(Event.POD)
        if frame.subject == who[0] and frame.data.get("phase") == "Running"
    )
    return _between(trial.instant("pod_observed", who), next(running, None))


def replacement(trial: Trial) -> int | None:
    who = trial.newcomers
    if len(who) != 1:
        return None
    return _between(deletion(trial), trial.instant("pod_observed", who))


def took(result: str) -> Read:
    """How long a new connection took to this result: the median over its runs."""

    def read(trial: Trial) -> int | None:
        found: list[int | None] = []
        for _, one in trial.frames(Event.NEW_CONNECTIONS):
            if one.data.get("result") != result:
                continue
            many = "count" in one.data
            found += (
                [integer_or_none(one.data.get(n)) for n in ("first_took_ns", "last_took_ns")]
                if many
                else [one.at.width]
            )
        return _median(found)

    return read


def round_trip(trial: Trial) -> int | None:
    """The shortest of each TCP flow: of the others a recording keeps the longest alone."""
    tcp = {flow.id for flow in _held(trial, Proto.TCP)}
    return _median(
        integer_or_none(one.data.get("rtt_min_ns"))
        for _, one in trial.frames(Event.FLOW_ANSWERED)
        if one.subject in tcp
    )


def conntrack(trial: Trial) -> int | None:
    return _between(moved_ns(trial), udp_moved_ns(trial))


def noticed(trial: Trial) -> int | None:
    """Of a trial that was over when its UDP flows had been without an answer for long enough."""
    app, exited = trial.scenario.app, trial.instant("exiting", trial.targets)
    alone = trial.scenario.trigger is Trigger.SCALE and app.replicas == 1
    if not alone or exited is None or not trial.scenario.flows.udp:
        return None
    over = trial.instant("all_flows_terminal")
    return _between(exited + QUIET_NS + LINGER_UNANSWERED_NS, over)


def _held(trial: Trial, proto: Proto) -> Iterator[FlowReport]:
    for flow in trial.report.trial.flows:
        if flow.proto is proto and flow.role is Role.TARGET:
            yield flow


def _tcp_end(trial: Trial) -> int | None:
    """When the target's TCP flows ended, in the middle of them; None unless all did."""
    ends = [flow.terminal_ns for flow in _held(trial, Proto.TCP)]
    return None if None in ends else _median(end[1] for end in ends if end)


def _between(begin: int | None, end: int | None) -> int | None:
    return None if begin is None or end is None else end - begin


def _median(found: Iterable[int | None]) -> int | None:
    known = [each for each in found if each is not None]
    return median(known) if known else None
