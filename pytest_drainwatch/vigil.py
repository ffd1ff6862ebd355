"""Waiting within a trial, while everything that must live is seen to live."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from pytest_drainwatch.beside import Beside
from pytest_drainwatch.core.flow.signals import TCP_SILENT_NS
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.flows.process import AgentStatus, FlowAgent, ProberStatus
from pytest_drainwatch.preflight import TrialVoid
from pytest_drainwatch.recorder import RecorderError
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.watch import Watch

# A trial is not over while new connections fail and a replacement may still come: it has
# its own time to be made and to be Ready, and kube-proxy a period to hear of it.
RECOVERY_NS = 20 * NS_PER_S
# For so long no new connection may have failed: an attempt is given up after a second. And one
# that was begun after the last that failed must have been answered: they may be rare.
RECOVERED_NS = 2 * NS_PER_S
UNREPLACED = frozenset({Trigger.SCALE, Trigger.NAMESPACE_DELETE})
# How long a dying cluster may take to be seen as dead.
DEATH_LAG_S = 0.5
# After the last target flow and pod are gone, for late frames.
LINGER_NS = 1 * NS_PER_S
# Flows that are merely unanswered need longer: silence is judged after seconds, and a node
# tells that a host is unreachable only when its neighbour table has given up (3 s).
LINGER_UNANSWERED_NS = {"udp": 6 * NS_PER_S, "tcp": TCP_SILENT_NS + 2 * NS_PER_S}


def check_alive(stage: Stage, watch: Watch, agent: FlowAgent | None = None) -> None:
    """Return if everything that must live throughout a trial does.

    Raises :class:`TrialVoid`, ClusterError, AgentFailed or RecorderError.
    """
    stage.cluster.check()
    if stage.recorder.problem:
        raise RecorderError(stage.recorder.problem)
    if agent is not None:
        agent.check_alive()
    trouble = watch.trouble()
    if trouble is not None:
        raise TrialVoid(
            f"the API server cannot be watched: {trouble}; expected it to answer throughout the "
            "trial. Look at: kubectl get --raw /readyz"
        )


def watch_until(
    stage: Stage,
    watch: Watch,
    agent: FlowAgent,
    deadline_ns: int,
    look: Callable[[], bool],
    beside: Beside,
) -> bool:
    """Wait for ``look`` or the deadline; returns what ``look`` says at the end.

    Raises what :func:`check_alive` does as soon as the harness can no longer measure.
    """
    while (left_ns := deadline_ns - time.monotonic_ns()) > 0:
        check_alive(stage, watch, agent)
        beside.look()
        try:
            if look():
                return True
        except TrialVoid:
            # What ended the flows may be the cluster's own death: that is the better reason.
            time.sleep(DEATH_LAG_S)
            check_alive(stage, watch, agent)
            raise
        stage.progress.status(agent.status().summary())
        agent.wait_changed(min(0.1, left_ns / NS_PER_S))
    return look()


def undisturbed(agent: FlowAgent) -> Callable[[], bool]:
    """Never true; voids the trial when a flow ends or falters before the trigger."""

    def look() -> bool:
        status = agent.status()
        seen = list(status.first_ends)
        if status.undecided:
            seen.append(f"{status.undecided} flow(s) refused, or unanswered for over a second")
        if seen:
            raise TrialVoid(
                "preflight check 'settled' failed\n"
                "  invariant: no flow ends, is refused or goes unanswered before the trigger\n"
                f"  observed:  {'; '.join(seen)}\n"
                "  expected:  every flow alive through the settle time\n"
                "  look at:   the probe's log in recording.jsonl; kube-proxy; the node's load"
            )
        return False

    return look


def all_over(
    watch: Watch,
    agent: FlowAgent,
    verb: Trigger,
    uids: Collection[str],
    *,
    everybody: bool,
    one_way: bool = False,
    recovery_ns: int = RECOVERY_NS,
) -> Callable[[], bool]:
    """True once nothing more can happen to the pods ``uids``, and a moment has passed.

    ``everybody``: those are all pods, so no flow at all may still be answered by one of
    them. Who came after them, in a rollout, is nobody's end. A control is never over:
    what may not happen is looked for until the window closes. ``recovery_ns`` is how long
    new connections may go on failing before they are no longer waited for.
    """
    if verb is Trigger.NONE:
        return lambda: False
    ended = frozenset(uids)
    over_since: list[int] = []
    recovered = _recovered(verb)

    def look() -> bool:
        status = agent.status()
        now = time.monotonic_ns()
        served = recovered(status, now)
        answering = status.answering if everybody else status.target_answering
        if answering or ended & watch.pods().keys() or ended & watch.endpoint_uids():
            over_since.clear()
            return False
        over_since[:] = over_since or [now]
        # Of one-way flows the agent knows nothing: they may be in the dark from now on.
        linger = LINGER_UNANSWERED_NS["udp"] if one_way else LINGER_NS
        for name, proto in (("udp", status.udp), ("tcp", status.tcp)):
            if proto.quiet or proto.refused:
                linger = max(linger, LINGER_UNANSWERED_NS[name])
        if not served:
            linger = max(linger, recovery_ns)
        return now - over_since[0] >= linger

    return look


def _recovered(verb: Trigger) -> Callable[[AgentStatus, int], bool]:
    """Whether new connections are answered again, if they ever will be."""
    failed_ns = -RECOVERED_NS
    # Of each prober as it stood when its last failure was seen. Results are told in the order
    # in which attempts were begun, so who is answered later was begun later.
    at_failure: dict[str, ProberStatus] = {}

    def look(status: AgentStatus, now_ns: int) -> bool:
        nonlocal failed_ns
        for name, prober in status.probers.items():
            if prober.failed > (at_failure[name].failed if name in at_failure else 0):
                at_failure[name], failed_ns = prober, now_ns
        if verb in UNREPLACED:
            return True
        return now_ns - failed_ns >= RECOVERED_NS and _answered_since(at_failure, status.probers)

    return look


def _answered_since(
    before: Mapping[str, ProberStatus], probers: Mapping[str, ProberStatus]
) -> bool:
    """Whether each of those has been answered again."""
    return all(probers[name].answered > was.answered for name, was in before.items())
