"""What became of connections that were open when it happened, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_drainwatch.core.document import FlowReport, TrialReport
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.render.page import prose
from pytest_drainwatch.render.page.moments import within
from pytest_drainwatch.render.page.outage import Outages, between, outages
from pytest_drainwatch.render.page.pods import BYSTANDER, NEWCOMER, Pods
from pytest_drainwatch.render.page.words import FATES, joined
from pytest_drainwatch.render.text import duration

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
    groups = Counter(
        FATES.get((f.outcome, f.mechanism), f"{f.outcome} ({f.mechanism})") for f in flows
    )
    ends = within(flow.terminal_ns for flow in flows if flow.terminal_ns is not None)
    when = "" if ends is None else f", {prose.at(ends)}"
    if len(groups) == 1:
        which = f"{_all(len(flows), 'open TCP connection')} {'was' if len(flows) == 1 else 'were'}"
        return f"{which} {next(iter(groups))}{when}."
    parts = [f"{number:,} were {how}" for how, number in groups.most_common()]
    return f"Of {len(flows):,} open TCP connections {joined(parts)}{when}."


def udp(trial: TrialReport, pods: Pods) -> str:
    """The same of UDP flows."""
    flows = _targets(trial, Proto.UDP)
    if not flows:
        return ""
    which = _all(len(flows), "UDP flow")
    found = outages(flows)
    if found is None:
        return _unharmed_udp(flows, which)
    if found.flows < len(flows):
        which = f"{found.flows:,} of {len(flows):,} UDP flows"
    each = "each lost" if found.flows > 1 else "it lost"
    lost = "" if found.lost is None else f"; {each} {_datagrams(found.lost)}"
    went = "were" if found.one_way else "went"
    first = ", first " if found.times > 1 else " "
    text = f"{which} {went} {found.words}{first}{prose.since(found.began_ns)}"
    if found.never_back == found.flows:
        return f"{text}, to the end of the recording: nobody answered any more{lost}."
    did = "received them" if found.one_way else "answered"
    back = f"{_who_answered(found, pods)} {did} again after at most {duration(found.gap_ns)}"
    if found.never_back:
        back += f", and {found.never_back:,} of them were never answered again"
    rest = sum(map(_lost_nothing, flows))
    others = "; the others lost nothing" if rest and rest == len(flows) - found.flows else ""
    return f"{text}; {back}{lost}{others}."


def others(trial: TrialReport) -> str:
    """Flows of pods that were to stay; empty if there were none, or they were not measured."""
    flows = [flow for flow in trial.flows if flow.role is Role.BYSTANDER]
    if not flows or any(flow.outcome is Outcome.NOT_MEASURED for flow in flows):
        return ""
    hurt = sum(flow.outcome not in _WHOLE or outages([flow]) is not None for flow in flows)
    if hurt:
        return f"Of {len(flows):,} flows to pods that were to stay {hurt:,} were hurt."
    return f"The {len(flows):,} flows to other pods were not touched."


def _lost_nothing(flow: FlowReport) -> bool:
    lived = flow.outcome is Outcome.SURVIVED or flow.mechanism is Mechanism.REHOMED
    return lived and flow.continuity is not None and flow.continuity.lost == 0


def _who_answered(found: Outages, pods: Pods) -> str:
    if not found.by_another:
        return "the same pod"
    newcomers = pods.of_role(NEWCOMER)
    if len(newcomers) == 1 and not pods.of_role(BYSTANDER):
        return f"{pods.label(newcomers[0])}, the replacement,"
    return "another pod"


def _datagrams(lost: tuple[int, int]) -> str:
    return f"{between(lost)} datagram{'' if lost == (1, 1) else 's'}"


def _unharmed_udp(flows: Sequence[FlowReport], which: str) -> str:
    if all(flow.outcome is Outcome.SURVIVED for flow in flows):
        lost = sum(f.continuity.lost or 0 for f in flows if f.continuity is not None)
        but = f", but for {_datagrams((lost, lost))}" if lost else ""
        return f"{which} {'was' if len(flows) == 1 else 'were'} answered to the end{but}."
    if all(flow.outcome is Outcome.NOT_MEASURED for flow in flows):
        return f"{which} could not be measured."
    moved = {f.mechanism for f in flows} == {Mechanism.REHOMED}
    if moved and all(f.continuity is not None and f.continuity.lost == 0 for f in flows):
        return f"{which} moved to another pod without losing a datagram."
    counts = Counter(_MOVED.get(f.mechanism, f"ended by {f.mechanism}") for f in flows)
    told = ", ".join(f"{number:,} {how}" for how, number in counts.most_common())
    return f"Of {len(flows):,} UDP flows {told}."


def _all(number: int, what: str) -> str:
    """``The one UDP flow``, ``Both UDP flows``, ``All 10 UDP flows``."""
    if number == 1:
        return f"The one {what}"
    return f"{'Both' if number == 2 else f'All {number:,}'} {what}s"


def _targets(trial: TrialReport, proto: Proto) -> list[FlowReport]:
    return [flow for flow in trial.flows if flow.proto is proto and flow.role is Role.TARGET]
