"""Runs of requests cut into pieces of one fate, before or since t = 0; and whose they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.http.fate import FAILED, SILENT, Fate, fate
from pytest_drainwatch.core.http.recorded import Run
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.stall import Stalls


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What requests are judged by, beside themselves. ``names``: of pods, by uid."""

    t0_ns: int
    targets: AbstractSet[str]
    names: Mapping[str, str]
    stalls: Stalls
    control: bool = False  # nothing was to be terminated
    expected: int = 200
    method: str = "GET"
    patience_ns: int | None = None

    def pod_of(self, by: str) -> str | None:
        """The uid of the pod that an identity header names, by uid or by name."""
        if by in self.names or by in self.targets:
            return by
        named = [uid for uid, name in self.names.items() if by and name == by]
        return named[0] if len(named) == 1 else None

    def pod_before(self, by: str) -> str | None:
        """The same of who was named before t = 0. A StatefulSet's pod has the name of the one that
        it replaces: of several the one that is terminated was there first.
        """
        first = [uid for uid in self.targets if by and self.names.get(uid) == by]
        return first[0] if len(first) == 1 else self.pod_of(by)

    def role_of(self, by: str) -> Role | None:
        """Whose requests those are that this responder, or pod, answers; None: not known."""
        uid = self.pod_of(by)
        if uid is None:
            return None
        return Role.TARGET if uid in self.targets else Role.BYSTANDER


@dataclass(frozen=True, slots=True)
class Piece:
    """Requests ``first`` up to ``end`` of a run, which have one fate.

    ``since``: under way at t = 0, or begun later; the others were surely over before.
    """

    run: Run
    first: int
    end: int
    fate: Fate
    since: bool

    @property
    def count(self) -> int:
        return self.end - self.first

    def begun_between(self, lo_ns: int, hi_ns: int) -> int:
        """How many of them were surely begun after the one and by the other."""
        first = max(self.first, self.run.first_begun_after(lo_ns))
        return max(0, min(self.end, self.run.first_may_begin_after(hi_ns)) - first)

    @property
    def began(self) -> Interval:
        """Where the first of them was begun and over."""
        return self.run.hull(self.first, self.first + 1)

    @property
    def ended(self) -> Interval:
        """Where the last of them was begun and over."""
        return self.run.hull(self.end - 1, self.end)

    @property
    def hull(self) -> Interval:
        """Holds all of them."""
        return self.run.hull(self.first, self.end)


def pieces(runs: Iterable[Run], around: Around) -> tuple[Piece, ...]:
    """The requests of these runs in the order of their begins; no opening ones."""
    found = [piece for run in runs if not run.opening for piece in _of(run, around)]
    return tuple(sorted(found, key=lambda p: (p.began.lo, p.run.lane, p.run.first_slot, p.first)))


def _of(run: Run, around: Around) -> Iterator[Piece]:
    what = fate(
        run.ended,
        pool=run.pool,
        status=run.status,
        expected=around.expected,
        written=run.written,
    )
    split = run.first_not_over(around.t0_ns)
    ours = _not_seen(run, what, around)
    at = 0
    for first in [*sorted(k for k in ours if k - 1 not in ours), run.count]:
        end = first
        while end in ours:
            end += 1
        for begin, stop, its in ((at, first, what), (first, end, Fate.CLIENT_STALL)):
            for lo, hi in ((begin, min(stop, split)), (max(begin, split), stop)):
                if lo < hi:
                    yield Piece(run, lo, hi, its, lo >= split)
        at = end


def _not_seen(run: Run, what: Fate, around: Around) -> set[int]:
    """The requests whose failure may be the client's: it was paused, or the machine slept.

    Every socket is read to its end after a pause, and before a request is given up; so only a
    pause of half the patience can make a silence, and what the peer said is believed.
    """
    found: set[int] = set()
    if what not in FAILED:
        return found
    whole, stalls = run.hull(0, run.count), around.stalls
    found |= _over(run, stalls.blind(whole, asleep=True))
    if run.ended in SILENT:
        patience_ns = around.patience_ns or min(run.first_took_ns, run.last_took_ns)
        for k in _over(run, stalls.blind(whole, asleep=False)) - found:
            if 2 * stalls.paused_ns(run.hull(k, k + 1)) >= patience_ns:
                found.add(k)
    return found


def _over(run: Run, pauses: Iterable[Interval]) -> set[int]:
    """The requests that may have been under way in one of these stretches."""
    found = set[int]()
    for pause in pauses:
        found.update(range(run.first_not_over(pause.lo), run.first_begun_after(pause.hi)))
    return found
