"""What new connections met within a window: those that were begun in its certain part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Interval, merged
from pytest_drainwatch.core.probing import counts
from pytest_drainwatch.core.probing.attempts import Prober
from pytest_drainwatch.core.probing.document import Fate, Rate
from pytest_drainwatch.core.probing.pieces import Piece, Tried
from pytest_drainwatch.core.probing.planned import Plan
from pytest_drainwatch.core.windows.document import Met, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """The new TCP connections that were tried. ``lost`` ones are in no piece; None: not known."""

    pieces: tuple[Piece, ...]
    lost: int | None
    until_ns: int  # none was begun after this
    plan: Plan | None
    sparsest: int

    @classmethod
    def of(cls, tried: Iterable[Tried], node: str | None = None) -> Attempts | None:
        """Those of a recording; None if none were tried.

        If a ``node`` is named, without those that surely entered the cluster at another one.
        """
        tcp = [
            each
            for each in tried
            if each.prober.proto is Proto.TCP and (node is None or each.prober.node in (None, node))
        ]
        if not tcp:
            return None
        (plan, *others) = [each.prober.plan for each in tcp]
        return cls(
            pieces=tuple(piece for each in tcp for piece in each.pieces),
            lost=_sum(each.prober for each in tcp),
            until_ns=max(each.prober.stopped_ns for each in tcp),
            plan=None if others else plan,  # two have slots of their own
            sparsest=max(each.prober.sparsest for each in tcp),
        )

    def met(self, span: Span, gaps: Sequence[Interval], t0_ns: int) -> Met | None:
        """Those begun within a window; None if it was not seen opening.

        ``gaps`` are those in the watch of slices, on the harness's clock as ``t0_ns`` is.
        """
        if span.opens_ns is None:
            return None
        parts = [part.since(-t0_ns) for part in _certain(span, self.until_ns - t0_ns)]
        inside = list(_without(parts, gaps))
        near = [part.since(-t0_ns) for part in _possible(span, self.until_ns - t0_ns)]
        counted = counts.by_every(
            (piece, sum(_surely(piece, part) for part in inside)) for piece in self.pieces
        )
        sure, may = counts.in_all(counted), Counter[Fate]()
        for piece in self.pieces:
            # One that lies between two parts may be in either, and counts once.
            may[piece.fate] += min(piece.count, sum(_maybe(piece, part) for part in near))
        attempts, failed = counts.judged(sure)
        return Met(
            attempts=attempts,
            failed=failed,
            rate=self._rate(counted, inside) if attempts else None,
            not_judged=counts.doubtful(sure),
            at_most=counts.judged(may),
        )

    def _rate(
        self, counted: Mapping[int, counts.Counts], inside: Sequence[Interval]
    ) -> Rate | None:
        planned = self.plan.slots(inside) if self.plan else None
        return counts.rate(counted, self.lost, planned=planned, sparsest=self.sparsest)


def _sum(tcp: Iterable[Prober]) -> int | None:
    lost = [prober.lost for prober in tcp]
    known = [number for number in lost if number is not None]
    return sum(known) if len(known) == len(lost) else None


def _certain(span: Span, until_ns: int) -> Iterator[Interval]:
    """Where the window was surely open."""
    opens_ns = span.opens_ns[1] if span.opens_ns else until_ns
    for one in span.breaks:
        if opens_ns < one.opens_ns[0]:
            yield Interval(opens_ns, one.opens_ns[0])
        opens_ns = one.closes_ns[1]
    closes_ns = span.closes_ns[0] if span.closes_ns else until_ns
    if opens_ns < closes_ns:
        yield Interval(opens_ns, closes_ns)


def _possible(span: Span, until_ns: int) -> tuple[Interval, ...]:
    """Where it may have been open."""
    opens_ns = span.opens_ns[0] if span.opens_ns else until_ns
    found = []
    for closes_ns, next_ns in (
        *((one.opens_ns[1], one.closes_ns[0]) for one in span.breaks),
        (span.closes_ns[1] if span.closes_ns else until_ns, until_ns),
    ):
        if opens_ns <= closes_ns:
            found.append(Interval(opens_ns, closes_ns))
        opens_ns = next_ns
    return merged(found)


def _without(parts: Iterable[Interval], gaps: Iterable[Interval]) -> Iterator[Interval]:
    """What is left of the parts."""
    apart = merged(gaps)
    for part in parts:
        lo = part.lo
        for gap in apart:
            if lo < (hi := min(gap.lo, part.hi)):
                yield Interval(lo, hi)
            lo = max(lo, gap.hi)
        if lo < part.hi:
            yield Interval(lo, part.hi)


def _surely(piece: Piece, part: Interval) -> int:
    """How many of a piece were begun at ``part.lo`` or later, and before ``part.hi``."""
    first = max(piece.first, piece.run.first_begun_after(part.lo - 1))
    return max(0, min(piece.end, piece.run.first_not_begun(part.hi)) - first)


def _maybe(piece: Piece, part: Interval) -> int:
    """How many of a piece may have been."""
    first = max(piece.first, piece.run.first_not_begun(part.lo))
    return max(0, min(piece.end, piece.run.first_begun_after(part.hi)) - first)
