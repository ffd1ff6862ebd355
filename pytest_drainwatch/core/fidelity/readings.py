"""Where each of the simulator's latencies is read from a measured trial."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.core.fidelity import shown
from pytest_drainwatch.core.fidelity.moved import sync_ns
from pytest_drainwatch.core.fidelity.shown import Read, of_newcomer, since, took


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How one latency is read from a trial.

    ``by_trigger``: it depends on how the pod is terminated, so trials with another trigger say
    nothing of it.
    """

    source: str
    read: Read
    by_trigger: bool = False


READINGS: dict[str, Reading] = {
    "call_ns": Reading(source="trigger.accepted_ns", read=shown.call, by_trigger=True),
    "deletion_ns": Reading(
        source="t = 0 → pod_deletion_timestamp_set", read=shown.deletion, by_trigger=True
    ),
    "terminating_ns": Reading(
        source="pod_deletion_timestamp_set → endpointslice_terminating",
        read=since("pod_deletion_timestamp_set", "endpointslice_terminating"),
    ),
    "endpoint_ns": Reading(
        source="a pod's change → its endpoint's (removed, serving false, ready true)",
        read=shown.endpoint,
    ),
    "sigterm_ns": Reading(
        source="pod_deletion_timestamp_set → sigterm_received", read=shown.sigterm
    ),
    "unready_ns": Reading(source="readyz_now_503 → pod_ready_false", read=shown.unready),
    "kill_ns": Reading(
        source="sigterm_received + grace period → end of the TCP flows", read=shown.kill
    ),
    "status_ns": Reading(source="exiting, or the kill → container_terminated", read=shown.status),
    "network_ns": Reading(
        source="exiting → the first new connection that timed out", read=shown.network
    ),
    "deleted_ns": Reading(
        source="container_terminated → pod_object_deleted",
        read=since("container_terminated", "pod_object_deleted"),
    ),
    "handling_ns": Reading(
        source="sigterm_received → drain_started", read=since("sigterm_received", "drain_started")
    ),
    "farewell_ns": Reading(
        source="drain deadline, or SIGTERM of exit-now → end of the TCP flows", read=shown.farewell
    ),
    "lingering_ns": Reading(source="drain deadline → exiting", read=shown.lingering),
    "exit_ns": Reading(source="sigterm_received → exiting, of exit-now", read=shown.leaving),
    "replacement_ns": Reading(
        source="pod_deletion_timestamp_set → pod_observed of the replacement",
        read=shown.replacement,
    ),
    "started_ns": Reading(
        source="the replacement's first frame → its phase Running (recording)", read=shown.started
    ),
    "listening_ns": Reading(
        source="pod_observed → listening, of the replacement",
        read=of_newcomer("pod_observed", "listening"),
    ),
    "ready_ns": Reading(
        source="listening → pod_ready_true, of the replacement",
        read=of_newcomer("listening", "pod_ready_true"),
    ),
    "sync_ns": Reading(
        source="endpointslice_ready_false → new connections are led to the replacement, without "
        "the minSyncPeriods and cleanups between, by the number of syncs",
        read=sync_ns,
    ),
    "conntrack_ns": Reading(
        source="new connections are led to the replacement → UDP flows are", read=shown.conntrack
    ),
    "noticed_ns": Reading(
        source="the last answer, and the time that silence is waited for → all_flows_terminal",
        read=shown.noticed,
    ),
    "rtt_ns": Reading(
        source="shortest round trips of TCP flows (recording)", read=shown.round_trip
    ),
    "connect_ns": Reading(source="answered new connections (recording)", read=took("answered")),
    "refusal_ns": Reading(source="refused new connections (recording)", read=took("refused")),
}
