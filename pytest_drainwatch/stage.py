"""What the phases of a trial share, and what happens when one of them cannot go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pytest_drainwatch import interrupts
from pytest_drainwatch.api import Api, explain, failures
from pytest_drainwatch.balancers import BalancerFailed, Front
from pytest_drainwatch.cluster import Cluster, ClusterError
from pytest_drainwatch.core.clock import ClockError
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import Header
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.core.start import CannotDerive
from pytest_drainwatch.flows.ask import NobodyAnswered
from pytest_drainwatch.flows.process import AgentFailed, FlowAgent
from pytest_drainwatch.placement import Placement
from pytest_drainwatch.preflight import TrialVoid
from pytest_drainwatch.recorder import Recorder, RecorderError
from pytest_drainwatch.trigger import TriggerFailed
from pytest_drainwatch.watch import Watch
from pytest_drainwatch.workload import attached, probe
from pytest_drainwatch.workload.attached import Found
from pytest_drainwatch.workload.client import ClientFailed
from pytest_drainwatch.workload.place import Place

# What says by itself, in full, why nothing can be measured.
HARNESS_FAILURES = (
    ClusterError,
    AgentFailed,
    BalancerFailed,
    ClientFailed,
    NobodyAnswered,
    TriggerFailed,
    RecorderError,
    ClockError,
    CannotDerive,
)


class Progress(Protocol):
    """Whoever shows a person how far a trial is."""

    def line(self, text: str) -> None:
        """Something that a person must know, whatever the verbosity."""

    def phase(self, name: str, expected_ns: int | None = None) -> None:
        """A phase begins, and is expected to take so long."""

    def status(self, text: str) -> None:
        """What the phase is at, in words."""

    def follow(self, trial: Stage) -> None:
        """A trial is about to be measured: what it records may be looked at, and no more."""

    def rest(self) -> None:
        """No phase is under way."""


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
    watch: Watch | None = None
    front: Front | None = None  # the load balancer that was put before the nodes
    failed: bool = False
    placement: Placement = field(default_factory=Placement)
    trial: str | None = None  # its id, in a namespace that was not made for it
    found: Found | None = None  # a workload of the user's; None: the probe is deployed

    @property
    def place(self) -> Place:
        """Where the trial's objects are, and how they are told from others."""
        return Place(
            namespace=self.namespace, trial=self.trial, pull_secrets=self.placement.pull_secrets
        )

    @property
    def sync_period_ns(self) -> int:
        """kube-proxy's minSyncPeriod, or Kubernetes' default where nobody says."""
        return (self.cluster.facts().min_sync_period_ms or 1000) * NS_PER_MS

    @contextmanager
    def phase(self, name: str, expected_ns: int | None = None) -> Iterator[None]:
        """Run a phase; whatever ends it early voids the trial and keeps the evidence."""
        try:
            # Inside: whoever sees the phase announced may interrupt it at once.
            self.progress.phase(name, expected_ns)
            yield
        except BaseException as error:  # pytest's own outcomes are no Exceptions
            # Code that is not ours may have turned an interrupt into an error of its own.
            signalled = interrupts.received()
            if isinstance(error, KeyboardInterrupt):
                self._void(Event.INTERRUPTED, name, signalled or str(error) or "SIGINT")
                raise
            if signalled is not None:
                self._void(Event.INTERRUPTED, name, signalled)
                raise KeyboardInterrupt(signalled) from error
            reason, void = _explained(name, error, self.recorder.path)
            self._void(Event.VOID, name, reason)
            if void is not None:
                raise void from error
            raise
        finally:
            self.progress.rest()

    def note(self, event: Event, **data: object) -> None:
        """Record something that the conductor itself did, now."""
        self.recorder(_noted(event, data))

    def abandon(self) -> None:
        """Mark a recording that no phase has finished: its trial was never measured."""
        if not self.recorder.finished:
            self._void(Event.VOID, "abandoned", "the trial was given up before it was measured")

    def _void(self, event: Event, phase: str, reason: str) -> None:
        """Keep what there is, then the evidence; must not hide the failure that led here."""
        self.failed = True
        part = self.agent.part if self.agent else None
        kind = "signal" if event is Event.INTERRUPTED else "reason"
        with suppress(AgentFailed):
            if self.agent is not None:
                self.agent.stop()
        if self.watch is not None:
            self.watch.stop()
        with suppress(RecorderError):
            # The mark first: asking a broken API server for evidence can take a while.
            mark = _noted(event, {"phase": phase, kind: reason})
            self.recorder.finish(part, mark, salvage=True)
            if event is Event.VOID:
                found = self.found
                evidence = (
                    attached.evidence(self.api, found, mark.at)
                    if found is not None
                    else probe.evidence(self.api, self.place, mark.at)
                    if self.scenario.workload is None
                    else ()
                )
                self.recorder.finish(None, *evidence)


def record_void(folder: Path, header: Header, phase: str, reason: str) -> None:
    """The recording of a trial that could not even begin."""
    with suppress(RecorderError):
        recorder = Recorder(folder / "recording.jsonl", header)
        recorder.finish(None, _noted(Event.VOID, {"phase": phase, "reason": reason}))


def _explained(phase: str, error: BaseException, recording: Path) -> tuple[str, TrialVoid | None]:
    """Why a phase ended early, and what to raise for it; None: the error itself."""
    if isinstance(error, HARNESS_FAILURES):
        # Who has no command to name leaves what was recorded, which ends in the evidence.
        look = "" if "look at" in str(error).lower() else f". Look at: tail -n 5 {recording}"
        return str(error), TrialVoid(f"void in phase '{phase}': {error}{look}")
    if isinstance(error, failures()):
        return explain(error), TrialVoid(
            f"void in phase '{phase}': the API server failed: {explain(error)}; expected it to "
            "answer throughout the trial. Look at: kubectl get --raw /readyz"
        )
    return (str(error) if isinstance(error, TrialVoid) else repr(error)), None


def _noted(event: Event, data: dict[str, object]) -> Observation:
    at = Interval.point(time.monotonic_ns())
    return Observation(source=Source.ORCHESTRATOR, event=event, at=at, data=data)
