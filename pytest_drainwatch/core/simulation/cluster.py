"""The pods of a simulated trial, and what the API server shows of them and of their endpoints.

All instants are nanoseconds since the trigger; those of frames are when they are received.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import Scenario, Trigger
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.termination import Termination, termination

# So long before the first flow the pods are ready.
UP_BEFORE_NS = 1 * NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod of the workload.

    ``ready_ns`` is the frame that shows it Ready. Of one that ends: ``unready_ns`` the frame
    that shows it not Ready (None: its end does), ``terminated_ns`` that of its container's
    end, ``deleted_ns`` the last one.
    """

    uid: str
    name: str
    nonce: str
    address: str
    created_ns: int
    running_ns: int
    listening_ns: int
    ready_ns: int
    end: Termination | None = None
    unready_ns: int | None = None
    terminated_ns: int | None = None
    deleted_ns: int | None = None

    @property
    def responder(self) -> str:
        """How its answers are signed."""
        return f"{self.uid}/{self.nonce}"


@dataclass(frozen=True, slots=True)
class Conditions:
    """An endpoint's, as in FACTS K1: serving is the pod's readiness, whatever becomes of it."""

    serving: bool
    terminating: bool

    @property
    def ready(self) -> bool:
        return self.serving and not self.terminating


Endpoints = Mapping[str, Conditions]


@dataclass(frozen=True, slots=True)
class EndpointsChange:
    """From ``at_ns`` on the slice shows these endpoints, by the pod's uid."""

    at_ns: int
    endpoints: Endpoints


def pods_of(scenario: Scenario, took: Latencies, up_ns: int) -> tuple[Pod, ...]:
    """Targets first, then the others, then the replacements; the first ones are up by ``up_ns``."""
    app = scenario.app
    ending = app.replicas if scenario.trigger is Trigger.SCALE else scenario.targets
    end = termination(app, took)
    ready_after_ns = app.ready_after_s * NS_PER_S
    found = [
        pod_up(number, up_ns, took, end if number < ending else None, ready_after_ns)
        for number in range(app.replicas)
    ]
    if scenario.trigger is not Trigger.SCALE:
        later = _start(end.deletion_ns + took.replacement_ns, took, ready_after_ns)
        found += [_pod(app.replicas + number, later) for number in range(ending)]
    return tuple(found)


def pod_up(
    number: int, up_ns: int, took: Latencies, end: Termination | None, ready_after_ns: int = 0
) -> Pod:
    """A pod that is ready before ``up_ns``; ``end``: how it ends, if it does."""
    whole_ns = took.listening_ns + took.ready_ns + took.endpoint_ns + ready_after_ns
    start = _start(up_ns - UP_BEFORE_NS - whole_ns, took, ready_after_ns)
    return _pod(number, start) if end is None else _pod(number, start, *_end(end, took))


def endpoint_changes(pods: Sequence[Pod], took: Latencies) -> tuple[EndpointsChange, ...]:
    """Everything that the slice shows, in order: the EndpointSlice controller's view."""
    steps = sorted(
        (step for pod in pods for step in _steps(pod, took)), key=lambda step: (step[0], step[1])
    )
    found: list[EndpointsChange] = []
    now: dict[str, Conditions] = {}
    for at_ns, uid, conditions in steps:
        if conditions is None:
            now.pop(uid, None)
        else:
            now[uid] = conditions
        if found and found[-1].at_ns == at_ns:
            found.pop()
        found.append(EndpointsChange(at_ns, dict(now)))
    return tuple(found)


def _steps(pod: Pod, took: Latencies) -> Iterator[tuple[int, str, Conditions | None]]:
    """When a pod's own endpoint changes, and to what; None: it is gone."""
    end = pod.end
    happens = [(pod.running_ns + took.endpoint_ns, "up"), (pod.ready_ns + took.endpoint_ns, "on")]
    if end is not None:
        happens.append((end.deletion_ns + took.terminating_ns, "terminating"))
        if pod.unready_ns is not None:
            happens.append((pod.unready_ns + took.endpoint_ns, "off"))
        if pod.terminated_ns is not None:
            happens.append((pod.terminated_ns + took.endpoint_ns, "gone"))
    serving = terminating = False
    for at_ns, what in sorted(happens):
        if what == "gone":
            yield at_ns, pod.uid, None
            return
        serving = what == "on" or (serving and what != "off")
        terminating = terminating or what == "terminating"
        yield at_ns, pod.uid, Conditions(serving, terminating)


def _start(created_ns: int, took: Latencies, not_ready_ns: int) -> tuple[int, int, int, int]:
    listening_ns = created_ns + took.listening_ns
    ready_ns = listening_ns + took.ready_ns + not_ready_ns
    # Ready is a phase Running too, however the two were fitted.
    running_ns = min(created_ns + took.started_ns, ready_ns)
    return created_ns, running_ns, listening_ns, ready_ns


def _end(end: Termination, took: Latencies) -> tuple[Termination, int | None, int, int]:
    terminated_ns = end.exit_ns + took.status_ns
    unready_ns = None if end.unready_ns is None else end.unready_ns + took.unready_ns
    if unready_ns is not None and unready_ns >= end.exit_ns:
        unready_ns = None  # its end comes first
    return end, unready_ns, terminated_ns, terminated_ns + took.deleted_ns


def _pod(
    number: int,
    start: tuple[int, int, int, int],
    end: Termination | None = None,
    unready_ns: int | None = None,
    terminated_ns: int | None = None,
    deleted_ns: int | None = None,
) -> Pod:
    created_ns, running_ns, listening_ns, ready_ns = start
    return Pod(
        uid=f"simulated-{number:04d}",
        name=f"simulated-probe-{number:04d}",
        nonce=f"{number:016x}",
        address=f"192.0.2.{number % 200 + 10}",
        created_ns=created_ns,
        running_ns=running_ns,
        listening_ns=listening_ns,
        ready_ns=ready_ns,
        end=end,
        unready_ns=unready_ns,
        terminated_ns=terminated_ns,
        deleted_ns=deleted_ns,
    )
