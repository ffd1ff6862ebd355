"""Waiting within a trial, while everything that must live is seen to live."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from pytest_drainwatch.core.flow import TCP_SILENT_NS
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.flows.process import FlowAgent
from pytest_drainwatch.preflight import TrialVoid
from pytest_drainwatch.recorder import RecorderError
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.watch import Watch

API_SILENT_S = 10.0
# After the last target flow and pod are gone, for late frames.
LINGER_NS = 1 * NS_PER_S
# Flows that are merely unanswered need longer: silence is judged after seconds, and a node
# tells that a host is unreachable only when its neighbour table has given up (3 s).
LINGER_UNANSWERED_NS = {"udp": 6 * NS_PER_S, "tcp": TCP_SILENT_NS + 2 * NS_PER_S}


def watch_until(
    stage: Stage, watch: Watch, agent: FlowAgent, deadline_ns: int, look: Callable[[], bool]
) -> bool:
    """Wait for ``look`` or the deadline; returns what ``look`` says at the end.

    Raises :class:`TrialVoid`, ClusterError, AgentFailed or RecorderError as soon as the
    harness can no longer measure.
    """
    api_failed_since: float | None = None
    while (left_ns := deadline_ns - time.monotonic_ns()) > 0:
        if look():
            return True
        agent.check_alive()
        stage.cluster.check()
        if stage.recorder.problem:
            raise RecorderError(stage.recorder.problem)
        if watch.problem is None:
            api_failed_since = None
        elif api_failed_since is None:
            api_failed_since = time.monotonic()
        elif time.monotonic() - api_failed_since > API_SILENT_S:
            raise TrialVoid(
                f"the API server has not answered for {API_SILENT_S:g} s ({watch.problem}); "
                "expected it to live throughout the trial. Look at: kubectl get --raw /readyz"
            )
        stage.progress.status(agent.status().summary())
        agent.wait_changed(min(0.1, left_ns / NS_PER_S))
    return look()


def undisturbed(agent: FlowAgent) -> Callable[[], bool]:
    """Never true; voids the trial when a flow ends before the trigger."""

    def look() -> bool:
        ended = agent.status().first_ends
        if ended:
            raise TrialVoid(
                "preflight check 'settled' failed\n"
                "  invariant: no flow ends before the trigger\n"
                f"  observed:  {'; '.join(ended)}\n"
                "  expected:  every flow alive through the settle time\n"
                "  look at:   the probe's log in recording.jsonl; kube-proxy; the node's load"
            )
        return False

    return look


def all_over(watch: Watch, agent: FlowAgent, uids: Collection[str]) -> Callable[[], bool]:
    """True once nothing more can happen to the pods ``uids``, and a moment has passed."""
    ended = frozenset(uids)
    over_since: list[int] = []

    def look() -> bool:
        gone = not ended & watch.pods().keys() and not ended & watch.endpoint_uids()
        status = agent.status()
        if not gone or status.target_answering:
            over_since.clear()
            return False
        now = time.monotonic_ns()
        over_since[:] = over_since or [now]
        linger = LINGER_NS
        if status.udp.target_alive:
            linger = LINGER_UNANSWERED_NS["udp"]
        if status.tcp.target_alive:
            linger = LINGER_UNANSWERED_NS["tcp"]
        return now - over_since[0] >= linger

    return look
