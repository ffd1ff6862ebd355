"""Who ended the target pods' containers, and what would have let them end otherwise.

A row for each :class:`EndedBy`: it says what was seen, and advises only what that carries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_drainwatch.core.document import PodEnd, TrialReport
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.interval import NS_PER_S, Bounds
from pytest_drainwatch.core.pod.ending import EndedBy, PreStopOutcome
from pytest_drainwatch.render.advice.finding import Because, at
from pytest_drainwatch.render.text import duration

# Ended so soon after SIGTERM, an app has not waited for anybody.
AT_ONCE_NS = NS_PER_S

HANDLE = (
    "handle SIGTERM: stop accepting, tell clients that you close (HTTP: Connection: close), "
    "finish what is under way, close, then exit"
)
EXEC = (
    "let the app be PID 1, or hear of signals: `exec app` in the script, CMD in its list form, "
    'or an init that passes them on (ENTRYPOINT ["tini", "--"])'
)


def ended(trial: TrialReport) -> tuple[Because, ...]:
    """Why the target's containers ended when they did; each kind once."""
    found = [
        because for end in trial.pod_ends if end.role is Role.TARGET for because in _of(end, trial)
    ]
    return tuple(dict.fromkeys(found))


def ends_of(trial: TrialReport) -> tuple[PodEnd, ...]:
    """The target's containers."""
    return tuple(end for end in trial.pod_ends if end.role is Role.TARGET)


def is_attached(trial: TrialReport) -> bool:
    """Whether it is a workload of the user's, which tells nothing of signals."""
    return isinstance(trial.config.get("attached"), Mapping)


def signalled(end: PodEnd) -> Bounds | None:
    """When its stop signal came, as far as that is known."""
    return end.sigterm_ns or end.stop_signal_ns


def _of(end: PodEnd, trial: TrialReport) -> Iterator[Because]:
    verb = trial.trigger.verb
    if end.ended_by is EndedBy.KILLED_BY_TRIGGER or verb == "container-kill":
        yield Because(
            why="the trial killed the container (SIGKILL): nobody was told",
            advice=(
                "nothing within the pod prevents this: clients must connect anew, and more "
                "replicas make each of them hold fewer connections",
            ),
        )
        return
    if verb == "force-delete":
        yield Because(
            why="the pod was deleted by force: there is no grace period, and no hook that counts",
            advice=("delete without --force --grace-period=0",),
        )
        return
    grace = end.deletion_grace_period_s
    within = "its grace period" if grace is None else f"its grace period of {grace} s"
    match end.ended_by:
        case EndedBy.SIGKILL_AT_GRACE:
            yield Because(
                why=f"killed at the end of {within} (SIGKILL, exit code {end.exit_code}) "
                f"{at(end.ended_ns)}",
                advice=tuple(_longer(end, trial)),
            )
        case EndedBy.SIGNAL_NOT_DELIVERED:
            shell = ": a shell is PID 1 and keeps it" if trial.config.get("pid1") == "shell" else ""
            yield Because(
                why=f"killed at the end of {within} {at(end.ended_ns)}; SIGTERM never reached the "
                f"app, whose whole log has none{shell}",
                advice=(EXEC,),
            )
        case EndedBy.OOM_KILLED:
            yield Because(
                why=f"killed for want of memory (OOMKilled) {at(end.ended_ns)}",
                advice=("raise resources.limits.memory, or use less while draining",),
            )
        case EndedBy.KILLED_EARLY:
            yield Because(
                why=f"killed (SIGKILL) {at(end.ended_ns)}, before {within} was over; by whom is "
                "not known. Look at: kubectl describe node; journalctl -u kubelet; dmesg"
            )
        case EndedBy.EXIT_BEFORE_SIGTERM:
            yield Because(
                why=f"ended by itself (exit code {end.exit_code}) {at(end.ended_ns)}, before it "
                "got SIGTERM"
                + ("" if end.pre_stop in (None, PreStopOutcome.NONE) else ": see its preStop hook")
            )
        case EndedBy.EXIT:
            yield _exited(end, within)
        case EndedBy.UNKNOWN:
            seen = "; ".join(end.evidence) or "nothing was seen of it"
            yield Because(why=f"how the container ended is not known ({seen})")


def _longer(end: PodEnd, trial: TrialReport) -> Iterator[str]:
    """Of one that was killed at the end of its grace period: what it needs to end by itself."""
    grace_s = end.deletion_grace_period_s
    above = (
        f"terminationGracePeriodSeconds above {grace_s}"
        if grace_s is not None
        else ("terminationGracePeriodSeconds")
    )
    if end.pre_stop is PreStopOutcome.CUT_OFF:
        yield f"shorten the preStop hook, which took all of the grace period, or set {above}"
        return
    if is_attached(trial):
        yield (
            f"{HANDLE}; or, if it does that and needs longer, set {above} (which of the two, the "
            "trial cannot tell)"
        )
        return
    said = {entry.event for entry in trial.timeline if entry.subject == end.pod_uid}
    if "sigterm_ignored" in said:
        yield HANDLE
    elif "drain_started" in said:
        drains = trial.config.get("drain_max_seconds")
        needs = _needs(drains, end)
        longer = f"set terminationGracePeriodSeconds above {needs}" if needs else f"set {above}"
        yield f"{longer}, or drain in less: it was still draining (drain window {drains:g} s)"


def _needs(drains: object, end: PodEnd) -> int | None:
    """Seconds of drain window and of what the hook took before."""
    if not isinstance(drains, int | float):
        return None
    hook_ns = end.pre_stop_ns[1] if end.pre_stop_ns else 0
    return int(-(-(drains * NS_PER_S + hook_ns) // NS_PER_S))


def _exited(end: PodEnd, within: str) -> Because:
    told, gone = signalled(end), end.ended_ns
    code = f"exit code {end.exit_code}"
    if told is None or gone is None:
        return Because(
            why=f"the app ended by itself ({code}) {at(gone)}; how long after SIGTERM is not known"
        )
    lasted = (gone[0] - told[1], gone[1] - told[0])
    text = f"the app ended by itself ({code}) {duration(lasted)} after SIGTERM"
    if lasted[1] < AT_ONCE_NS:
        return Because(why=f"{text}: it does not drain", advice=(f"{HANDLE}, within {within}",))
    return Because(why=text)
