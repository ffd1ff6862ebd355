"""A measured trial, as a test gets it to judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch.core.document import Counts, FlowReport, PodEnd, Report, Summary
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.http.document import KindRequests, Requests
from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.probing.document import NewConnections
from pytest_drainwatch.core.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Trial:
    """A measured trial: what was asked, and what happened."""

    scenario: Scenario
    report: Report
    folder: Path

    def __repr__(self) -> str:
        return f"<Trial {self.scenario.id} in {self.folder}>"

    @property
    def summary(self) -> Summary:
        """Counts and durations."""
        return self.report.trial.summary

    @property
    def tcp(self) -> Counts:
        """How the target's TCP flows ended."""
        return self.summary.tcp

    @property
    def udp(self) -> Counts:
        """How the target's UDP flows ended."""
        return self.summary.udp

    @property
    def flows(self) -> tuple[FlowReport, ...]:
        """Every flow, bystanders too."""
        return self.report.trial.flows

    @property
    def new_connections(self) -> NewConnections:
        """What new TCP connections met. Raises :class:`LookupError` if none were tried."""
        for found in self.report.trial.new_connections:
            if found.proto is Proto.TCP:
                return found
        raise LookupError(f"{self.scenario.id}: no new TCP connections were tried")

    @property
    def requests(self) -> Requests:
        """What HTTP requests met. Raises :class:`LookupError` if none were made."""
        found = self.report.trial.requests
        if found is None:
            raise LookupError(f"{self.scenario.id}: no HTTP requests were made")
        return found

    def requests_of(self, kind: LaneKind | str) -> KindRequests:
        """Those of one kind of lanes: ``keepalive``, ``idle``, ``in-flight`` or ``new``.

        Raises :class:`LookupError` if there were none.
        """
        for found in self.requests.kinds:
            if found.kind == kind:
                return found
        raise LookupError(f"{self.scenario.id}: there were no {kind} lanes")

    def stale(self, proto: Proto, occasion: Occasion) -> int | None:
        """How many of the target's flows conntrack then led to a pod that had ended.

        None: there are no such flows, the node was not looked at then, or of some flow it
        is not known.
        """
        flows = [f for f in self.flows if f.proto is proto and f.role is Role.TARGET]
        told = [piece for f in flows for piece in f.evidence if piece.occasion is occasion]
        if not flows or len(told) < len(flows) or any(e.to and e.stale is None for e in told):
            return None
        return sum(piece.stale is True for piece in told)

    @property
    def pod_ends(self) -> tuple[PodEnd, ...]:
        """Who ended each container of the terminated pods, and how."""
        return tuple(end for end in self.report.trial.pod_ends if end.role is Role.TARGET)

    @property
    def exit_codes(self) -> tuple[int | None, ...]:
        """Exit codes of the terminated pods' containers."""
        return tuple(gone.exit_code for gone in self.report.trial.container_exits)
