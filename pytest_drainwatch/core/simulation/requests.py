"""What becomes of each request: served, or failed in one of three ways, and by what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.life import Ending, Life, Shutdown
from pytest_drainwatch.core.simulation.routes import EVERY_NS, POOLED, Route, Sent

POOLED_PHASE_NS = 250 * NS_PER_MS
POOLED_TAKES_NS = 100 * NS_PER_MS


class Outcome(StrEnum):
    """How a request ended, for whoever asked."""

    SERVED = "served"
    SLOW = "slow"
    RETRIED = "retried"
    REFUSED = "refused"
    RESET = "reset"
    KILLED = "killed"


FAILED = frozenset({Outcome.REFUSED, Outcome.RESET, Outcome.KILLED})


class Cause(StrEnum):
    """What made a request fail, at its first try if it was tried again."""

    LISTENER_CLOSED = "listener-closed"
    PROCESS_GONE = "process-gone"
    CONNECTION_ENDED = "connection-ended"
    DRAIN_DEADLINE = "drain-deadline"
    EXITED = "exited"
    SIGKILL = "sigkill"


_CUT_BY = {
    Ending.DRAIN_DEADLINE: Cause.DRAIN_DEADLINE,
    Ending.EXITED: Cause.EXITED,
    Ending.SIGKILL: Cause.SIGKILL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """``takes_ns`` is what it takes undisturbed, ``end_ns`` when its fate was known, and
    ``attempts`` how often it was sent. ``cause`` is None where nothing went wrong.
    """

    source: str
    start_ns: int
    takes_ns: int
    end_ns: int
    outcome: Outcome
    cause: Cause | None
    attempts: int

    @property
    def failed(self) -> bool:
        """Whether the client got no answer."""
        return self.outcome in FAILED


def idle_ns(inputs: Inputs, fixed: Shutdown, asked: Sequence[Sent]) -> int:
    """When a draining app has no work left: its listener is closed and nothing is in flight."""
    if fixed.closes_ns is None:
        return 0  # it does not drain
    ends = [one.start_ns + one.takes_ns for one in asked if one.start_ns < fixed.closes_ns]
    idle = max([fixed.closes_ns, *ends])
    if not inputs.keepalive:
        return idle
    # The pooled client may be just asking: as the listener closes, or, on a connection that is
    # left open, when all else is done.
    if inputs.close_idle:
        return max(idle, _answered(fixed.closes_ns))
    return _answered(idle)


def requests(
    inputs: Inputs, fixed: Shutdown, life: Life, asked: Sequence[tuple[Route, Sent]]
) -> tuple[Request, ...]:
    """All of them in the order in which they were sent; at one instant, in that of the sources."""
    found = [_of_route(inputs, life, route, one) for route, one in asked]
    if inputs.keepalive:
        found += _pooled(inputs, fixed, life)
    return tuple(sorted(found, key=lambda one: one.start_ns))


def _of_route(inputs: Inputs, life: Life, route: Route, one: Sent) -> Request:
    if one.start_ns >= life.listener_closed_ns:
        return _refused(inputs, life, route, one)
    return _accepted(inputs, life, one)


def _accepted(inputs: Inputs, life: Life, one: Sent) -> Request:
    end_ns = one.start_ns + one.takes_ns
    if end_ns > life.exit_ns:
        return _request(one, life.exit_ns, Outcome.KILLED, _CUT_BY[life.ending])
    slow = one.takes_ns > inputs.slow_ns
    return _request(one, end_ns, Outcome.SLOW if slow else Outcome.SERVED)


def _refused(inputs: Inputs, life: Life, route: Route, one: Sent) -> Request:
    """It is tried again every second, and reaches another pod once its source routes there."""
    gone = one.start_ns >= life.exit_ns
    cause = Cause.PROCESS_GONE if gone else Cause.LISTENER_CLOSED
    for attempt in range(1, inputs.client_retries + 1):
        again_ns = one.start_ns + attempt * EVERY_NS
        if again_ns >= route.until_ns:
            return _request(one, again_ns + one.takes_ns, Outcome.RETRIED, cause, attempt + 1)
    last_ns = one.start_ns + inputs.client_retries * EVERY_NS
    return _request(one, last_ns, Outcome.REFUSED, cause, inputs.client_retries + 1)


def _pooled(inputs: Inputs, fixed: Shutdown, life: Life) -> Iterator[Request]:
    """Those on the connection that was opened before; it is never opened again to this pod."""
    closes = fixed.closes_ns if inputs.close_idle else None
    until_ns = life.exit_ns if closes is None else closes
    start_ns = POOLED_PHASE_NS
    while start_ns < until_ns:
        request = _accepted(inputs, life, Sent(POOLED, start_ns, POOLED_TAKES_NS))
        yield request
        if request.failed:
            return
        start_ns += EVERY_NS
    if closes is None:
        yield _on_ended_connection(inputs, Sent(POOLED, start_ns, POOLED_TAKES_NS))


def _on_ended_connection(inputs: Inputs, one: Sent) -> Request:
    """A retry opens a connection to another pod."""
    if inputs.client_retries:
        end_ns = one.start_ns + one.takes_ns
        return _request(one, end_ns, Outcome.RETRIED, Cause.CONNECTION_ENDED, 2)
    return _request(one, one.start_ns, Outcome.RESET, Cause.CONNECTION_ENDED)


def _request(
    one: Sent, end_ns: int, outcome: Outcome, cause: Cause | None = None, attempts: int = 1
) -> Request:
    return Request(
        source=one.source,
        start_ns=one.start_ns,
        takes_ns=one.takes_ns,
        end_ns=end_ns,
        outcome=outcome,
        cause=cause,
        attempts=attempts,
    )


def _answered(at_ns: int) -> int:
    """The end of the pooled client's request that is in flight then, else that very instant."""
    start_ns = (at_ns - POOLED_PHASE_NS) // EVERY_NS * EVERY_NS + POOLED_PHASE_NS
    end_ns = start_ns + POOLED_TAKES_NS
    return end_ns if 0 <= start_ns < at_ns < end_ns else at_ns
