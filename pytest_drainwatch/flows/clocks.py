"""The few round trips that bound the responders' clocks.

Every exchange bounds a clock's offset, the quicker ones more tightly: of each
responder and five seconds the quickest is kept, so that drift shows as well.
"""

from __future__ import annotations

from collections.abc import Callable

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source

BUCKET_NS = 5 * NS_PER_S

Stamps = tuple[int, int, int, int]  # sent, received there, replied there, received here


class Exchanges:
    """The best exchange of each responder's current bucket."""

    def __init__(self, emit: Callable[[Observation], None]) -> None:
        self._emit = emit
        self._clocks: dict[str, str] = {}
        self._best: dict[str, Stamps] = {}

    @property
    def clocks(self) -> list[str]:
        """The names of all clocks."""
        return sorted(set(self._clocks.values()))

    def learn(self, responder: str, clock: str) -> None:
        """A responder named its clock."""
        self._clocks[responder] = clock

    def knows(self, responder: str) -> bool:
        """Whether the responder's clock has a name."""
        return responder in self._clocks

    def offer(self, responder: str, stamps: Stamps) -> None:
        """Keep an exchange if it is the quickest of its bucket."""
        best = self._best.get(responder)
        if best is not None:
            if stamps[3] // BUCKET_NS != best[3] // BUCKET_NS:
                self._write(responder, best)
            elif stamps[3] - stamps[0] >= best[3] - best[0]:
                return
        self._best[responder] = stamps

    def close(self) -> None:
        """Write what the open buckets hold."""
        for responder, best in self._best.items():
            self._write(responder, best)
        self._best.clear()

    def _write(self, responder: str, stamps: Stamps) -> None:
        clock = self._clocks.get(responder)
        if clock is None:
            return  # a stamp on a clock without a name bounds nothing
        t1, t2, t3, t4 = stamps
        self._emit(
            Observation(
                source=Source.CLIENT,
                event=Event.CLOCK_EXCHANGE,
                at=Interval(t1, t4),
                subject=responder,
                data={"clock": clock, "t1": t1, "t2": t2, "t3": t3, "t4": t4},
            )
        )
