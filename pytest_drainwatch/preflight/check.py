"""What a preflight check is, and how it is insisted on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source

Record = Callable[[Observation], None]


class TrialVoid(Exception):
    """The harness could not measure. In a fixture's setup this is pytest's ERROR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant, and how it stands."""

    name: str
    invariant: str
    expected: str
    observed: str
    passed: bool
    look_at: str
    hopeless: bool = False

    def __str__(self) -> str:
        return (
            f"preflight check '{self.name}' failed\n"
            f"  invariant: {self.invariant}\n"
            f"  observed:  {self.observed}\n"
            f"  expected:  {self.expected}\n"
            f"  look at:   {self.look_at}"
        )


def require(
    check: Callable[[], Check],
    record: Record,
    *,
    timeout_s: float,
    wait: Callable[[float], None] = time.sleep,
    alive: Callable[[], None] = lambda: None,
) -> Check:
    """Look until the check passes, cannot pass, or time is up; record how it ended.

    ``alive`` raises if waiting has become pointless. Raises :class:`TrialVoid` with
    the check's text.
    """
    started = time.monotonic_ns()
    deadline = time.monotonic() + timeout_s
    while True:
        found = check()
        if found.passed or found.hopeless or time.monotonic() >= deadline:
            break
        alive()
        wait(0.1)
    record(
        Observation(
            source=Source.ORCHESTRATOR,
            event=Event.PREFLIGHT_CHECK,
            at=Interval(started, time.monotonic_ns()),
            data={
                "name": found.name,
                "passed": found.passed,
                "invariant": found.invariant,
                "observed": found.observed,
                "expected": found.expected,
                "look_at": found.look_at,
            },
        )
    )
    if not found.passed:
        raise TrialVoid(str(found))
    return found
