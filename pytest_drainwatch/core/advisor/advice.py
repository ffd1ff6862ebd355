"""Everything the advisor says of some manifests: what is printed, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pytest_drainwatch.core.advisor.budget import ShutdownBudget, budget
from pytest_drainwatch.core.advisor.checks import check
from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.measured import Measured
from pytest_drainwatch.core.advisor.recommend import Recommendation, recommend
from pytest_drainwatch.core.advisor.roles import application
from pytest_drainwatch.core.advisor.subject import Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.advisor.tried import Both, both


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One workload: the budget of its application, and what was found."""

    kind: str
    name: str
    namespace: str
    # "file:line"
    at: str
    container: str
    budget: ShutdownBudget
    # What its known parts leave of the grace period; negative: by so much they do not fit.
    left_ns: int
    findings: tuple[Finding, ...]
    recommendation: Recommendation
    # What the simulator says of the recommended values and of the present ones.
    simulated: Both | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """All workloads, and what is to be said of objects that are about none of them."""

    drainwatch_version: str
    workloads: tuple[Workload, ...]
    findings: tuple[Finding, ...]
    # What trials say; None where none were given.
    measured: Measured | None = None

    def all_findings(self) -> Iterator[Finding]:
        """Those of the workloads, then the others."""
        for workload in self.workloads:
            yield from workload.findings
        yield from self.findings

    def count(self, level: Level) -> int:
        """How many findings of that level there are."""
        return sum(finding.level is level for finding in self.all_findings())


def advise(
    subjects: Iterable[Subject],
    strays: Iterable[Finding],
    told: Told,
    version: str,
    measured: Measured | None = None,
) -> Advice:
    """The checks carried out on every workload."""
    return Advice(
        drainwatch_version=version,
        workloads=tuple(_workload(subject, told) for subject in subjects),
        findings=tuple(strays),
        measured=measured,
    )


def _workload(subject: Subject, told: Told) -> Workload:
    container, recommended = application(subject), recommend(subject, told)
    spent = budget(subject, container, told)
    return Workload(
        kind=subject.kind,
        name=subject.name,
        namespace=subject.namespace,
        at=str(subject.at),
        container=container.name,
        budget=spent,
        left_ns=spent.left_ns,
        findings=tuple(check(subject, told)),
        recommendation=recommended,
        simulated=both(subject, told, recommended),
    )
