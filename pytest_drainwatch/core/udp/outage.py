"""Phases and outages while they grow; :mod:`.phases` feeds them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_drainwatch.core.interval import Bounds, Interval
from pytest_drainwatch.core.udp.continuity import Outage, Phase, PhaseKind, RecoveredBy


@dataclass(slots=True)
class Part:
    """A phase while it grows; ``at_seq`` is the first send that it is about."""

    kind: PhaseKind
    begins: Interval
    responder: str | None = None
    at_seq: int | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    answered: int = 0
    lost: int | None = 0
    reordered: int = 0
    duplicated: int = 0
    late: int = 0
    errors: int = 0
    cut: bool = False  # its responder may have received more than is told

    def frozen(self, t0_ns: int) -> Phase:
        known = not self.cut
        return Phase(
            kind=self.kind,
            begins_ns=_bounds(self.begins, t0_ns),
            responder=self.responder,
            first_seq=self.first_seq,
            last_seq=self.last_seq if known else None,
            answered=self.answered if known else None,
            lost=self.lost if known else None,
            reordered=self.reordered if known else None,
            duplicated=self.duplicated if known else None,
            late=self.late if known else None,
            errors=self.errors,
        )


@dataclass(slots=True)
class Gap:
    """An outage while it lasts."""

    began: Interval
    last_good_ns: int
    before: str | None
    parts: list[Part] = field(default_factory=list)
    lost: int = 0
    first_seq: int | None = None
    last_seq: int | None = None
    first_lost_ns: int | None = None
    last_lost_ns: int | None = None
    known_ns: int | None = None  # when the last run of losses was known to be over
    recovered: Interval | None = None
    by: RecoveredBy | None = None
    after: str | None = None
    decisive: bool = False
    brief: bool = True  # nothing but sends that may still be on their way
    cut: bool = False  # who answered before may have received more than is told

    @property
    def down(self) -> Interval | None:
        """For how long nothing was answered."""
        if self.recovered is None:
            return None
        longest = self.recovered.hi - self.last_good_ns
        if self.first_lost_ns is None or self.last_lost_ns is None:
            return Interval(min(0, longest), longest)
        return Interval(min(self.last_lost_ns - self.first_lost_ns, longest), longest)

    def frozen(self, t0_ns: int) -> Outage:
        down, recovered = self.down, self.recovered
        return Outage(
            began_ns=_bounds(self.began, t0_ns),
            recovered_at_ns=None if recovered is None else _bounds(recovered, t0_ns),
            gap_ns=None if down is None else (down.lo, down.hi),
            recovered_by=self.by,
            before=self.before,
            after=self.after,
            lost=None if self.cut else self.lost,
        )


def divided(gap: Gap) -> list[Part]:
    """The phases of an outage, with its losses divided at the sends that errors quote."""
    parts, first, last = gap.parts, gap.first_seq, gap.last_seq
    if not parts:
        return []
    quoted = parts[0].at_seq
    if quoted is not None and first is not None and quoted > first:
        # Sends before the first that drew an error were lost without a word.
        parts.insert(0, Part(PhaseKind.LOST, gap.began))
    else:
        parts[0].begins = gap.began
    starts = [first, *(part.at_seq for part in parts[1:])]
    if first is None or last is None or last - first + 1 != gap.lost or None in starts:
        parts[0].lost = gap.lost if len(parts) == 1 else None
        parts[0].first_seq, parts[-1].last_seq = first, last
        for part in parts[1:]:
            part.lost = None
        return parts
    known = [max(first, min(last + 1, start or first)) for start in starts]
    for part, start, following in zip(parts, known, [*known[1:], last + 1], strict=True):
        part.lost = max(0, following - start)
        if part.lost:
            part.first_seq, part.last_seq = start, following - 1
    return parts


def _bounds(at: Interval, t0_ns: int) -> Bounds:
    return (at.lo - t0_ns, at.hi - t0_ns)
