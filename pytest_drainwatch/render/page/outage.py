"""When UDP flows went without an answer: all of them as one window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.udp.continuity import Continuity, RecoveredBy
from pytest_drainwatch.render.page.data import Band, Tone
from pytest_drainwatch.render.page.moments import at, at_or_none, first, last

BAND = "udp:outage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outages:
    """UDP flows that surely lost datagrams.

    ``flows`` of them did, ``never_back`` of those to the end. ``began_ns`` is when the first
    outage of any began, ``over_ns`` when the last was over (None: one was not). ``gap_ns`` is
    the longest downtime of a flow that came back. ``lost`` is least and most of a flow; None:
    not known of one of them. ``by_another``: another pod answered then. ``one_way``: nobody was
    to answer any of them, and they were not received. ``times``: the most outages of a flow.
    """

    flows: int
    never_back: int
    began_ns: Bounds
    over_ns: Bounds | None
    gap_ns: Bounds | None
    lost: tuple[int, int] | None
    by_another: bool
    one_way: bool
    times: int

    @property
    def words(self) -> str:
        """What happened to them."""
        what = "not received" if self.one_way else "unanswered"
        return what if self.times == 1 else f"{what} up to {self.times} times"


def outages(flows: Iterable[FlowReport]) -> Outages | None:
    """Those of some flows; None where surely nothing was lost, or nothing is known of it."""
    named = [(flow, found) for flow in flows if (found := _hurt(flow)) is not None]
    hit = [found for _, found in named]
    every = [outage for found in hit for outage in found.outages if _matters(outage.lost)]
    began = first(outage.began_ns for outage in every)
    if began is None:
        return None
    back = [outage.recovered_at_ns for outage in every if outage.recovered_at_ns is not None]
    lost = [found.lost for found in hit]
    known = [number for number in lost if number is not None]
    return Outages(
        flows=len(hit),
        never_back=sum(
            any(outage.recovered_at_ns is None for outage in found.outages) for found in hit
        ),
        began_ns=began,
        over_ns=last(back) if len(back) == len(every) else None,
        gap_ns=last(outage.gap_ns for outage in every if outage.gap_ns is not None),
        lost=(min(known), max(known)) if known and len(known) == len(lost) else None,
        by_another=any(outage.recovered_by is RecoveredBy.ANOTHER for outage in every),
        times=max(sum(_matters(o.lost) for o in found.outages) for found in hit),
        one_way=all(flow.one_way for flow, _ in named),
    )


def outage_band(flows: Iterable[FlowReport]) -> Band | None:
    """The same as a band of the picture."""
    found = outages(flows)
    if found is None:
        return None
    lost = "" if found.lost is None else f", {between(found.lost)} datagrams lost each"
    never = f" {found.never_back:,} of them did not come back." if found.never_back else ""
    return Band(
        id=BAND,
        opens=at(found.began_ns),
        closes=at_or_none(found.over_ns),
        text="UDP not received" if found.one_way else "UDP unanswered",
        detail=f"{found.flows:,} flow(s) {found.words}{lost}.{never}",
        met=None,
        tone=Tone.BAD,
    )


def between(counts: tuple[int, int]) -> str:
    """``9–10``, or one number where they are the same."""
    return f"{counts[0]:,}" if counts[0] == counts[1] else f"{counts[0]:,}–{counts[1]:,}"


def _hurt(flow: FlowReport) -> Continuity | None:
    if flow.proto is not Proto.UDP or flow.continuity is None:
        return None
    return flow.continuity if any(_matters(o.lost) for o in flow.continuity.outages) else None


def _matters(lost: int | None) -> bool:
    """Whether anything surely was lost: a change of pods alone hurts nobody."""
    return lost is not None and lost > 0
