"""What ``drainwatch client`` prints at its end."""

from __future__ import annotations

from collections import Counter

from pytest_drainwatch.core.flow.report import flow_reports
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.jsonvalue import integer, text
from pytest_drainwatch.core.observation import Event, Observation

SHOWN_FLOWS = 40


def show_flows(seen: tuple[Observation, ...]) -> None:
    """One line per flow, and how the client itself did."""
    reports = flow_reports(seen, seen[0].at.lo if seen else 0, frozenset(), frozenset())
    for flow in reports[:SHOWN_FLOWS]:
        end = "" if flow.terminal_ns is None else f" at {flow.terminal_ns[1] / NS_PER_S:.3f} s"
        detail = f" ({flow.detail})" if flow.detail else ""
        print(
            f"{flow.id}  {flow.outcome} {flow.mechanism}{end}{detail}  "
            f"answered {flow.answered}, unanswered {flow.unanswered}"
        )
    if len(reports) > SHOWN_FLOWS:
        print(f"… and {len(reports) - SHOWN_FLOWS} more")
    stalls = [o for o in seen if o.event is Event.AGENT_STALLED]
    if stalls:
        worst = max(o.at.width for o in stalls) / 1e6
        print(f"the client itself stalled {len(stalls)} times, up to {worst:.0f} ms")


def show_probers(seen: tuple[Observation, ...]) -> None:
    """One line per prober: how its attempts went, and who answered."""
    for summary in (o for o in seen if o.event is Event.PROBER_SUMMARY):
        results, responders = Counter[str](), Counter[str]()
        for run in seen:
            if run.event is Event.NEW_CONNECTIONS and run.subject == summary.subject:
                count = integer(run.data.get("count"), 1)
                results[text(run.data.get("result"))] += count
                if responder := text(run.data.get("responder")):
                    responders[responder] += count
        who = f" (by {_counted(responders)})" if responders else ""
        print(
            f"{summary.subject}  {summary.data['attempts']} new connections, "
            f"{summary.data['missed_slots']} slots missed: {_counted(results)}{who}"
        )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
