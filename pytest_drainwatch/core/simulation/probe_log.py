"""What the probe of a simulated trial writes into its lifecycle log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import Accept, App, Behavior
from pytest_drainwatch.core.simulation.cluster import Pod
from pytest_drainwatch.core.simulation.record import CLOCK, TCP_PORT, UDP_PORT, at
from pytest_drainwatch.core.simulation.termination import Termination


class _Line(Protocol):
    """Writes a line of one pod's log."""

    def __call__(self, event: Event, at_ns: int, **data: object) -> Observation: ...


def log(pod: Pod, app: App, connections: int, asked_ns: Sequence[int]) -> Iterator[Observation]:
    """A probe's lifecycle log. When it hears SIGTERM it holds so many connections, and has not
    answered the requests that were sent at ``asked_ns``.
    """

    def line(event: Event, at_ns: int, **data: object) -> Observation:
        return Observation(
            source=Source.PROBE,
            event=event,
            at=at(at_ns),
            subject=pod.uid,
            clock=CLOCK,
            data={"nonce": pod.nonce, **data},
        )

    yield line(
        Event.PROBE_STARTED,
        pod.listening_ns,
        pod_name=pod.name,
        behavior=str(app.behavior),
        readiness_on_drain=str(app.readiness_on_drain),
        accept_on_drain=str(app.accept_on_drain),
        drain_ns=app.drain_ns,
        exit_now_reset=app.exit_now_reset,
        response_delay_ns=app.response_delay_ns,
    )
    yield line(Event.LISTENING, pod.listening_ns, tcp_port=TCP_PORT, udp_port=UDP_PORT)
    if pod.end is not None:
        yield from _last_lines(pod.end, app, line, connections, asked_ns)


def _last_lines(
    end: Termination, app: App, line: _Line, connections: int, asked_ns: Sequence[int]
) -> Iterator[Observation]:
    hook = app.pre_stop
    if hook is not None and hook.http_ns is not None:
        called_ns = end.sigterm_ns - end.hook_ns
        yield line(Event.PRESTOP_CALLED, called_ns, delay_ns=hook.http_ns)
        if hook.http_ns <= end.hook_ns:
            yield line(Event.PRESTOP_ANSWERED, called_ns + hook.http_ns)
    yield line(
        Event.SIGTERM_RECEIVED,
        end.sigterm_ns,
        connections=connections,
        in_flight=len(asked_ns),
        in_flight_new=0,
        oldest_in_flight_ns=end.sigterm_ns - min(asked_ns) if asked_ns else None,
    )
    if app.behavior is Behavior.IGNORE:
        yield line(Event.SIGTERM_IGNORED, end.handled_ns)
        return
    if app.behavior is Behavior.EXIT_NOW:
        how = "reset" if app.exit_now_reset else "exit"
        yield line(Event.TCP_FLOWS_CLOSED, end.exit_ns, count=connections, how=how)
        yield line(Event.EXITING, end.exit_ns, code=0)
        return
    if end.handled_ns >= end.exit_ns:
        return
    if end.unready_ns is not None:
        yield line(Event.READYZ_NOW_503, end.unready_ns)
    stops = {"backlog": 0, "connections": connections}
    if app.accept_on_drain is Accept.CLOSE:
        yield line(Event.STOPPED_ACCEPTING, end.handled_ns, **stops)
    yield line(Event.DRAIN_STARTED, end.handled_ns, drain_ns=app.drain_ns)
    if end.deadline_ns is not None:
        if app.accept_on_drain is Accept.KEEP:
            yield line(Event.STOPPED_ACCEPTING, end.deadline_ns, **stops)
        yield line(Event.DRAIN_DEADLINE_REACHED, end.deadline_ns, connections=connections)
    if end.killed:
        return
    if end.deadline_ns is None:
        yield line(Event.DRAIN_COMPLETE, end.exit_ns)
    else:
        yield line(
            Event.TCP_FLOWS_CLOSED, end.exit_ns, count=connections, how="fin", open_at_exit=0
        )
    yield line(Event.EXITING, end.exit_ns, code=0)
