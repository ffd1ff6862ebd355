"""The ancestor's milliseconds on our scale: what its numbers leave open, kept open."""

from __future__ import annotations

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.upstream.document import Flow


def within(t_ms: int) -> Interval:
    """Where an instant lies that was truncated toward zero to whole milliseconds."""
    ns = t_ms * NS_PER_MS
    return Interval(
        ns - (NS_PER_MS - 1 if t_ms <= 0 else 0), ns + (NS_PER_MS - 1 if t_ms >= 0 else 0)
    )


def udp_end(flow: Flow) -> Interval | None:
    """Our re-reading of a UDP end: after the last old ack, until the first new sign.

    In the ancestor's own milliseconds, as it prints them: ``t_terminal_ms`` is when
    somebody else was heard or a refusal arrived, and between two pings of a flow (500 ms)
    nobody looked. None for a flow without either.
    """
    last, sign = flow.last_data_t_ms, flow.t_terminal_ms
    if last is None or sign is None or last > sign:
        return None
    return Interval(last * NS_PER_MS, sign * NS_PER_MS)
