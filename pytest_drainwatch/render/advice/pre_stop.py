"""The preStop sleep that would have spared those who failed between two pods.

The kubelet sends SIGTERM when the hook is over: as long as it sleeps the pod serves on, and the
cluster has that time to lead new connections to others.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_drainwatch.core.document import Environment, TrialReport
from pytest_drainwatch.core.interval import NS_PER_MS, Bounds
from pytest_drainwatch.render.advice.ended import AT_ONCE_NS, ends_of, signalled
from pytest_drainwatch.render.advice.finding import Because, sleep_of, whole_seconds
from pytest_drainwatch.render.text import duration

# Of these no hook runs that could sleep.
NO_HOOK = frozenset({"force-delete", "container-kill", "none"})
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
    if stopped is None:
        return Because(why=f"{again}; when the pods stopped serving is not known")
    if first_ns[1] < stopped[0]:
        return Because(
            why=f"{again}; they began to fail before any pod was told to stop: why is not known"
        )
    if _told_at_once(trial):
        seconds = _needed(begun_ns, stopped)
        so = "the pod serves on, if it stays ready, until new connections are led to others"
    elif not alone:
        period_s = whole_seconds((environment.min_sync_period_ms or SYNC_MS) * NS_PER_MS)
        seconds, so = period_s + 1, f"kube-proxy's minSyncPeriod is {period_s} s here"
    else:
        return Because(
            why=f"{again}; no other pod served meanwhile: why is not known. Look at: "
            "kubectl get pods; maxUnavailable, and how long pods take to be Ready"
        )
    slept = _slept(trial)
    if slept is not None and seconds <= slept:
        return Because(why=f"{again}, though its preStop hook slept {slept} s: why is not known")
    return Because(why=again, advice=(f"{sleep_of(seconds, _grace(trial))}: {so}",))


def _stopped(trial: TrialReport) -> Bounds | None:
    """When the first of the target's pods may have stopped serving: told to, or ended."""
    found = [signalled(end) or end.ended_ns for end in ends_of(trial)]
    known = [each for each in found if each is not None]
    return min(known) if known and len(known) == len(found) else None


def _told_at_once(trial: TrialReport) -> bool:
    """Whether the target's pods were all deleted right after the trigger."""
    deleted = [end.deletion_ns for end in ends_of(trial)]
    return all(each is not None and each[1] <= AT_ONCE_NS for each in deleted)


def _needed(begun_ns: Bounds, stopped_ns: Bounds) -> int:
    """Seconds of hook from the deletion on, so that a pod serves until the last that failed
    was begun. For as long after SIGTERM as none failed, it served by itself.
    """
    served_ns = max(0, begun_ns[0] - stopped_ns[1])
    return max(1, whole_seconds(begun_ns[1] - served_ns))


def _grace(trial: TrialReport) -> int | None:
    """The shortest grace period that a target pod was given; None: not known."""
    graces = [end.deletion_grace_period_s for end in ends_of(trial)]
    return min((each for each in graces if each is not None), default=None)


def _slept(trial: TrialReport) -> int | None:
    """The seconds that the hook slept already; None: it has none that sleeps."""
    hook = trial.config.get("pre_stop")
    seconds = hook.get("sleep_seconds") if isinstance(hook, Mapping) else None
    return seconds if isinstance(seconds, int) else None
