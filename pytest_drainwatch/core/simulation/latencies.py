"""How long the parts of a cluster take: what a simulated trial is fitted with.

Each is a duration in nanoseconds that a report or a recording of a measured trial shows.
The defaults are medians of the published matrix on Kubernetes 1.37 (results/sample), in
round numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario.values import check_within

LONGEST_NS = 3600 * NS_PER_S
# With the longest response delay that an application may have, still less than the second
# after which a reply counts as none.
LONGEST_TRIP_NS = 99 * NS_PER_MS
TRIPS = ("rtt_ns", "connect_ns", "refusal_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Where each is seen in a measured trial.

    The API server and the endpoints:
        call_ns: from the trigger call until the API answered (trigger.accepted_ns).
        deletion_ns: from the call to the frame with the pod's deletion (trigger.effective_ns).
        terminating_ns: from there to the endpoint's ``ready: false``.
        endpoint_ns: from any other frame of a pod to the change of its endpoint.

    The kubelet and the container:
        sigterm_ns: from the deletion's frame to SIGTERM in the log. A preStop hook comes on top.
        unready_ns: from ``readyz_now_503`` to the pod's ``ready: false``: when in its period the
            readiness probe comes.
        kill_ns: from when SIGKILL is due, counted from SIGTERM in the log, to its effect.
        status_ns: from the process's exit to ``container_terminated``.
        network_ns: from its exit until its kernel answers nobody any more: new connections
            time out that were refused before.
        deleted_ns: from ``container_terminated`` to ``pod_object_deleted``.

    The probe:
        handling_ns: from SIGTERM in the log to ``drain_started``.
        farewell_ns: from the drain deadline to FIN, from SIGTERM to the RST of exit-now.
        lingering_ns: from the drain deadline to ``exiting``.
        exit_ns: from SIGTERM to ``exiting`` of exit-now.

    The replacement:
        replacement_ns: from the deletion's frame to its first frame.
        started_ns: from there to phase Running; only a recording shows it.
        listening_ns: from its first frame to ``listening`` in its log.
        ready_ns: from ``listening`` to ``pod_ready_true``; ``ready_after_s`` of the application
            comes on top.

    The data plane and the client:
        sync_ns: how long a kube-proxy sync takes without its cleanup of conntrack: from the
            endpoint's change until new connections go elsewhere, where none was made within
            minSyncPeriod before.
        conntrack_ns: from there until UDP flows do too, whose entries it deletes after the rules.
        rtt_ns: a request and its answer on a held flow.
        connect_ns: a new connection, until it is answered.
        refusal_ns: the same, until it is refused.
        noticed_ns: from when nothing more can happen until the harness notices: it looks and is
            told several times a second.
    """

    call_ns: int = 19_500_000
    deletion_ns: int = 19_600_000
    terminating_ns: int = 29_400_000
    endpoint_ns: int = 11_100_000
    sigterm_ns: int = 33_500_000
    unready_ns: int = 452 * NS_PER_MS
    kill_ns: int = 23_500_000
    status_ns: int = 209 * NS_PER_MS
    network_ns: int = 267 * NS_PER_MS
    deleted_ns: int = 379 * NS_PER_MS
    handling_ns: int = 920_000
    farewell_ns: int = 2_240_000
    lingering_ns: int = 9_750_000
    exit_ns: int = 3_070_000
    replacement_ns: int = 37_300_000
    started_ns: int = 457 * NS_PER_MS
    listening_ns: int = 527 * NS_PER_MS
    ready_ns: int = 877 * NS_PER_MS
    sync_ns: int = 33 * NS_PER_MS
    conntrack_ns: int = 37 * NS_PER_MS
    rtt_ns: int = 140_000
    connect_ns: int = 610_000
    refusal_ns: int = 60_000
    noticed_ns: int = 128 * NS_PER_MS

    def check(self) -> None:
        """Refuse what no cluster shows. Raises
        :class:`~pytest_drainwatch.core.scenario.values.ScenarioError`.
        """
        for each in fields(self):
            longest_ns = LONGEST_TRIP_NS if each.name in TRIPS else LONGEST_NS
            check_within(each.name, getattr(self, each.name), 0, longest_ns)
