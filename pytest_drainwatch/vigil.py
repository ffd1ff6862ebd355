"""Waiting within a trial, while everything that must live is seen to live."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from pytest_drainwatch.beside import Beside
from pytest_drainwatch.core.flow.signals import TCP_SILENT_NS
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.jsonvalue import integer, objects
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.flows.process import AgentStatus, FlowAgent, HttpStatus, ProberStatus
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
# A connection on which nothing is said ends when its peer's kernel has left keepalives
# unanswered, a second apart, for five seconds.
LINGER_HELD_NS = 8 * NS_PER_S
# For answers that are under way when nothing more can happen; some clients ask all the time.
LAST_ANSWERS_NS = 15 * NS_PER_S
# Flows that are merely unanswered need longer: silence is judged after seconds, and a node
# tells that a host is unreachable only when its neighbour table has given up (3 s).
LINGER_UNANSWERED_NS = {"udp": 6 * NS_PER_S, "tcp": TCP_SILENT_NS + 2 * NS_PER_S}


def check_alive(stage: Stage, watch: Watch, agent: FlowAgent | None = None) -> None:
    """Return if everything that must live throughout a trial does.

    Raises :class:`TrialVoid`, ClusterError, AgentFailed, BalancerFailed or RecorderError.
    """
    stage.cluster.check()
    if stage.front is not None:
        stage.front.check()
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
        agent.wait_changed(min(0.1, left_ns / NS_PER_S))
    return look()


def undisturbed(agent: FlowAgent) -> Callable[[], bool]:
    """Never true; voids the trial when a flow ends or falters before the trigger."""

    def look() -> bool:
        status = agent.status()
        seen = list(status.first_ends)
        if status.http is not None and status.http.failing:
            seen.append(f"{status.http.failing} HTTP client(s) fail: {status.http.problem}")
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
    replaced: bool = True,
    restarts: Mapping[str, int] | None = None,
    one_way: bool = False,
    signed: bool = True,
    recovery_ns: int = RECOVERY_NS,
    notices_ns: int = 0,
) -> Callable[[], bool]:
    """True once nothing more can happen to the pods ``uids``, and a moment has passed.

    ``everybody``: those are all pods, so no flow at all may still be answered by one of
    them. Who came after them, in a rollout, is nobody's end. ``replaced``: others can come in
    their place, if the trigger lets them. Of pods in ``restarts``, by how
    often their container had restarted, one was killed: they stay, and it comes back. A
    control is never over: what may not happen is looked for until the window closes.
    ``recovery_ns`` is how long new connections may go on failing before they are no longer
    waited for. Unless answers are ``signed`` nobody knows which flows those pods still answer,
    so the pods alone decide. ``notices_ns`` is how long whoever leads connections to those pods
    may take to see that they are gone.
    """
    if verb is Trigger.NONE:
        return lambda: False
    ended = frozenset(uids)
    over_since: list[int] = []
    replaced = replaced and verb not in UNREPLACED
    recovered = _recovered(replaced)

    def look() -> bool:
        status = agent.status()
        now = time.monotonic_ns()
        served = recovered(status, now)
        answering = status.answering if everybody and signed else status.target_answering
        if answering or _still_ending(watch, ended, restarts or {}):
            over_since.clear()
            return False
        over_since[:] = over_since or [now]
        # Of one-way flows the agent knows nothing: they may be in the dark from now on.
        linger = LINGER_UNANSWERED_NS["udp"] if one_way else LINGER_NS + notices_ns
        for name, proto in (("udp", status.udp), ("tcp", status.tcp)):
            if proto.quiet or proto.refused:
                linger = max(linger, LINGER_UNANSWERED_NS[name])
        if not signed:
            linger = max(linger, LINGER_HELD_NS)
        failing = status.http is not None and status.http.failing > 0
        if not served or (failing and replaced):
            linger = max(linger, recovery_ns)
        over_ns = now - over_since[0] - linger
        return over_ns >= 0 and not (status.http and _under_way(status.http, over_ns))

    return look


def _under_way(http: HttpStatus, over_ns: int) -> bool:
    """Whether requests are still to be made, or to be answered, by clients who wait that long."""
    return http.due > 0 or (http.waiting > 0 and over_ns < LAST_ANSWERS_NS)


def _still_ending(watch: Watch, ended: frozenset[str], restarts: Mapping[str, int]) -> bool:
    """Whether one of these pods is still there, or not back yet with a new container."""
    pods = watch.pods()
    killed = ended & restarts.keys() & pods.keys()
    leaving = ended - killed
    if leaving & pods.keys() or leaving & watch.endpoint_uids():
        return True
    return any(not _is_back(pods[uid], restarts[uid]) for uid in killed)


def _is_back(pod: Mapping[str, object], restarts: int) -> bool:
    """Whether a pod is ready again, one of its containers having restarted more often."""
    often = (integer(each.get("restarts")) for each in objects(pod.get("containers")))
    return pod.get("ready") is True and any(count > restarts for count in often)


def _recovered(replaced: bool) -> Callable[[AgentStatus, int], bool]:
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
        if not replaced:
            return True
        return now_ns - failed_ns >= RECOVERED_NS and _answered_since(at_failure, status.probers)

    return look


def _answered_since(
    before: Mapping[str, ProberStatus], probers: Mapping[str, ProberStatus]
) -> bool:
    """Whether each of those has been answered again."""
    return all(probers[name].answered > was.answered for name, was in before.items())
