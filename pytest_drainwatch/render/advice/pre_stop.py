"""The preStop sleep that would have spared those who failed between two pods.

The kubelet sends SIGTERM when the hook is over: as long as it sleeps the pod serves on, and the
cluster has that time to lead new connections to others.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_drainwatch.core.document import Environment, PodEnd, TrialReport
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds, whole_seconds
from pytest_drainwatch.core.pod.ending import EndedBy
from pytest_drainwatch.render.advice.ended import AT_ONCE_NS, ends_of, signalled
from pytest_drainwatch.render.advice.finding import Because, sleep_of
from pytest_drainwatch.render.text import duration

# Of these no hook runs that could sleep.
NO_HOOK = frozenset({"force-delete", "container-kill", "none"})
# These ends did not wait for SIGTERM: a hook that sleeps would not have put them off.
NOT_AT_SIGTERM = frozenset(
    {
        *(EndedBy.OOM_KILLED, EndedBy.KILLED_EARLY),
        *(EndedBy.EXIT_BEFORE_SIGTERM, EndedBy.KILLED_BY_TRIGGER),
    }
)
# kube-proxy's period, in Kubernetes' defaults.
SYNC_MS = 1000


def failed_for_a_time(
    begun_ns: Bounds,
    first_ns: Bounds,
    *,
    what: str,
    alone: bool,
    trial: TrialReport,
    environment: Environment,
) -> Because:
    """Of those begun within ``begun_ns``, the first of which failed within ``first_ns``, and
    after which others were served. ``alone``: nobody was served between them.
    """
    stopped, verb = _stopped(trial), trial.trigger.verb
    again = f"{what}served again after {duration((begun_ns[1], begun_ns[1]))}"
    if verb in NO_HOOK:
        return Because(why=f"{again}; no preStop hook runs before a {verb}")
    if any(end.ended_by in NOT_AT_SIGTERM for end in ends_of(trial)):
        return Because(why=f"{again}; no sleep helps against a container that ends before SIGTERM")
    if stopped is None:
        return Because(why=f"{again}; when the pods stopped serving is not known")
    if first_ns[1] < stopped[0]:
        return Because(
            why=f"{again}; they began to fail before any pod was told to stop: why is not known"
        )
    alone = alone or (verb != "rollout" and trial.config.get("replicas") == 1)
    at_once = _told_at_once(trial)
    if alone and not _replaced_at_once(trial):
        return Because(
            why=f"{again}; no other pod served meanwhile, and whether its replacement is made "
            "before it has gone is not known (a StatefulSet's and a DaemonSet's is not: a longer "
            "preStop sleep would only put this off)"
        )
    if alone and (verb == "rollout" or not at_once):
        return Because(
            why=f"{again}; no other pod served meanwhile: why is not known. Look at: "
            "kubectl get pods; strategy, maxUnavailable, and how long pods take to be Ready"
        )
    # From the deletion on: whether it served for a while after SIGTERM is not asked.
    seconds = max(1, whole_seconds(begun_ns[1])) if at_once else 0
    so = "the pod serves on, if it stays ready, until new connections are led to others"
    if not alone and (synced := _synced(environment)) > seconds:
        seconds, so = synced, _period(environment)
    lasted_ns = _hook_ns(trial)
    if lasted_ns is not None and seconds * NS_PER_S <= lasted_ns:
        return Because(
            why=f"{again}, though its preStop hook took {duration((lasted_ns,) * 2)}: why is not "
            "known"
        )
    needed = sleep_of(seconds, _grace(trial), hook=_has_other_hook(trial))
    return Because(why=again, advice=(f"{needed}: {so}",))


def _synced(environment: Environment) -> int:
    """Seconds until kube-proxy has surely led new connections elsewhere, and one more."""
    period = environment.min_sync_period_ms
    return whole_seconds((SYNC_MS if period is None else period) * NS_PER_MS) + 1


def _period(environment: Environment) -> str:
    period = environment.min_sync_period_ms
    if period is None:
        return "kube-proxy's minSyncPeriod is 1 s by default (what it is here is not known)"
    return f"kube-proxy's minSyncPeriod is {period / 1000:g} s here"


def _replaced_at_once(trial: TrialReport) -> bool:
    """Whether a pod's replacement is made while it still ends: a Deployment's is."""
    kind = str(trial.config.get("workload")).partition("/")[0]
    return kind in ("deploy", "deployment")


def _stopped(trial: TrialReport) -> Bounds | None:
    """When the first of the target's pods may have stopped serving: told to, or killed."""
    found = [signalled(end) or _killed(end) for end in ends_of(trial)]
    known = [each for each in found if each is not None]
    return min(known) if known and len(known) == len(found) else None


def _killed(end: PodEnd) -> Bounds | None:
    """When it ended, if it was at the end of its grace period."""
    at_grace = end.ended_by in (EndedBy.SIGKILL_AT_GRACE, EndedBy.SIGNAL_NOT_DELIVERED)
    return end.ended_ns if at_grace else None


def _told_at_once(trial: TrialReport) -> bool:
    """Whether the target's pods were all deleted right after the trigger."""
    deleted = [end.deletion_ns for end in ends_of(trial)]
    return all(each is not None and each[1] <= AT_ONCE_NS for each in deleted)


def _grace(trial: TrialReport) -> int | None:
    """The shortest grace period that a target pod was given; None: not known."""
    graces = [end.deletion_grace_period_s for end in ends_of(trial)]
    return min((each for each in graces if each is not None), default=None)


def _hook_ns(trial: TrialReport) -> int | None:
    """How long the target's hooks took at least, or were to sleep; None: not known, or none."""
    hook = trial.config.get("pre_stop")
    seconds = hook.get("sleep_seconds") if isinstance(hook, Mapping) else None
    if isinstance(seconds, int | float):
        return int(seconds * NS_PER_S)
    took = [end.pre_stop_ns for end in ends_of(trial)]
    known = [each[0] for each in took if each is not None]
    return min(known) if known and len(known) == len(took) else None


def _has_other_hook(trial: TrialReport) -> bool:
    """Whether there is a hook already that is no sleep: a container has one at most."""
    hook = trial.config.get("pre_stop")
    return isinstance(hook, Mapping) and "sleep_seconds" not in hook
