"""Runs cut into pieces of one fate: what became of attempts, before or since t = 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.moments import PodMoments
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.probing.attempts import Prober, Run, probers
from pytest_drainwatch.core.probing.document import FAILED, Doubt, Fate
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.stall import Stalls

# Silence is what a client that cannot look sees of a healthy workload too. But the agent looks
# at every socket again after a pause, and whoever was asked late has a patience of his own: so
# only a pause of half the patience can make a silence.
SILENT = frozenset({Result.TIMEOUT, Result.NEVER_SERVED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What attempts are judged by, beside themselves."""

    t0_ns: int
    targets: Mapping[str, PodMoments]
    workload: AbstractSet[str]
    names: Mapping[str, str]
    all_pods_known: bool
    stalls: Stalls
    pinned: bool = False  # by session affinity
    control: bool = False  # nothing was to be terminated
    anonymous: bool = False  # answers do not say who gives them


@dataclass(frozen=True, slots=True)
class Piece:
    """Attempts ``first`` up to ``end`` of a run, which have one fate."""

    run: Run
    first: int
    end: int
    fate: Fate
    since: bool  # t = 0

    @property
    def count(self) -> int:
        return self.end - self.first

    @property
    def began(self) -> Interval:
        """Where the first of them was begun and over."""
        return self.run.hull(self.first, self.first + 1)

    @property
    def ended(self) -> Interval:
        """Where the last of them was begun and over."""
        return self.run.hull(self.end - 1, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A prober's attempts, cut into pieces in the order of their slots."""

    prober: Prober
    pieces: tuple[Piece, ...]


def all_tried(seen: Iterable[Observation], around: Surroundings) -> tuple[Tried, ...]:
    """The attempts of each prober of a recording; none if no new connections were tried."""
    return tuple(
        Tried(
            prober=prober,
            pieces=tuple(p for run in prober.runs for p in pieces_of(run, prober, around)),
        )
        for prober in probers(seen)
    )


def pieces_of(run: Run, prober: Prober, around: Surroundings) -> Iterator[Piece]:
    """The attempts of a run in order."""
    fate: Fate = run.result
    if fate is Result.ANSWERED and not run.responder:
        fate = fate if around.anonymous else Doubt.STRANGER
    elif fate is Result.ANSWERED and around.workload and run.responder not in around.workload:
        fate = Result.FOREIGN if around.all_pods_known else Doubt.STRANGER
    if fate is Result.ANSWERED:
        split = run.first_begun_after(around.t0_ns - 1)
    else:
        split = run.first_not_over(around.t0_ns)
    at = 0
    for first, end in [*_not_seen(run, fate, prober, around.stalls), (run.count, run.count)]:
        for begin, stop, what in ((at, first, fate), (first, end, Doubt.CLIENT_STALL)):
            for lo, hi in ((begin, min(stop, split)), (max(begin, split), stop)):
                if lo < hi:
                    yield Piece(run, lo, hi, what, lo >= split)
        at = end


def _not_seen(run: Run, fate: Fate, prober: Prober, stalls: Stalls) -> Iterator[tuple[int, int]]:
    """The attempts whose failure may be the client's: it was paused, or the machine slept."""
    if fate not in FAILED:
        return
    whole = run.hull(0, run.count)
    ours = _over(run, stalls.blind(whole, asleep=True))
    if fate in SILENT:
        patience_ns = prober.patience_ns or min(run.first_took_ns, run.last_took_ns)
        for k in _over(run, stalls.blind(whole, asleep=False)) - ours:
            if 2 * stalls.paused_ns(run.hull(k, k + 1)) >= patience_ns:
                ours.add(k)
    for first in sorted(k for k in ours if k - 1 not in ours):
        end = first + 1
        while end in ours:
            end += 1
        yield first, end


def _over(run: Run, pauses: Iterable[Interval]) -> set[int]:
    """The attempts that may have been under way in one of these stretches."""
    found = set[int]()
    for pause in pauses:
        found.update(range(run.first_not_over(pause.lo), run.first_begun_after(pause.hi)))
    return found
