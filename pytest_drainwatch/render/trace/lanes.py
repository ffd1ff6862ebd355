"""The page's lanes as lanes of a trace: marks as spans as wide as their uncertainty, and bands.

A band is as long as it can have been; inside it is the part in which it surely was open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.render.network import led_new
from pytest_drainwatch.render.page.data import At, Band, Mark
from pytest_drainwatch.render.page.data import Lane as PageLane
from pytest_drainwatch.render.page.moments import at
from pytest_drainwatch.render.page.pods import Pods
from pytest_drainwatch.render.trace.picture import COLOURS, Lane, Span, seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Lanes, and the first marks of each event and pod: there arrows begin and end."""

    lanes: tuple[Lane, ...]
    marks: Mapping[tuple[str, str], Span]
    notes: tuple[str, ...]


def drawn(found: Sequence[PageLane], ends_us: int) -> Drawn:
    """Each lane's marks, then each of its kinds of bands; ``ends_us``: of what stays open."""
    marks: dict[tuple[str, str], Span] = {}
    lanes: list[Lane] = []
    notes: list[str] = []
    for lane in found:
        spans = []
        for mark in lane["marks"]:
            made = _mark(mark, lane["id"])
            marks.setdefault((mark["key"], mark["pod_uid"] or ""), made)
            spans.append(made)
        lanes.append(Lane(name=lane["name"], spans=tuple(spans)))
        bands: dict[str, list[Span]] = {}
        for band in lane["bands"]:
            if band["opens"] is None:
                notes.append(f"{band['text']}: not drawn, for when it began is not known")
                continue
            made = _band(band, band["opens"], lane["id"], ends_us)
            bands.setdefault(band["text"], []).append(made)
        lanes += [
            Lane(name=f"{lane['name']}: {text}", spans=tuple(spans))
            for text, spans in bands.items()
        ]
    return Drawn(lanes=tuple(lanes), marks=marks, notes=tuple(notes))


def looks(trial: TrialReport, pods: Pods) -> Lane:
    """What the node's network was when it was looked at."""
    names = {
        piece.to: pods.label(piece.to_pod)
        for flow in trial.flows
        for piece in flow.evidence
        if piece.to is not None and piece.to_pod is not None
    }
    return Lane(
        name="Node network",
        spans=tuple(
            Span(
                name=f"look: {look.occasion}",
                kind="network",
                at_us=seen(at(look.at_ns)),
                args={
                    "conntrack_entries": look.conntrack_entries,
                    "kube-proxy leads new connections to": led_new(look, names),
                    "problem": look.problem,
                },
            )
            for look in trial.mechanism
        ),
    )


def sending(trial: TrialReport) -> Iterator[Lane]:
    """What the flows of each transport sent, and when it was planned how often."""
    by_proto: dict[str, list[Span]] = {}
    for each in trial.sending.stretches:
        rate = "unplanned" if each.rate_hz is None else f"{each.rate_hz:g} a second"
        late = {name: getattr(each, name) for name in ("late_p50_ns", "late_p99_ns", "late_max_ns")}
        lo, hi = each.at_ns
        made = Span(
            name=f"each flow {rate}",
            kind="instrument",
            at_us=seen((lo // 1000, hi // 1000)),  # stretches follow each other
            args={"sends": each.sends, "missed_slots": each.missed_slots, **late},
        )
        by_proto.setdefault(each.proto, []).append(made)
    for proto, spans in by_proto.items():
        yield Lane(name=f"Instrument: {proto.upper()} sends", spans=tuple(spans))


def _mark(mark: Mark, lane: str) -> Span:
    lo, hi = mark["at"]
    name, bound = mark["text"], None
    if mark["approximate"]:
        # Its lower bound only says that nothing had been looked at before.
        name, bound, lo = f"{name}, by then", f"{lo} us: says little", hi - 1
    return Span(
        name=name,
        kind=lane,
        at_us=seen((lo, hi)),
        args={
            "event": mark["key"],
            "detail": mark["detail"] or None,
            "source": mark["source"],
            "lower_bound": bound,
        },
        colour=COLOURS.get(mark["tone"]),
    )


def _band(band: Band, opens: At, lane: str, ends_us: int) -> Span:
    closes = band["closes"] or (ends_us, ends_us)
    outer = seen((opens[0], max(closes[1], opens[1])))
    sure = (opens[1], closes[0])
    certain = band["closes"] is not None and sure[0] < sure[1]
    inside = Span(name=f"surely: {band['text']}", kind=lane, at_us=sure)
    open_end = None if band["closes"] is not None else "not seen"
    return Span(
        name=band["text"],
        kind=lane,
        at_us=outer,
        args={
            "about": band["detail"],
            "new connections": band["met"],
            "opens_us": f"{opens[0]} to {opens[1]}",
            "closes_us": open_end or f"{closes[0]} to {closes[1]}",
        },
        colour=COLOURS.get(band["tone"]),
        inside=(inside,) if certain and sure != outer else (),
    )
