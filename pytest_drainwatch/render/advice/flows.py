"""What became of the flows that were held open, and what would have kept them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.document import FlowReport, PodEnd, TrialReport
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, Bounds
from pytest_drainwatch.core.udp.continuity import RecoveredBy
from pytest_drainwatch.render import network
from pytest_drainwatch.render.advice.ended import AT_ONCE_NS, FOR_GOOD, ended, ends_of, signalled
from pytest_drainwatch.render.advice.finding import Because, Finding, named, span
from pytest_drainwatch.render.terminal import counts, ends
from pytest_drainwatch.render.text import duration

WHOLE = frozenset({Outcome.DRAINED, Outcome.SURVIVED})
# Of these our own machine is the reason, and the workload was not seen.
OURS = frozenset({Mechanism.CLIENT_LIMIT, Mechanism.CLIENT_STALL})

# For so long a process that exits may be going: its sockets go one by one.
GOING_NS = 100 * NS_PER_MS

_LEFT_OPEN = Because(
    why="the connection was neither closed nor reset: nothing more was heard on it",
    advice=(
        "give the client a deadline of its own: a timeout for each answer, TCP keepalive or "
        "TCP_USER_TIMEOUT",
    ),
)
_UNREAD = Because(
    why="it announced its close and then reset: bytes that it had not read were lost",
    advice=("shut down only the sending side, and read until the client has closed",),
)
_NO_SERVER = "no pod answered any flow after the target's"
_REPEAT = "let clients repeat what is not answered: UDP has no close to tell them"


def held(trial: TrialReport) -> Iterator[Finding]:
    """A finding for each transport, and one for flows of pods that nobody terminated."""
    for proto in Proto:
        mine = [f for f in trial.flows if f.proto is proto and f.role is not Role.BYSTANDER]
        if mine:
            yield _of(proto, mine, trial)
    others = [f for f in trial.flows if f.role is Role.BYSTANDER and f.outcome not in WHOLE]
    cut = [f for f in others if f.outcome is not Outcome.NOT_MEASURED]
    if cut:
        yield Finding(
            part="others",
            broken=True,
            what=f"{len(cut):,} flow(s) of pods that were not terminated ended too",
            which=named([f.id for f in cut]),
            because=(Because(why="by what is not known; `drainwatch show` has each flow's end"),),
        )


def _of(proto: Proto, mine: Sequence[FlowReport], trial: TrialReport) -> Finding:
    summary = trial.summary.tcp if proto is Proto.TCP else trial.summary.udp
    when = ends(mine, proto)
    what = counts(summary) + (f", {when} after the trigger" if when != "-" else "")
    hurt = [f for f in mine if f.outcome not in WHOLE and f.outcome is not Outcome.NOT_MEASURED]
    if not hurt:
        unknown = [f for f in mine if f.outcome is Outcome.NOT_MEASURED]
        return Finding(
            part=str(proto),
            broken=None if unknown else False,
            what=what,
            which=named([f.id for f in unknown]),
            because=tuple(_not_measured(unknown)),
        )
    why = _tcp(hurt, trial) if proto is Proto.TCP else _udp(hurt, trial)
    return Finding(
        part=str(proto),
        broken=True,
        what=what + _after_sigterm(hurt, trial),
        which=named([f.id for f in hurt]),
        because=tuple(dict.fromkeys(why)),
    )


def _not_measured(unknown: Sequence[FlowReport]) -> Iterator[Because]:
    ours = [f for f in unknown if f.mechanism in OURS]
    if ours:
        yield Because(
            why=f"of {len(ours):,} our own machine could not look or send",
            advice=("measure again with fewer flows, fewer workers or less beside it",),
        )
    if len(ours) < len(unknown):
        yield Because(why=f"of {len(unknown) - len(ours):,} the recording does not show the end")


def _after_sigterm(hurt: Sequence[FlowReport], trial: TrialReport) -> str:
    """How long after SIGTERM they ended, of a single pod that was told to end."""
    told = [signalled(end) for end in ends_of(trial)]
    gone = span([f.terminal_ns for f in hurt if f.terminal_ns is not None])
    if len(told) != 1 or told[0] is None or gone is None:
        return ""
    sigterm = told[0]
    if sigterm[1] - sigterm[0] > AT_ONCE_NS:
        return ""  # of a workload that tells nothing, it is within seconds
    lo, hi = gone[0] - sigterm[1], gone[1] - sigterm[0]
    if lo >= 0:
        return f", {duration((lo, hi))} after SIGTERM"
    if any(f.proto is Proto.UDP for f in hurt):
        # What was sent before may still have waited to be read when the app went.
        return ""
    return ", before SIGTERM" if hi < 0 else f", within {duration((max(-lo, hi),) * 2)} of SIGTERM"


def _tcp(hurt: Sequence[FlowReport], trial: TrialReport) -> Iterator[Because]:
    by = {f.mechanism for f in hurt}
    if trial.trigger.verb == "none":
        yield Because(why="nothing was asked of the cluster: why they ended is not known")
        return
    if Mechanism.SILENCE in by or Mechanism.ACCEPTED_NEVER_SERVED in by:
        yield _LEFT_OPEN
    if Mechanism.ANNOUNCED_RST in by:
        yield _UNREAD
    if by - {Mechanism.SILENCE, Mechanism.ACCEPTED_NEVER_SERVED, Mechanism.ANNOUNCED_RST}:
        yield from ended(trial) or (Because(why="who ended the pod's containers was not seen"),)


def _udp(hurt: Sequence[FlowReport], trial: TrialReport) -> Iterator[Because]:
    """UDP has no close: a flow ends where the cluster leads it, or when nobody is there."""
    if trial.trigger.verb == "none":
        yield Because(why="nothing was asked of the cluster: why they ended is not known")
        return
    early = [f for f in hurt if _before_the_end(f, trial)]
    unready = [f for f in early if _failed_readiness(f, trial)]
    if unready:
        yield Because(
            why=f"{len(unready):,} were led away from a pod that still served: its readiness "
            f"failed at SIGTERM, and UDP follows readiness",
            advice=("keep the readiness probe passing while the app drains (until it ends)",),
        )
    if len(unready) < len(early):
        yield Because(
            why=f"{len(early) - len(unready):,} were led away while the pod still ran; what did "
            "it is not known"
        )
    if len(early) < len(hurt):
        yield _with_the_pod([f for f in hurt if f not in early], trial)


def _with_the_pod(hurt: Sequence[FlowReport], trial: TrialReport) -> Because:
    """Those that ended when their pod did, or may have."""
    if not any(map(_answered_again, hurt)):
        return Because(why=_nobody_after(hurt, trial))
    gaps = [f.continuity.gap_ns for f in hurt if f.continuity and f.continuity.gap_ns]
    without = f", without an answer for {duration(span(gaps))}" if gaps else ""
    if all(end.ended_ns is not None for f in hurt for end in _pod_of(f, trial)) and all(
        _pod_of(f, trial) for f in hurt
    ):
        return Because(why=f"they ended with their pod{without}", advice=(_REPEAT,))
    return Because(
        why=f"another pod answered later{without}; whether they ended with their pod or were led "
        "away from it is not known",
        advice=(_REPEAT,),
    )


def _nobody_after(hurt: Sequence[FlowReport], trial: TrialReport) -> str:
    if any(f.continuity is None for f in hurt):
        return "what came after them is not recorded"
    if trial.trigger.verb in FOR_GOOD:
        return f"{_NO_SERVER}: nothing was left that could"
    stale = network.stale(hurt)
    return f"{_NO_SERVER}: " + ("why is not known" if stale is None else stale)


def _pod_of(flow: FlowReport, trial: TrialReport) -> tuple[PodEnd, ...]:
    """The ends of the pod that answered it first; of all targets, if that is not known."""
    uid = flow.responders[0].partition("/")[0] if flow.responders else None
    return tuple(end for end in ends_of(trial) if uid in (None, end.pod_uid))


def _before_the_end(flow: FlowReport, trial: TrialReport) -> bool:
    """Whether it was led elsewhere surely before every container of its pod went."""
    gone: list[Bounds | None] = [end.ended_ns for end in _pod_of(flow, trial)]
    if flow.terminal_ns is None or not gone or flow.mechanism is not Mechanism.REHOMED:
        return False
    return all(each is not None and flow.terminal_ns[1] < each[0] - GOING_NS for each in gone)


def _answered_again(flow: FlowReport) -> bool:
    """Whether a pod of the workload answered after its end, whichever it was."""
    told = flow.continuity
    if told is None or told.recovered_at_ns is None:
        return flow.mechanism is Mechanism.REHOMED
    return told.recovered_by is not RecoveredBy.FOREIGN


def _failed_readiness(flow: FlowReport, trial: TrialReport) -> bool:
    """Whether its pod said, before it was led away, that it fails its readiness probe now."""
    pods = {end.pod_uid for end in _pod_of(flow, trial)}
    return flow.terminal_ns is not None and any(
        entry.event == "readyz_now_503"
        and entry.subject in pods
        and entry.t_ms * NS_PER_MS <= flow.terminal_ns[1]
        for entry in trial.timeline
    )
