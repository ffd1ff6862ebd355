"""What became of attempts, sans-io: results in slot order in, run-length coded runs out.

A run is of attempts in a row that went the same way, and of one density: how far apart their
slots are is known of all of them. It is also cut after ten seconds, so that an agent that is
killed takes no more than that with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.result import Result

LONGEST_RUN_NS = 10 * NS_PER_S
OF_ONE = ("result", "responder", "errno", "every", "first_slot")


@dataclass(frozen=True, slots=True)
class Settled:
    """One attempt whose result is known: ``took_ns`` after it was begun at ``begun_ns``.

    ``every``-th slots were tried where it lies.
    """

    slot: int
    begun_ns: int
    took_ns: int
    result: Result
    responder: str | None = None
    errno: str | None = None
    every: int = 1

    @property
    def way(self) -> tuple[Result, str | None, str | None, int | None]:
        """What attempts of one run have in common."""
        return self.result, self.responder, self.errno, None if self.every == 1 else self.every


@dataclass(slots=True)
class _Run:
    """Attempts that went the same way; the fields are those of ``new_connections``."""

    result: Result
    responder: str | None
    errno: str | None
    every: int | None  # None: all slots were tried
    first_slot: int
    last_slot: int
    count: int
    first_ns: int
    last_ns: int
    first_took_ns: int
    last_took_ns: int
    took_min_ns: int
    took_max_ns: int


class Runs:
    """The books of one prober."""

    def __init__(self, subject: str, emit: Callable[[Observation], None]) -> None:
        self.counts: Counter[Result] = Counter()
        self._subject = subject
        self._emit = emit
        self._run: _Run | None = None
        self._known_ns = 0  # when all results of the run were

    def add(self, one: Settled) -> None:
        """The next attempt, in the order of slots."""
        self.counts[one.result] += 1
        run = self._run
        if (
            run is None
            or one.way != (run.result, run.responder, run.errno, run.every)
            or one.begun_ns - run.first_ns >= LONGEST_RUN_NS
        ):
            self.close()
            self._run = _Run(
                *one.way, one.slot, one.slot, 1, one.begun_ns, one.begun_ns,
                one.took_ns, one.took_ns, one.took_ns, one.took_ns,
            )  # fmt: skip
            self._known_ns = one.begun_ns + one.took_ns
            return
        run.last_slot, run.last_ns, run.last_took_ns = one.slot, one.begun_ns, one.took_ns
        run.count += 1
        run.took_min_ns = min(run.took_min_ns, one.took_ns)
        run.took_max_ns = max(run.took_max_ns, one.took_ns)
        self._known_ns = max(self._known_ns, one.begun_ns + one.took_ns)

    def close(self) -> None:
        """Write the run that is open."""
        run, self._run = self._run, None
        if run is not None:
            self._emit(
                Observation(
                    source=Source.CLIENT,
                    event=Event.NEW_CONNECTIONS,
                    at=Interval(run.first_ns, self._known_ns),
                    subject=self._subject,
                    data=_told(run),
                )
            )


def _told(run: _Run) -> dict[str, object]:
    """The fields that tell something. Where two pods answer in turn most runs are of one
    attempt, whose times are those of the observation itself."""
    names = OF_ONE if run.count == 1 else _Run.__slots__
    return {name: value for name in names if (value := getattr(run, name)) is not None}
