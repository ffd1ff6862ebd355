"""The report as frozen values; their field names are those of report.json.

Times that people read end in ``_ms`` and show the upper bound, as the ancestor's
reports do, counted from the trigger (t = 0). The truth stands beside them: a
``_ns`` field is ``[lo, hi]`` in nanoseconds since the trigger. ``None`` means
"not measured" and is explained in ``notes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.http.document import Requests
from pytest_drainwatch.core.interval import NS_PER_MS, Bounds, Order
from pytest_drainwatch.core.mechanism.evidence import FlowEvidence
from pytest_drainwatch.core.mechanism.snapshot import Snapshot
from pytest_drainwatch.core.observation import Source
from pytest_drainwatch.core.pod.ending import EndedBy, Initiator, PreStopOutcome
from pytest_drainwatch.core.probing.document import NewConnections
from pytest_drainwatch.core.udp.continuity import Continuity
from pytest_drainwatch.core.windows.document import PodWindows

REPORT_SCHEMA = 1


def whole_ms(ns: int | None) -> int | None:
    """Milliseconds truncated toward zero, as the ancestor rounds."""
    return None if ns is None else int(ns / NS_PER_MS)


class Integrity(StrEnum):
    """Whether it was the workload that answered."""

    OK = "ok"
    FOREIGN_RESPONDER = "foreign-responder"  # somebody else did: no count of it is the workload's


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What a node says about itself."""

    name: str
    container_runtime: str | None = None
    kubelet_version: str | None = None
    os_image: str | None = None
    architecture: str | None = None
    kernel_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where the trial ran. A fact that could not be read is None, with a warning."""

    kubernetes_version: str | None = None
    node_count: int | None = None
    nodes: tuple[NodeFacts, ...] | None = None
    kube_proxy_mode: str | None = None
    min_sync_period_ms: int | None = None
    cni: str | None = None
    provider: str | None = None
    provider_why: str | None = None
    probe_image: str | None = None
    drainwatch_version: str | None = None
    git_commit: str | None = None
    os: str | None = None
    arch: str | None = None
    cpus: int | None = None
    python_version: str | None = None
    wall_clock_start: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One thing that happened, and who saw it."""

    t_ms: int
    t_ns: Bounds
    source: Source
    event: str
    subject: str | None = None
    flow_id: str | None = None
    detail: str | None = None
    approximate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A step in a flow's life."""

    event: str
    at_ns: Bounds
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowReport:
    """What happened to one flow."""

    id: str
    proto: Proto
    role: Role | None
    outcome: Outcome
    mechanism: Mechanism
    connected_t_ms: int | None
    t_terminal_ms: int | None
    terminal_ns: Bounds | None
    last_data_t_ms: int | None
    last_heartbeat_seq: int | None = None
    last_answered_seq: int | None = None
    answered: int | None = 0  # None, here and below: of a one-way flow, and not known
    unanswered: int | None = 0
    responders: tuple[str, ...] = ()
    detail: str | None = None
    one_way: bool = False  # nobody answers: what pods received counts as answered
    continuity: Continuity | None = None  # of a UDP flow
    history: tuple[HistoryEntry, ...] = ()
    evidence: tuple[FlowEvidence, ...] = ()  # what the node's network held for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many flows ended how; ``mechanisms`` counts the same flows another way."""

    total: int = 0
    drained: int = 0
    severed: int = 0
    read_timeout: int = 0
    survived_window: int = 0
    not_measured: int = 0
    mechanisms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderReport:
    """Which of two instants came first; overlapping intervals are indeterminate."""

    first: str
    second: str
    order: Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Headline values. ``tcp`` and ``udp`` count target flows, bystanders apart."""

    tcp: Counts
    udp: Counts
    bystander_tcp: Counts
    bystander_udp: Counts
    trigger_to_sigterm_ms: int | None
    sigterm_to_ready_false_ms: int | None
    sigterm_to_last_flow_terminal_ms: int | None
    trigger_to_endpoint_removed_ms: int | None
    trigger_to_container_terminated_ms: int | None
    dead_endpoint_window_ms: int | None
    trigger_to_sigterm_ns: Bounds | None
    sigterm_to_ready_false_ns: Bounds | None
    sigterm_to_last_flow_terminal_ns: Bounds | None
    trigger_to_endpoint_removed_ns: Bounds | None
    trigger_to_container_terminated_ns: Bounds | None
    dead_endpoint_window_ns: Bounds | None
    orders: tuple[OrderReport, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerExit:
    """How a target pod's container ended, from its status."""

    pod: str
    pod_uid: str
    container: str
    exit_code: int | None
    signal: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnd:
    """Who ended one run of a container, how, and when; times in ns since t = 0.

    ``deletion_grace_period_s`` is what the API server set. ``expected_kill_ns`` is when
    the kubelet's rule has SIGKILL follow; what ended before needed none.
    ``pre_stop_ns`` is a duration: how long SIGTERM waited for the hook, at least and at
    most. Of an attached workload nobody tells of signals: ``stop_signal_ns`` bounds that of its
    image (SIGTERM, unless image or pod name another), and is null where none may have been
    sent; ``sigterm_ns`` is null unless the pod itself names SIGTERM.
    ``in_flight_at_sigterm`` counts TCP requests that the probe had read and not
    answered, the oldest of them for ``oldest_in_flight_ns``.
    """

    pod: str
    pod_uid: str
    container: str
    restart: int
    role: Role
    ended_by: EndedBy
    initiator: Initiator
    exit_code: int | None = None
    reason: str | None = None
    deletion_grace_period_s: int | None = None
    deletion_ns: Bounds | None = None
    sigterm_ns: Bounds | None = None
    stop_signal_ns: Bounds | None = None
    expected_kill_ns: Bounds | None = None
    ended_ns: Bounds | None = None
    pre_stop: PreStopOutcome | None = None
    pre_stop_ns: Bounds | None = None
    in_flight_at_sigterm: int | None = None
    oldest_in_flight_ns: int | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerReport:
    """What was asked of the API and what it did. Times in ns since t = 0."""

    verb: str
    attempts: int
    requested_ns: Bounds
    accepted_ns: Bounds
    effective_ns: Bounds | None
    targets: tuple[str, ...]
    blocked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReport:
    """How a probe's stamps were brought onto the harness's clock."""

    clock: str
    same_clock: bool
    offset_ns: Bounds | None
    exchanges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A stretch in which a source could not see: a watch gap or a stall."""

    source: Source
    subject: str
    at_ns: Bounds
    kind: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingStretch:
    """What the flows of one transport sent while the plan gave them one rate.

    ``at_ns`` are the stretch's ends, which are exact. ``flows`` had a slot in it; each
    slot was sent at, or missed. ``late_*`` is how long after their slots sends were; a
    missed slot counts with how late it was when it was given up.
    """

    proto: Proto
    rate_hz: float | None
    at_ns: Bounds
    flows: int | None = None
    sends: int | None = None
    missed_slots: int | None = None
    late_p50_ns: int | None = None
    late_p99_ns: int | None = None
    late_max_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """How well the flow agent kept its schedule, and which schedule that was.

    ``late_*`` are those of :class:`SendingStretch`, over all of them: missed slots count.
    """

    sends: int | None = None
    missed_slots: int | None = None
    late_p50_ns: int | None = None
    late_p99_ns: int | None = None
    late_max_ns: int | None = None
    stretches: tuple[SendingStretch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReport:
    """One trial.

    ``new_connections``: one for each prober; none if no new connections were tried.
    ``requests``: over HTTP; None if none were made.
    ``mechanism``: what the node's conntrack and kube-proxy held, at each look.
    ``degraded`` says in what our own machine fell short: what was measured still holds.
    ``test`` and ``repeat``: the test that measured it, and which of its repeats it is.
    """

    id: str
    scenario: str
    config: Mapping[str, object]
    flags: tuple[str, ...]
    trigger: TriggerReport
    timeline: tuple[TimelineEntry, ...]
    flows: tuple[FlowReport, ...]
    summary: Summary
    container_exits: tuple[ContainerExit, ...]
    clock: tuple[ClockReport, ...]
    clock_note: str
    sending: Sending
    gaps: tuple[Episode, ...]
    stalls: tuple[Episode, ...]
    deviations: tuple[str, ...]
    notes: tuple[str, ...]
    pod_ends: tuple[PodEnd, ...] = ()
    windows: tuple[PodWindows, ...] = ()
    new_connections: tuple[NewConnections, ...] = ()
    requests: Requests | None = None
    integrity: Integrity | None = None
    degraded: tuple[str, ...] = ()
    mechanism: tuple[Snapshot, ...] = ()
    test: str | None = None
    repeat: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """report.json. ``simulated``: a model predicted this trial, and nothing of it was measured."""

    schema_version: int
    drainwatch_version: str
    git_commit: str
    environment: Environment
    trial: TrialReport
    simulated: bool = False
