"""A trial that is only acted: its stage, with records and counts that come as a real one's do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.flows.process import AgentStatus, ProberStatus, ProtoStatus

CLOCK = "boot/1"
MS = NS_PER_MS


@dataclass
class Acted:
    """What :class:`~pytest_drainwatch.showing.live.Trial` asks for."""

    seen: list[Observation] = field(default_factory=list)
    said: AgentStatus = field(default_factory=AgentStatus)

    @property
    def agent(self) -> Any:
        return SimpleNamespace(status=lambda: self.said)

    @property
    def recorder(self) -> Any:
        return SimpleNamespace(
            observations=lambda: tuple(self.seen), header=SimpleNamespace(clock=CLOCK)
        )

    def happens(self, event: Event, source: Source = Source.ORCHESTRATOR, **data: object) -> None:
        self.seen.append(record(event, time.monotonic_ns(), source, **data))

    def trigger(self) -> None:
        self.happens(Event.TRIGGER_ACCEPTED, verb="delete")
        self.happens(Event.SIGTERM_RECEIVED, Source.PROBE)


def record(
    event: Event, at_ns: int, source: Source = Source.ORCHESTRATOR, **data: object
) -> Observation:
    clock = CLOCK if source is Source.PROBE else ""
    subject = str(data.pop("subject", "uid-old"))
    at = Interval.point(at_ns)
    return Observation(source=source, event=event, at=at, subject=subject, clock=clock, data=data)


def status(*, alive: int = 10, ended: int = 0, moved: int = 0, failed: int = 0) -> AgentStatus:
    return AgentStatus(
        tcp=ProtoStatus(wanted=10, alive=alive, ended=ended),
        udp=ProtoStatus(wanted=10, alive=10 - moved, moved=moved),
        probers={"tcp-new": ProberStatus(attempts=500, failed=failed)},
    )


def act(
    progress: Any, phases: Sequence[tuple[str, float]] = (("settle", 0.3), ("observe", 0.9))
) -> None:
    """A short trial: settle, then observe a trigger and what follows."""
    trial = Acted(said=status())
    progress.follow(trial)
    for name, seconds in phases:
        progress.phase(name, round(seconds * NS_PER_S))
        try:
            if name == "observe":
                trial.trigger()
                time.sleep(seconds / 2)
                trial.said = status(alive=0, ended=10, moved=4, failed=54)
                time.sleep(seconds / 2)
            else:
                time.sleep(seconds)
        finally:
            progress.rest()
