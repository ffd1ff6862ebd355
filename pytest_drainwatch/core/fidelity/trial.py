"""A measured trial, as the fit and the comparison need it; what is none is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.fidelity.rebuilt import scenario_of
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import Recording
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.core.scenario.values import ScenarioError
from pytest_drainwatch.core.start import CannotDerive, start_of


class FidelityError(ValueError):
    """Trials that the model cannot be held against; says which, why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One measured trial: what was asked, and what the report says of it.

    ``seen`` is its recording, which tells a little more than the report; empty: there is none.
    ``t0_ns`` is the trigger on the recording's clock.
    """

    label: str
    scenario: Scenario
    report: Report
    seen: tuple[Observation, ...] = ()
    t0_ns: int = 0

    @property
    def targets(self) -> tuple[str, ...]:
        """Uids of the pods that were terminated."""
        return self.report.trial.trigger.targets

    def instants(self, event: str, uids: tuple[str, ...] | None = None) -> Iterator[int]:
        """When it had happened since the trigger, in ns: of each of these pods the first time."""
        found: dict[str | None, int] = {}
        for entry in self.report.trial.timeline:
            at_ns = entry.t_ns[1]
            if entry.event != event or at_ns < 0:
                continue
            if uids is None or entry.subject in uids:
                found.setdefault(entry.subject, at_ns)
        yield from found.values()

    def instant(self, event: str, uids: tuple[str, ...] | None = None) -> int | None:
        """The first of :meth:`instants`; None: it was not seen, or not since the trigger."""
        return min(self.instants(event, uids), default=None)

    def frames(self, event: Event) -> Iterator[tuple[int, Observation]]:
        """What its recording has of this, if there is one, and when since the trigger, in ns."""
        for one in self.seen:
            if one.event is event:
                yield one.at.hi - self.t0_ns, one

    @property
    def newcomers(self) -> tuple[str, ...]:
        """Uids of the pods that came since the trigger: the targets' replacements."""
        return tuple(
            entry.subject
            for entry in self.report.trial.timeline
            if entry.event == "pod_observed" and entry.t_ns[1] >= 0 and entry.subject
        )


def measured(label: str, report: Report, recording: Recording | None = None) -> Trial:
    """A trial to fit to, or to hold the model against. Raises :class:`FidelityError`."""
    if report.simulated or (recording is not None and recording.header.simulated):
        raise FidelityError(
            f"{label}: this trial is simulated. A model that is fitted to what it predicted itself "
            "proves nothing; expected measured trials, as of: drainwatch run"
        )
    if not report.trial.trigger.targets:
        raise FidelityError(f"{label}: nothing was terminated in this trial; expected a trigger")
    seen: tuple[Observation, ...] = () if recording is None else recording.observations
    try:
        scenario = scenario_of(report)
        t0_ns = start_of(seen).t0_ns if seen else 0
    except (ScenarioError, CannotDerive) as error:
        raise FidelityError(f"{label}: {error}") from error
    return Trial(label=label, scenario=scenario, report=report, seen=seen, t0_ns=t0_ns)
