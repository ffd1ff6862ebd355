"""Who ended the target pods' containers, and what would have let them end otherwise.

A row for each :class:`EndedBy`: it says what was seen, and advises only what that carries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_drainwatch.core.document import PodEnd, TrialReport
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.interval import NS_PER_S, Bounds
from pytest_drainwatch.core.pod.ending import EndedBy, PreStopOutcome
from pytest_drainwatch.render.advice.finding import Because, at, span
from pytest_drainwatch.render.text import duration

# Nobody is told by these, whoever it then was that ended it.
BY_FORCE = frozenset({"container-kill", "force-delete"})
# After these nobody is meant to serve.
FOR_GOOD = frozenset({"scale", "namespace-delete"})
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
    """Why the target's containers ended when they did, and connections with them; each once."""
    return (*not_by_themselves(trial), *_exited(by_themselves(trial)))


def not_by_themselves(trial: TrialReport) -> tuple[Because, ...]:
    """The same of those that did not end by themselves after SIGTERM."""
    exited = by_themselves(trial)
    rest = [end for end in ends_of(trial) if end not in exited]
    return tuple(dict.fromkeys(because for end in rest for because in _of(end, trial)))


def by_themselves(trial: TrialReport) -> tuple[PodEnd, ...]:
    """The target's containers that ended by themselves after SIGTERM, not by force."""
    if trial.trigger.verb in BY_FORCE:
        return ()
    return tuple(end for end in ends_of(trial) if end.ended_by is EndedBy.EXIT)


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
            why="the pod was deleted by force: no preStop hook runs, and SIGKILL comes 2 s after "
            "SIGTERM (the least that the kubelet gives)",
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
        case EndedBy.UNKNOWN:
            seen = "; ".join(end.evidence) or "nothing was seen of it"
            yield Because(why=f"how the container ended is not known ({seen})")


def _longer(end: PodEnd, trial: TrialReport) -> Iterator[str]:
    """Of one that was killed at the end of its grace period: what it needs to end by itself."""
    grace_s = end.deletion_grace_period_s
    above = (
        f"terminationGracePeriodSeconds above {grace_s}"
        if grace_s is not None
        else "terminationGracePeriodSeconds higher"
    )
    if end.pre_stop is PreStopOutcome.CUT_OFF:
        yield (
            "shorten the preStop hook, which took all of the grace period, or set "
            "terminationGracePeriodSeconds to more than hook and app take together"
        )
        return
    if is_attached(trial):
        yield (
            f"{HANDLE}; or, if it does that and needs longer, set {above}; or, if SIGTERM does not "
            f"reach it, {EXEC} (which of them, the trial cannot tell)"
        )
        return
    said = {entry.event for entry in trial.timeline if entry.subject == end.pod_uid}
    if "sigterm_ignored" in said:
        yield HANDLE
    elif "drain_started" in said:
        drains = trial.config.get("drain_max_seconds")
        needs = _needs(drains, end)
        longer = f"set terminationGracePeriodSeconds above {needs}" if needs else f"set {above}"
        window = f" (drain window {drains:g} s)" if isinstance(drains, int | float) else ""
        yield f"{longer}, or drain in less: it was still draining{window}"


def _needs(drains: object, end: PodEnd) -> int | None:
    """Seconds of drain window and of what the hook took before."""
    if not isinstance(drains, int | float):
        return None
    hook_ns = end.pre_stop_ns[1] if end.pre_stop_ns else 0
    return int(-(-(drains * NS_PER_S + hook_ns) // NS_PER_S))


def _exited(ends: Sequence[PodEnd]) -> Iterator[Because]:
    """Of those that ended by themselves: how soon, all that did so at once together."""
    lasted = [(end, _lasted(end)) for end in ends]
    at_once = [(end, ns) for end, ns in lasted if ns is not None and ns[1] < AT_ONCE_NS]
    later = [(end, ns) for end, ns in lasted if ns is not None and ns[1] >= AT_ONCE_NS]
    if at_once:
        graces = [e.deletion_grace_period_s for e, _ in at_once if e.deletion_grace_period_s]
        within = f", within its grace period of {min(graces)} s" if graces else ""
        yield Because(
            why=f"{_after_sigterm(at_once)}: it does not drain", advice=(f"{HANDLE}{within}",)
        )
    if later:
        yield Because(why=_after_sigterm(later))
    unknown = [end for end, ns in lasted if ns is None]
    if unknown:
        yield Because(
            why=f"{_themselves(unknown)}; how long after SIGTERM is not known",
        )


def _lasted(end: PodEnd) -> Bounds | None:
    """From its stop signal to its end; None: not known, or only that it was some time."""
    told, gone = signalled(end), end.ended_ns
    if told is None or gone is None or told[1] - told[0] > AT_ONCE_NS:
        return None
    return max(0, gone[0] - told[1]), max(0, gone[1] - told[0])


def _after_sigterm(found: Sequence[tuple[PodEnd, Bounds]]) -> str:
    lasted = span([ns for _, ns in found])
    return f"{_themselves([end for end, _ in found])} {duration(lasted)} after SIGTERM"


def _themselves(ends: Sequence[PodEnd]) -> str:
    codes = ", ".join(dict.fromkeys(str(end.exit_code) for end in ends))
    who = "the app ended by itself" if len(ends) == 1 else f"{len(ends)} apps ended by themselves"
    return f"{who} (exit code {codes})"
