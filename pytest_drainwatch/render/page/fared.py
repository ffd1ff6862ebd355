"""What became of connections that were open when it happened, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.document import FlowReport, TrialReport
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.udp.continuity import RecoveredBy
from pytest_drainwatch.render.page import prose
from pytest_drainwatch.render.page.moments import within
from pytest_drainwatch.render.page.outage import Outages, between, outages
from pytest_drainwatch.render.page.pods import BYSTANDER, NEWCOMER, Pods
from pytest_drainwatch.render.page.words import FATES, joined, which

_MOVED: dict[str, str] = {
    Mechanism.REFUSED: "were refused",
    Mechanism.UNREACHABLE: "were called unreachable",
    Mechanism.REHOMED: "were taken over by another pod",
    Mechanism.SILENCE: "got no answer any more",
    Mechanism.NONE: "lived on",
}
_WHOLE = frozenset({Outcome.SURVIVED, Outcome.DRAINED})


def tcp(trial: TrialReport) -> str:
    """The TCP connections of the pods that ended; empty if there were none."""
    flows = _targets(trial, Proto.TCP)
    if not flows:
        return ""
    groups: dict[str, list[FlowReport]] = {}
    for flow in flows:
        groups.setdefault(_fate(flow), []).append(flow)
    if len(groups) == 1:
        was = "was" if len(flows) == 1 else "were"
        all_of_them = which(len(flows), len(flows), "open TCP connection")
        return f"{all_of_them} {was} {next(iter(groups))}{_ends(flows)}."
    parts = [
        f"{'one was' if len(found) == 1 else f'{len(found):,} were'} {how}{_ends(found)}"
        for how, found in sorted(groups.items(), key=lambda group: -len(group[1]))
    ]
    return f"Of {len(flows):,} open TCP connections {joined(parts)}."


def _fate(flow: FlowReport) -> str:
    if flow.outcome is Outcome.SURVIVED and not flow.answered:
        return "still open at the end"  # nothing was asked on it, so nobody answered
    return FATES.get((flow.outcome, flow.mechanism), f"{flow.outcome} ({flow.mechanism})")


def _ends(flows: Sequence[FlowReport]) -> str:
    """When they ended; nothing where it is not known, or they did not."""
    ends = within(flow.terminal_ns for flow in flows if flow.terminal_ns is not None)
    return "" if ends is None else f", {prose.at(ends)}"


def udp(trial: TrialReport, pods: Pods) -> str:
    """The same of UDP flows."""
    flows = _targets(trial, Proto.UDP)
    if not flows:
        return ""
    found = outages(flows)
    if found is None:
        return _unharmed_udp(flows, which(len(flows), len(flows), "UDP flow"))
    text = "; ".join(_outages(found, pods))
    if found.lost is not None:
        text += f"; {'each lost' if found.flows > 1 else 'it lost'} {_datagrams(found.lost)}"
    rest = len(flows) - found.flows
    if rest and rest == sum(map(_lost_nothing, flows)):
        text += f"; {'the other one' if rest == 1 else 'the others'} lost nothing"
    return f"{text}."


def _outages(found: Outages, pods: Pods) -> Iterator[str]:
    """Those that were over in the end, and those that never were."""
    if found.back_began_ns is not None and found.back:
        often = "" if found.times == 1 else f" up to {found.times} times, first"
        yield (
            f"{which(found.back, found.of, 'UDP flow')} {found.went(found.back)}{often} "
            f"{prose.since(found.back_began_ns)}"
        )
        did = "received them" if found.one_way else "answered"
        after = "" if found.gap_ns is None else f" after at most {prose.most(found.gap_ns[1])}"
        yield f"{_who_answered(found, pods)} {did} again{after}"
    if found.gone_ns is not None:
        gone = found.never_back
        who = which(gone, found.of, "UDP flow")
        who = who[:1].lower() + who[1:] if found.back else who
        yield f"{who} {found.went(gone)} {prose.since(found.gone_ns)}, to the end of the recording"


def others(trial: TrialReport) -> str:
    """Flows of pods that were to stay; empty if there were none, or they were not measured."""
    flows = [flow for flow in trial.flows if flow.role is Role.BYSTANDER]
    if not flows or any(flow.outcome is Outcome.NOT_MEASURED for flow in flows):
        return ""
    hurt = sum(map(_was_hurt, flows))
    if len(flows) == 1:
        was = "was hurt" if hurt else "was not hurt"
        return f"The one flow to a pod that was to stay {was}."
    if hurt:
        were = "one was" if hurt == 1 else f"{hurt:,} were"
        return f"Of {len(flows):,} flows to pods that were to stay {were} hurt."
    if any(flow.outcome is not Outcome.SURVIVED for flow in flows):
        return f"None of the {len(flows):,} flows to other pods was hurt."
    return f"The {len(flows):,} flows to other pods were not touched."


def _was_hurt(flow: FlowReport) -> bool:
    """Surely: a datagram flow that only moved to another pod was not."""
    if outages([flow]) is not None:
        return True
    return flow.outcome not in _WHOLE and flow.mechanism is not Mechanism.REHOMED


def _lost_nothing(flow: FlowReport) -> bool:
    lived = flow.outcome is Outcome.SURVIVED or flow.mechanism is Mechanism.REHOMED
    return lived and flow.continuity is not None and flow.continuity.lost == 0


def _who_answered(found: Outages, pods: Pods) -> str:
    if found.answered_by == {RecoveredBy.SAME}:
        return "the same pod"
    if found.answered_by != {RecoveredBy.ANOTHER}:
        return "a pod"
    newcomers = pods.of_role(NEWCOMER)
    if len(newcomers) == 1 and not pods.of_role(BYSTANDER):
        return f"{pods.label(newcomers[0])}, the replacement,"
    return "another pod"


def _datagrams(lost: tuple[int, int]) -> str:
    return f"{between(lost)} datagram{'' if lost == (1, 1) else 's'}"


def _unharmed_udp(flows: Sequence[FlowReport], they: str) -> str:
    if all(flow.outcome is Outcome.SURVIVED for flow in flows):
        lost = sum(f.continuity.lost or 0 for f in flows if f.continuity is not None)
        did = "received" if all(flow.one_way for flow in flows) else "answered"
        but = f", but for {_datagrams((lost, lost))}" if lost else ""
        return f"{they} {'was' if len(flows) == 1 else 'were'} {did} to the end{but}."
    if all(flow.outcome is Outcome.NOT_MEASURED for flow in flows):
        return f"{they} could not be measured."
    moved = {f.mechanism for f in flows} == {Mechanism.REHOMED}
    if moved and all(f.continuity is not None and f.continuity.lost == 0 for f in flows):
        return f"{they} moved to another pod without losing a datagram."
    counts = Counter(_MOVED.get(f.mechanism, f"ended by {f.mechanism}") for f in flows)
    told = ", ".join(f"{number:,} {how}" for how, number in counts.most_common())
    return f"Of {len(flows):,} UDP flows {told}."


def _targets(trial: TrialReport, proto: Proto) -> list[FlowReport]:
    return [flow for flow in trial.flows if flow.proto is proto and flow.role is Role.TARGET]
