"""What happened so far in a trial that is still under way: for the eye, and for no report.

It reads what was recorded and what the flow agent tells, and changes neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_drainwatch.core import transitions as changes
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.transitions import Transition, transitions

if TYPE_CHECKING:
    from pytest_drainwatch.flows.process import AgentStatus

FRAMES = frozenset({Event.POD, Event.ENDPOINT_SLICE, Event.WATCH_LISTED})
# All of them are gone through again for each new one: of a very large trial only the first.
MOST_FRAMES = 2000
LONG_NAME = 20

_PROBE = {
    Event.PRESTOP_CALLED: "preStop hook began",
    Event.SIGTERM_RECEIVED: "SIGTERM",
    Event.SIGTERM_IGNORED: "app ignores SIGTERM",
    Event.STOPPED_ACCEPTING: "app accepts no more",
    Event.DRAIN_COMPLETE: "app has drained",
    Event.EXITING: "app exits",
}
_CHANGED = {
    changes.POD_DELETION_TIMESTAMP_SET: "pod deleted",
    changes.ENDPOINT_READY_FALSE: "endpoint ready:false",
    changes.ENDPOINT_REMOVED: "endpoint removed",
    changes.CONTAINER_RESTARTED: "container restarted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """One thing, ``at_ns`` since the trigger; ``by`` then at the latest: it was seen later."""

    at_ns: int
    text: str
    by: bool = False


class Happenings:
    """Follows one trial; ``clock`` is the id of the clock that the harness reads."""

    def __init__(self, clock: str) -> None:
        self._clock = clock
        self._read = 0
        self._trigger_ns: int | None = None
        self._frames: list[Observation] = []
        self._told: list[tuple[Observation, int]] = []  # by the probe; and when we saw it
        self._names: dict[str, str] = {}
        self._changes = 0
        self._ready: set[str] = set()
        self._before: AgentStatus | None = None
        self._said: set[str] = set()
        self._found: list[Happened] = []

    @property
    def triggered_ns(self) -> int | None:
        """When the trigger was sent that was accepted; None before."""
        return self._trigger_ns

    def all(self) -> tuple[Happened, ...]:
        """Everything so far, in the order in which it was seen."""
        return tuple(self._found)

    def look(self, seen: Sequence[Observation], status: AgentStatus | None, now_ns: int) -> None:
        """See what has come since the last look; ``seen`` is all that was recorded."""
        new, self._read = seen[self._read :], len(seen)
        frames = [each for each in new if each.event in FRAMES]
        self._frames += frames[: MOST_FRAMES - len(self._frames)]
        self._told += [(each, now_ns) for each in new if each.source is Source.PROBE]
        self._names |= {e.subject: str(e.data.get("name")) for e in frames if e.event is Event.POD}
        if self._trigger_ns is None:
            accepted = next((e for e in new if e.event is Event.TRIGGER_ACCEPTED), None)
            if accepted is None:
                self._before = status
                return
            self._trigger_ns = accepted.at.lo
            verb = accepted.data.get("verb")
            self._add(accepted.at.lo, f"trigger: {verb}" if verb != "none" else "no trigger")
            frames = self._frames  # some may have come between the call and its answer
        if frames:
            self._follow(self._trigger_ns)
        for observation, seen_ns in self._told:
            self._probe(observation, seen_ns)
        self._told.clear()
        if status is not None:
            for text in _counted(status, self._before):
                if text not in self._said:
                    self._said.add(text)
                    self._add(now_ns, text, by=True)

    def _follow(self, trigger_ns: int) -> None:
        found = list(transitions(self._frames))
        for change in found[self._changes :]:
            if change.received_ns >= trigger_ns:
                if (text := self._changed(change)) is not None:
                    self._add(change.received_ns, f"{text}: {_short(change.name)}")
            elif change.event == changes.POD_READY_TRUE:
                self._ready.add(change.uid)
        self._changes = len(found)

    def _changed(self, change: Transition) -> str | None:
        if change.event == changes.POD_READY_TRUE:
            return "pod ready again" if change.uid in self._ready else "new pod ready"
        if change.event == changes.CONTAINER_TERMINATED:
            return f"container ended with exit code {change.fields.get('exit_code')}"
        return _CHANGED.get(change.event)

    def _probe(self, seen: Observation, seen_ns: int) -> None:
        if (text := _PROBE.get(seen.event)) is None:
            return
        text = f"{text}: {_short(self._names.get(seen.subject, seen.subject))}"
        if seen.clock == self._clock:
            self._add(seen.at.hi, text)
        else:  # of another clock it is known only that it was before we saw it
            self._add(seen_ns, text, by=True)

    def _add(self, at_ns: int, text: str, *, by: bool = False) -> None:
        if self._trigger_ns is not None and at_ns >= self._trigger_ns:
            self._found.append(Happened(at_ns=at_ns - self._trigger_ns, text=text, by=by))


def _counted(status: AgentStatus, before: AgentStatus | None) -> Iterator[str]:
    """What the agent's counts say has happened since the trigger, as often as it is asked."""
    for name, proto in (("TCP", status.tcp), ("UDP", status.udp)):
        if proto.moved:
            yield f"first {name} flow answered by another pod"
        if proto.ended:
            yield f"first {name} flow ended"
        if (proto.ended or proto.moved) and not proto.alive:
            yield f"last {name} flow gone"
    earlier = before.probers if before else {}
    for name, prober in status.probers.items():
        if prober.failed > (earlier[name].failed if name in earlier else 0):
            yield f"first new connection failed ({name})"
    http, was = status.http, before.http if before else None
    if http is not None and http.failed > (was.failed if was else 0):
        yield "first HTTP request failed"


def _short(name: str) -> str:
    """A pod's name by its end, which tells it from its siblings."""
    return name if len(name) <= LONG_NAME else f"…{name.rpartition('-')[2]}"
