"""When UDP flows went without an answer: all of them as one window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.udp.continuity import Continuity, Outage, RecoveredBy
from pytest_drainwatch.render.page import prose
from pytest_drainwatch.render.page.data import Band, Tone
from pytest_drainwatch.render.page.moments import at, first, last
from pytest_drainwatch.render.page.words import which

BAND, GONE = "udp:outage", "udp:gone"  # over in the end, and never


@dataclass(frozen=True, slots=True, kw_only=True)
class Outages:
    """UDP flows that surely lost datagrams: ``flows`` of the ``of`` that were looked at.

    ``back`` of them had an outage that was over in the end: the first began at
    ``back_began_ns``, the last was over at ``over_ns``, and ``gap_ns`` is the longest downtime.
    ``never_back`` of them had one that was not, the first of them since ``gone_ns``.
    ``lost`` is least and most of a flow; None: not known of one of them. ``answered_by`` are
    those who answered then. ``one_way``: nobody was to answer any of them, and they were not
    received. ``times``: the most outages of a flow.
    """

    flows: int
    of: int
    back: int
    never_back: int
    back_began_ns: Bounds | None
    over_ns: Bounds | None
    gap_ns: Bounds | None
    gone_ns: Bounds | None
    lost: tuple[int, int] | None
    answered_by: frozenset[RecoveredBy]
    one_way: bool
    times: int

    def went(self, number: int) -> str:
        """What happened to so many of them, as a verb."""
        if not self.one_way:
            return "went unanswered"
        return "was not received" if number == 1 else "were not received"


def outages(flows: Iterable[FlowReport]) -> Outages | None:
    """Those of some flows; None where surely nothing was lost, or nothing is known of it."""
    looked_at = [flow for flow in flows if flow.proto is Proto.UDP]
    hit = [
        (flow, flow.continuity, found)
        for flow in looked_at
        if flow.continuity is not None and (found := _that_matter(flow.continuity))
    ]
    if not hit:
        return None
    every = [outage for _, _, found in hit for outage in found]
    over = [outage for outage in every if outage.recovered_at_ns is not None]
    lost = [continuity.lost for _, continuity, _ in hit]
    known = [number for number in lost if number is not None]
    return Outages(
        flows=len(hit),
        of=len(looked_at),
        back=sum(any(o.recovered_at_ns is not None for o in found) for _, _, found in hit),
        never_back=sum(any(o.recovered_at_ns is None for o in found) for _, _, found in hit),
        back_began_ns=first(outage.began_ns for outage in over),
        over_ns=last(outage.recovered_at_ns for outage in over if outage.recovered_at_ns),
        gap_ns=last(outage.gap_ns for outage in over if outage.gap_ns is not None),
        gone_ns=first(outage.began_ns for outage in every if outage.recovered_at_ns is None),
        lost=(min(known), max(known)) if known and len(known) == len(lost) else None,
        answered_by=frozenset(o.recovered_by for o in over if o.recovered_by is not None),
        one_way=all(flow.one_way for flow, _, _ in hit),
        times=max(len(found) for _, _, found in hit),
    )


def outage_bands(flows: Iterable[FlowReport]) -> Iterator[Band]:
    """The same as bands of the picture: those that were over, and those that never were."""
    found = outages(flows)
    if found is None:
        return
    lost = "" if found.lost is None else f"; {between(found.lost)} datagrams lost each"
    what = "UDP not received" if found.one_way else "UDP unanswered"
    if found.back_began_ns is not None and found.over_ns is not None:
        gap = "" if found.gap_ns is None else f" for at most {prose.most(found.gap_ns[1])}"
        yield Band(
            id=BAND,
            opens=at(found.back_began_ns),
            closes=at(found.over_ns),
            text=what,
            detail=f"{which(found.back, found.of, 'UDP flow')} {found.went(found.back)}{gap}"
            f"{lost}. From the first of them that was to the last one that was back.",
            met=None,
            tone=Tone.BAD,
        )
    if found.gone_ns is not None:
        yield Band(
            id=GONE,
            opens=at(found.gone_ns),
            closes=None,
            text=f"{what} to the end",
            detail=f"{which(found.never_back, found.of, 'UDP flow')} "
            f"{found.went(found.never_back)} to the end of the recording{lost}.",
            met=None,
            tone=Tone.BAD,
        )


def between(counts: tuple[int, int]) -> str:
    """``9–10``, or one number where they are the same."""
    return f"{counts[0]:,}" if counts[0] == counts[1] else f"{counts[0]:,}–{counts[1]:,}"


def _that_matter(found: Continuity) -> list[Outage]:
    """Those in which surely anything was lost: a change of pods alone hurts nobody."""
    return [outage for outage in found.outages if outage.lost is not None and outage.lost > 0]
