"""Hand-made recordings of one pod's end, and what is made of it."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import PodEnd
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation
from tests.core import story as s
from tests.core.story import OLD

NO_HOOK: dict[str, object] = {"pre_stop": None, "grace_period_seconds": 10}
SLEEPS: dict[str, object] = {"pre_stop": {"sleep_seconds": 3}}
EXECS: dict[str, object] = {"pre_stop": {"exec": ["flush"]}}
ASKS: dict[str, object] = {"pre_stop": {"http_get_seconds": 1.5}}


def ends(
    *parts: Iterable[Observation], config: dict[str, object] | None = None
) -> tuple[PodEnd, ...]:
    return derive(s.recording([s.accepted()], *parts, config=config or NO_HOOK)).trial.pod_ends


def end(*parts: Iterable[Observation], config: dict[str, object] | None = None) -> PodEnd:
    """The target's only one."""
    (found,) = [e for e in ends(*parts, config=config) if e.pod_uid == OLD]
    return found


def served(until_ms: float) -> list[Observation]:
    return s.alive("tcp-0001", until_ms)


def log(*seen: Observation, complete: bool = True) -> list[Observation]:
    """A log from its beginning, and whether it was read to its end."""
    return [s.log(Event.PROBE_STARTED, -5950, nonce="n"), *seen, s.log_ended(complete=complete)]


def term(ms: float) -> Observation:
    """SIGTERM in the probe's log."""
    return s.log(Event.SIGTERM_RECEIVED, ms, nonce="n")


TERM = s.log(
    Event.SIGTERM_RECEIVED, 40, nonce="n", in_flight=3, oldest_in_flight_ns=250 * NS_PER_MS
)
