"""When a run was more than its machine could carry: said once, at its end, with what to do.

Stalls are recorded by every trial and make its intervals wider, never its numbers wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.stall import BUSY, reaches_measured

if TYPE_CHECKING:
    from pytest_drainwatch.core.document import TrialReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """How often a trial's instrument did not run while it measured, and for how long at most."""

    stalls: int
    worst_ms: int


def stalls_while_measuring(trial: TrialReport, settle_ns: int) -> tuple[int, int]:
    """How many stalls of a busy machine are in what was measured, and the longest in ms.

    0 and 0 if there are none.
    """
    found = [s for s in trial.stalls if s.kind in BUSY and reaches_measured(s.at_ns, settle_ns)]
    longest_ns = max((stall.at_ns[1] - stall.at_ns[0] for stall in found), default=0)
    return len(found), longest_ns // NS_PER_MS


def advice(found: Sequence[Stalled], *, workers: int, cpus: int | None) -> list[str]:
    """What to say of a run's trials; nothing if none of them stalled."""
    held_up = [each for each in found if each.stalls]
    if not held_up:
        return []
    worst_ms = max(each.worst_ms for each in held_up)
    on = "an unknown number of CPUs" if cpus is None else f"{cpus} CPU(s)"
    fewer = (
        f"fewer workers (-n {workers // 2 if workers > 3 else workers - 1})"
        if workers > 1
        else "nothing else on this machine beside it"
    )
    return [
        f"{len(held_up)} of {len(found)} trial(s) had stalls while they measured, the longest "
        f"{worst_ms} ms: {workers} worker(s) on {on}",
        "what they measured holds, in intervals as wide as the stalls. For narrower ones: "
        f"{fewer},",
        "lower rates (--dw-tcp-rate, --dw-udp-rate), or new connections tried less often "
        "(--dw-probe-interval)",
    ]
