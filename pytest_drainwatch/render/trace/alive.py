"""How many flows had not ended yet: surely, and perhaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.flow.classify import Outcome
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, Bounds
from pytest_drainwatch.render.page.moments import at
from pytest_drainwatch.render.trace.picture import Count

SURELY, PERHAPS = "surely", "perhaps"


def counts(flows: Iterable[FlowReport]) -> Iterator[Count]:
    """A counter for each transport; its series add up to the most that there can have been.

    A flow that is not measured to its end may have lived on from its last answer to the end.
    """
    flows = tuple(flows)
    for proto in Proto:
        steps: Counter[tuple[int, str]] = Counter()
        for flow in flows:
            if flow.proto is not proto or flow.connected_t_ms is None:
                continue
            begins = flow.connected_t_ms * 1000
            steps[begins, SURELY] += 1
            end = _ends(flow)
            if end is None:
                continue
            lo, hi = at(end)
            lo, hi = max(lo, begins), max(hi, begins)
            steps[lo, SURELY] -= 1
            steps[lo, PERHAPS] += 1
            if flow.terminal_ns is not None:
                steps[hi, PERHAPS] -= 1
        yield from _summed(f"{proto.upper()} flows not ended", steps)


def _ends(flow: FlowReport) -> Bounds | None:
    """Between when it ended; None if it surely had not."""
    if flow.terminal_ns is not None:
        return flow.terminal_ns
    if flow.outcome is Outcome.SURVIVED:
        return None
    last_ns = (flow.connected_t_ms if flow.last_data_t_ms is None else flow.last_data_t_ms) or 0
    return last_ns * NS_PER_MS, last_ns * NS_PER_MS


def _summed(name: str, steps: Counter[tuple[int, str]]) -> Iterator[Count]:
    values = {SURELY: 0, PERHAPS: 0}
    for at_us in sorted({when for when, _ in steps}):
        for series in values:
            values[series] += steps[at_us, series]
        yield Count(name=name, at_us=at_us, values=dict(values))
