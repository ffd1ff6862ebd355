"""What the phases of a trial share, and what happens when one of them cannot go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_drainwatch.api import Api, explain, failures
from pytest_drainwatch.cluster import Cluster, ClusterError
from pytest_drainwatch.core.clock import ClockError
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.flows.process import AgentFailed, FlowAgent
from pytest_drainwatch.preflight import TrialVoid
from pytest_drainwatch.recorder import Recorder, RecorderError
from pytest_drainwatch.trigger import TriggerFailed
from pytest_drainwatch.workload import probe


class Progress(Protocol):
    """Whoever shows a person how far a trial is."""

    def phase(self, name: str, expected_ns: int | None = None) -> None:
        """A phase begins, and is expected to take so long."""

    def status(self, text: str) -> None:
        """Something changed within the phase."""


class Keep(Protocol):
    """Whether a trial's namespace stays, given whether the trial failed."""

    def __call__(self, *, failed: bool) -> bool: ...


@dataclass(slots=True, kw_only=True)
class Stage:
    """What the phases of one trial share."""

    cluster: Cluster
    api: Api
    scenario: Scenario
    folder: Path
    recorder: Recorder
    image: str
    namespace: str
    progress: Progress
    agent: FlowAgent | None = None
    failed: bool = False

    @contextmanager
    def phase(self, name: str, expected_ns: int | None = None) -> Iterator[None]:
        """Run a phase; whatever ends it early voids the trial and keeps the evidence."""
        self.progress.phase(name, expected_ns)
        try:
            yield
        except TrialVoid as error:
            self._void(Event.VOID, name, str(error))
            raise
        except KeyboardInterrupt as error:
            self._void(Event.INTERRUPTED, name, str(error) or "SIGINT")
            raise
        except (ClusterError, AgentFailed, TriggerFailed, RecorderError, ClockError) as error:
            self._void(Event.VOID, name, str(error))
            raise TrialVoid(f"void in phase '{name}': {error}") from error
        except failures() as error:
            self._void(Event.VOID, name, explain(error))
            raise TrialVoid(
                f"void in phase '{name}': the API server failed: {explain(error)}; expected it to "
                "answer throughout the trial. Look at: kubectl get --raw /readyz"
            ) from error
        except Exception as error:
            self._void(Event.VOID, name, repr(error))
            raise

    def note(self, event: Event, **data: object) -> None:
        """Record something that the conductor itself did, now."""
        self.recorder(_noted(event, data))

    def _void(self, event: Event, phase: str, reason: str) -> None:
        """Keep what there is, and the evidence; must not hide the failure that led here."""
        self.failed = True
        with suppress(RecorderError, AgentFailed):
            if self.agent is not None:
                self.agent.stop()
        kind = "signal" if event is Event.INTERRUPTED else "reason"
        last = [_noted(event, {"phase": phase, kind: reason})]
        if event is Event.VOID:
            last += probe.evidence(self.api, self.namespace, last[0].at)
        with suppress(RecorderError):
            self.recorder.finish(self.agent.part if self.agent else None, *last)


def _noted(event: Event, data: dict[str, object]) -> Observation:
    at = Interval.point(time.monotonic_ns())
    return Observation(source=Source.ORCHESTRATOR, event=event, at=at, data=data)
