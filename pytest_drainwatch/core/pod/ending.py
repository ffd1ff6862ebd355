"""How a container ended, who began it, and what became of its preStop hook: one table each.

Facts are what the recording shows and nothing else; ``None`` means that it does not
show it. No row makes a certainty of a ``None``: a log that was cut off cannot say
that a signal never came, and a kill that may have been early or in time is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.interval import NS_PER_S, Interval, Order


class EndedBy(StrEnum):
    """How a container ended. Closed; see :data:`TABLE`."""

    EXIT = "exit"
    EXIT_BEFORE_SIGTERM = "exit-before-sigterm"
    SIGKILL_AT_GRACE = "sigkill-at-grace"
    KILLED_EARLY = "killed-early"
    KILLED_BY_TRIGGER = "killed-by-trigger"
    SIGNAL_NOT_DELIVERED = "signal-not-delivered"
    OOM_KILLED = "oom-killed"
    UNKNOWN = "unknown"


class Initiator(StrEnum):
    """Who began it; see :data:`INITIATORS` for those that name themselves."""

    API_DELETE = "api-delete"
    FORCE_DELETE = "force-delete"
    API_EVICT = "api-evict"
    EVACUATE_NODE = "evacuate-node"
    SCALE = "scale"
    ROLLOUT = "rollout"
    NAMESPACE_DELETE = "namespace-delete"
    OTHER_DELETION = "other-deletion"  # deleted, and not by this trial's trigger
    KUBELET_EVICTION = "kubelet-eviction"
    NODE_SHUTDOWN = "node-shutdown"
    PREEMPTION = "preemption"
    TAINT_EVICTION = "taint-eviction"
    POD_GC = "pod-gc"
    CONTAINER_KILL = "container-kill"  # by this trial's trigger, past the API
    CONTAINER_RESTART = "container-restart"  # told to end, and the pod not deleted
    CONTAINER = "container"  # ended with nobody having asked
    UNKNOWN = "unknown"


class PreStopOutcome(StrEnum):
    """What became of the hook; a report has null where it cannot be told."""

    NONE = "none"
    COMPLETED = "completed"
    FAILED = "failed"
    CUT_OFF = "cut-off-at-grace"


class KillTime(StrEnum):
    """When SIGKILL came, against the kubelet's rule."""

    EARLY = "early"
    AT_GRACE = "at-grace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of one container's end.

    ``killed``: whether its last signal was SIGKILL. ``died_of_sigterm``: whether its exit
    code says that of SIGTERM, which needs no handler. ``sigterm_logged``: False only
    where the log is complete and holds no such line. ``before_deletion``: whether it
    ended before its pod's deletion, or without one. ``by_trigger``: whether it is the one that
    the trial killed past the API, and nobody else had told it to end. ``logless``: it is a
    workload of the user's, which tells nothing of signals. ``hook_over``: whether SIGTERM, which
    follows the preStop hook, was due when it ended; None: that may be, or not.
    """

    ended: bool
    by_trigger: bool = False
    oom: bool = False
    killed: bool | None = None
    kill_time: KillTime | None = None
    died_of_sigterm: bool = False
    sigterm_logged: bool | None = None
    before_deletion: bool = False
    logless: bool = False
    hook_over: bool | None = True


@dataclass(frozen=True, slots=True)
class Row:
    """The first row whose condition holds decides."""

    when: str
    holds: Callable[[Facts], bool]
    then: EndedBy


TABLE = (
    Row("its end was not seen", lambda f: not f.ended, EndedBy.UNKNOWN),
    Row("its exit code is not known", lambda f: f.killed is None, EndedBy.UNKNOWN),
    # A runtime keeps saying OOMKilled of a container whose child process was, and which
    # then ended in another way.
    Row(
        "SIGKILL and OOMKilled, though the grace period may explain the kill",
        lambda f: f.killed is True and f.oom and f.kill_time is KillTime.AT_GRACE,
        EndedBy.UNKNOWN,
    ),
    Row("SIGKILL and OOMKilled", lambda f: f.killed is True and f.oom, EndedBy.OOM_KILLED),
    Row(
        "SIGKILL, after the trial's own and with nobody else having asked",
        lambda f: f.killed is True and f.by_trigger,
        EndedBy.KILLED_BY_TRIGGER,
    ),
    Row(
        "SIGKILL, certainly before the kubelet's rule allows it",
        lambda f: f.killed is True and f.kill_time is KillTime.EARLY,
        EndedBy.KILLED_EARLY,
    ),
    Row(
        "SIGKILL, and early or in time cannot be told apart",
        lambda f: f.killed is True and f.kill_time is None,
        EndedBy.UNKNOWN,
    ),
    Row(
        "SIGKILL at the end of the grace period, SIGTERM in the log",
        lambda f: f.killed is True and f.sigterm_logged is True,
        EndedBy.SIGKILL_AT_GRACE,
    ),
    Row(
        "SIGKILL at the end of the grace period, no SIGTERM in a complete log",
        lambda f: f.killed is True and f.sigterm_logged is False,
        EndedBy.SIGNAL_NOT_DELIVERED,
    ),
    # Whether SIGTERM was delivered before is not known of it: only that it was not enough.
    Row(
        "SIGKILL at the end of the grace period, of a workload that tells nothing of signals",
        lambda f: f.killed is True and f.logless,
        EndedBy.SIGKILL_AT_GRACE,
    ),
    Row(
        "SIGKILL at the end of the grace period, the log incomplete",
        lambda f: f.killed is True,
        EndedBy.UNKNOWN,
    ),
    Row("any other exit, SIGTERM in the log", lambda f: f.sigterm_logged is True, EndedBy.EXIT),
    Row(
        "any other exit before its hook was over, of a workload that tells nothing of signals",
        lambda f: f.logless and not f.before_deletion and f.hook_over is False,
        EndedBy.EXIT_BEFORE_SIGTERM,
    ),
    # The hook may be what ended it, as `nginx -s quit` does: then no signal was ever sent.
    Row(
        "any other exit while its hook may have run, of a workload that tells nothing of signals",
        lambda f: f.logless and not f.before_deletion and f.hook_over is None,
        EndedBy.UNKNOWN,
    ),
    Row(
        "any other exit after the deletion, of a workload that tells nothing of signals",
        lambda f: f.logless and not f.before_deletion,
        EndedBy.EXIT,
    ),
    # The default action of the signal leaves no line; somebody else may have sent it, too.
    Row(
        "the exit code of a death by SIGTERM, no SIGTERM in the log",
        lambda f: f.died_of_sigterm,
        EndedBy.UNKNOWN,
    ),
    Row(
        "any other exit, no SIGTERM in a complete log",
        lambda f: f.sigterm_logged is False,
        EndedBy.EXIT_BEFORE_SIGTERM,
    ),
    Row(
        "any other exit, before the deletion or without one, the log incomplete and silent",
        lambda f: f.before_deletion,
        EndedBy.EXIT_BEFORE_SIGTERM,
    ),
    Row("any other exit, the log incomplete and silent", lambda _: True, EndedBy.UNKNOWN),
)


def ended_by(facts: Facts) -> EndedBy:
    """The table's verdict; every combination of facts has one."""
    return next(row.then for row in TABLE if row.holds(facts))


def kill_time(ended: Interval, expected: Interval | None) -> KillTime | None:
    """SIGKILL against when the kubelet's rule expects it; None where both are possible.

    Grace periods are whole seconds: whoever kills by another one kills at least a
    second sooner, so an end within that second is the rule's. A kubelet may be late.
    """
    if expected is None:
        return None
    if ended.order(expected) is Order.BEFORE:
        return KillTime.EARLY
    return KillTime.AT_GRACE if ended.lo > expected.hi - NS_PER_S else None


# The reason of a pod's DisruptionTarget condition, and then the reason in its status.
INITIATORS = {
    "EvictionByEvictionAPI": Initiator.API_EVICT,
    "PreemptionByScheduler": Initiator.PREEMPTION,
    "DeletionByTaintManager": Initiator.TAINT_EVICTION,
    "DeletionByPodGC": Initiator.POD_GC,
}
KUBELET_REASONS = {
    "Evicted": Initiator.KUBELET_EVICTION,
    "Preempting": Initiator.PREEMPTION,
    "Terminated": Initiator.NODE_SHUTDOWN,
    "NodeShutdown": Initiator.NODE_SHUTDOWN,
}
VERBS = {
    "delete": Initiator.API_DELETE,
    "force-delete": Initiator.FORCE_DELETE,
    "evict": Initiator.API_EVICT,
    "evacuate-node": Initiator.EVACUATE_NODE,
    "scale": Initiator.SCALE,
    "rollout": Initiator.ROLLOUT,
    "namespace-delete": Initiator.NAMESPACE_DELETE,
    "container-kill": Initiator.CONTAINER_KILL,
}
# By these a pod is evicted, and an evicted pod says so of itself.
BY_EVICTION = frozenset({"evict", "evacuate-node"})


# Events that tell how something ended; the others tell of starts, or of the network.
TELLING = frozenset(
    {
        *("FailedPreStopHook", "FailedKillPod", "ExceededGracePeriod", "BackOff"),
        *("Evicted", "Preempting", "Preempted", "TaintManagerEviction"),
        *("OOMKilling", "SystemOOM"),
    }
)


def tells_of_an_end(reason: str, message: str) -> bool:
    """Whether a cluster event is evidence; "Stopping container" every deletion has."""
    return reason in TELLING or (
        reason == "Killing" and not message.startswith("Stopping container")
    )


def initiator(
    *,
    disruption: str | None,
    pod_reason: str | None,
    deleted: bool | None,
    verb: str | None,
    told: bool,
    ended: bool,
    disruption_shown: bool = False,
) -> Initiator:
    """Who began a container's end.

    ``disruption`` and ``pod_reason`` are what the pod says of itself, ``deleted``
    whether it was deleted when the container ended (None: not known), ``verb`` the
    trigger if the pod is its target, ``told`` whether SIGTERM or the preStop hook was
    seen, ``disruption_shown`` whether the pod would have said that it was evicted. A
    kubelet's eviction is never the API's, whatever the trial had asked for (case C29); a
    drain without a deletion is a restart of the container (case C67); a deletion that
    follows an eviction which a webhook made a dry run is somebody else's (case C33).
    """
    if pod_reason in KUBELET_REASONS:
        return KUBELET_REASONS[pod_reason]
    if disruption in INITIATORS:
        begun = INITIATORS[disruption]
        return VERBS[verb] if begun is Initiator.API_EVICT and verb in BY_EVICTION else begun
    if disruption == "TerminationByKubelet":
        return Initiator.UNKNOWN  # one of the kubelet's reasons, and it is not said which
    killed = verb == "container-kill"
    if deleted:
        if verb is None or killed or (disruption_shown and verb in BY_EVICTION):
            return Initiator.OTHER_DELETION
        return VERBS.get(verb, Initiator.UNKNOWN)
    if deleted is None:
        return Initiator.UNKNOWN
    if killed and ended and not told:
        return Initiator.CONTAINER_KILL
    if told:
        return Initiator.CONTAINER_RESTART
    return Initiator.CONTAINER if ended else Initiator.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """What is known of a preStop hook's run.

    ``lasts_ns`` is how long it takes at least if nothing goes wrong, None if not known.
    ``sleeps``: a `sleep` action, which takes just that long and cannot fail by itself.
    ``until_sigterm_ns`` is the most that may have passed from its beginning to SIGTERM:
    the kubelet began after the deletion, and SIGTERM was logged after it was sent.
    ``failed``: whether the kubelet said so; None if its events were not read.
    ``answered``: the probe answered an httpGet before SIGTERM, and in time.
    """

    grace_ns: int | None
    lasts_ns: int | None = None
    sleeps: bool = False
    until_sigterm_ns: int | None = None
    failed: bool | None = None
    answered: bool = False


def pre_stop_outcome(hook: Hook) -> PreStopOutcome | None:
    """What became of a hook that was asked for; None where that cannot be told.

    The kubelet gives up waiting at the end of the grace period. A late SIGTERM alone does
    not show that: the kubelet may have begun late, or the app logged it late, after a hook
    that just made it. A hook that is too long does, and so does one called failed: it
    failed at once or, if SIGTERM was that late, when its container was killed.
    """
    if hook.answered:
        return PreStopOutcome.COMPLETED
    until_ns, grace_ns, lasts_ns = hook.until_sigterm_ns, hook.grace_ns, hook.lasts_ns
    if until_ns is None or grace_ns is None:
        return None
    if lasts_ns is not None and until_ns < min(lasts_ns, grace_ns):
        return PreStopOutcome.FAILED if hook.failed else None
    if lasts_ns is not None and lasts_ns >= grace_ns:
        return PreStopOutcome.CUT_OFF
    if until_ns >= grace_ns and not hook.sleeps:
        return PreStopOutcome.CUT_OFF if hook.failed else None
    if hook.failed is None:
        # The sleep action had the time that it takes.
        return PreStopOutcome.COMPLETED if hook.sleeps else None
    return PreStopOutcome.FAILED if hook.failed else PreStopOutcome.COMPLETED
