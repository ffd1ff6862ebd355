"""The instrument's own account, as text: what was sent when, and when it did not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.document import Episode, Sending, SendingStretch
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds


def lines(sending: Sending, stalls: Sequence[Episode]) -> Iterator[str]:
    """A line each; none for what an older recording does not tell."""
    if sending.stretches:
        yield f"sent: {'; '.join([*_rates(sending.stretches), _kept(sending)])}"
    if stalls:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(Counter(map(_kind, stalls)).items()))
        longest = max(stalls, key=lambda s: s.at_ns[1] - s.at_ns[0])
        yield f"stalls: {kinds}; the longest: {longest.detail}, within {_span(longest.at_ns)}"


def _rates(stretches: Sequence[SendingStretch]) -> Iterator[str]:
    """``tcp 20 Hz and udp 60 Hz within -0.5 to 6.0 s, else 5 Hz and 10 Hz``."""
    alike: dict[str, list[tuple[Proto, list[float]]]] = {}
    for proto in Proto:
        mine = [s for s in stretches if s.proto is proto]
        rates = sorted({s.rate_hz for s in mine if s.rate_hz is not None}, reverse=True)
        if rates:
            spans = ", ".join(_span(s.at_ns) for s in mine if s.rate_hz == rates[0])
            alike.setdefault(spans if len(rates) > 1 else "", []).append((proto, rates))
    for spans, found in alike.items():
        dense = " and ".join(f"{proto} {rates[0]:g} Hz" for proto, rates in found)
        sparse = " and ".join(f"{rates[-1]:g} Hz" for _, rates in found)
        yield f"{dense} within {spans}, else {sparse}" if spans else f"{dense} throughout"


def _kept(sending: Sending) -> str:
    if sending.sends is None:
        return "how many is not known"
    slots = sending.sends + (sending.missed_slots or 0)
    late = sending.late_p99_ns
    return f"{sending.missed_slots or 0} of {slots} slots missed" + (
        "" if late is None else f", 99 % sent within {late / NS_PER_MS:.1f} ms"
    )


def _kind(stall: Episode) -> str:
    return (stall.kind or "stall").replace("_", " ")


def _span(at: Bounds) -> str:
    return f"{at[0] / NS_PER_S:.1f} to {at[1] / NS_PER_S:.1f} s"
