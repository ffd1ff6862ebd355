"""What the ancestor's report.json holds.

Times are whole milliseconds since its trigger_issued, truncated toward zero, and may
be negative; None is "not measured". Types are exact, sets of words closed, and a
field that is not named here is refused: a document that we half understand is not
evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from pytest_drainwatch.core.flow.classify import Outcome
from pytest_drainwatch.core.flow.table import Proto

EXACT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def no_null(value: object) -> object:
    if value is None:
        raise ValueError("is null, expected a value: this field is left out when it is empty")
    return value


# Its own words, not ours: what we add to ours later it never wrote.
Source = Literal["orchestrator", "client", "k8s", "probe"]
Behavior = Literal["drain", "exit-now", "ignore"]
Trigger = Literal["delete", "evict", "scale"]
Count = Annotated[int, Field(ge=0)]
OmittedCount = Annotated[int | None, BeforeValidator(no_null), Field(ge=0)]
OmittedText = Annotated[str | None, BeforeValidator(no_null)]


class Happening(StrEnum):
    """The events of its timelines."""

    WORKLOAD_APPLIED = "workload_applied"
    PREFLIGHT_PASSED = "preflight_passed"
    PROBE_LOG_STREAM_OPENED = "probe_log_stream_opened"
    SETTLE_COMPLETE = "settle_complete"
    TRIGGER_ISSUED = "trigger_issued"
    TRIGGER_API_RETURNED = "trigger_api_returned"
    ALL_FLOWS_TERMINAL = "all_flows_terminal"
    OBSERVATION_WINDOW_CLOSED = "observation_window_closed"
    PROBE_LOG_STREAM_ENDED = "probe_log_stream_ended"
    POD_OBSERVED = "pod_observed"
    ENDPOINTSLICE_OBSERVED = "endpointslice_observed"
    POD_DELETION_TIMESTAMP_SET = "pod_deletion_timestamp_set"
    ENDPOINTSLICE_READY_FALSE = "endpointslice_ready_false"
    ENDPOINTSLICE_ENDPOINT_REMOVED = "endpointslice_endpoint_removed"
    POD_READY_FALSE = "pod_ready_false"
    CONTAINER_TERMINATED = "container_terminated"
    POD_OBJECT_DELETED = "pod_object_deleted"
    PROBE_STARTED = "probe_started"
    LISTENING = "listening"
    SIGTERM_RECEIVED = "sigterm_received"
    READYZ_NOW_503 = "readyz_now_503"
    STOPPED_ACCEPTING = "stopped_accepting"
    DRAIN_STARTED = "drain_started"
    DRAIN_COMPLETE = "drain_complete"
    DRAIN_DEADLINE_REACHED = "drain_deadline_reached"
    SIGTERM_IGNORED = "sigterm_ignored"
    TCP_FLOW_RESET_FORCED = "tcp_flow_reset_forced"
    TCP_FLOW_OPEN_AT_EXIT = "tcp_flow_open_at_exit"
    TCP_FLOW_CLOSED = "tcp_flow_closed"
    EXITING = "exiting"
    FATAL = "fatal"
    FLOW_TERMINAL = "flow_terminal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What a node says about itself."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    name: str
    container_runtime: str
    kubelet_version: str
    os_image: str
    architecture: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where it ran. Nodes and warnings are null in reports of its ``client`` command."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    kubernetes_version: str
    node_count: Count
    nodes: tuple[Node, ...] | None
    kube_proxy_mode: str
    cni: str
    drainwatch_version: str
    git_commit: str
    os: str
    arch: str
    wall_clock_start: str
    warnings: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What was asked for; resolved values."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    tcp_flows: Count
    udp_flows: Count
    grace_period_seconds: int
    drain_behavior: Behavior
    drain_max_seconds: int
    trigger: Trigger
    workload: str
    namespace: str
    target_host: str
    tcp_port: Count
    udp_port: Count
    settle_seconds: int
    observe_timeout_seconds: int
    flow_timeout_seconds: float
    udp_silence_datagrams: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a timeline. ``approximate`` stands on the probe's entries."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    t_ms: int
    source: Source
    event: Happening
    flow_id: OmittedText = None
    detail: OmittedText = None
    approximate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One flow. ``t_terminal_ms`` is None for a survivor, and when its detection counts.

    ``last_data_t_ms`` is a receipt. Of a UDP flow it is when the last ack *of its first
    responder* arrived, the one of ``last_answered_seq``: over its 28 sound reports it lies
    0 to 7 ms after ``connected_t_ms + 500 (last_answered_seq + 1)``, the slot of that
    ping on a grid of 500 ms, and one slot or more before ``t_terminal_ms``, at which the ack
    of another responder or a refusal arrived. (In the one superseded report it lies 2.6 s
    after its slot: the client had lost that much of its schedule.) So the flow's end lies in
    ``(last_data_t_ms, t_terminal_ms]``, but for a round trip that is not recorded.
    Of a TCP flow it is the last line of any kind, a ``bye`` included.
    """

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    id: str
    proto: Proto
    connected_t_ms: int | None
    outcome: Outcome
    t_terminal_ms: int | None
    last_heartbeat_seq: OmittedCount = None
    last_answered_seq: OmittedCount = None
    last_data_t_ms: int | None
    detail: OmittedText = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many flows of one transport ended how."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    total: Count
    drained: Count
    severed: Count
    read_timeout: Count
    survived_window: Count
    not_measured: Count


COUNTED = {
    "drained": Outcome.DRAINED,
    "severed": Outcome.SEVERED,
    "read_timeout": Outcome.READ_TIMEOUT,
    "survived_window": Outcome.SURVIVED,
    "not_measured": Outcome.NOT_MEASURED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Headline values of a trial."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    tcp: Counts
    udp: Counts
    sigterm_to_ready_false_ms: int | None
    sigterm_to_last_flow_terminal_ms: int | None
    trigger_to_sigterm_ms: int | None
    trigger_to_endpoint_removed_ms: int | None
    trigger_to_container_terminated_ms: int | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    id: str
    config: Config
    timeline: tuple[Entry, ...] | None
    flows: tuple[Flow, ...]
    summary: Summary
    clock_note: str
    probe_clock_offset_note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamReport:
    """report.json."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    drainwatch_version: str
    git_commit: str
    environment: Environment
    trial: Trial
