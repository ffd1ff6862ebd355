"""Who was hurt, and which window hurt most.

Windows are compared by how long they surely lasted. Where two may have been as long as each
other, requests come before new connections, and those before UDP: so many clients are in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pytest_drainwatch.core.document import FlowReport, TrialReport
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.render.page import failing, prose
from pytest_drainwatch.render.page.data import Hurt
from pytest_drainwatch.render.page.moments import within
from pytest_drainwatch.render.page.outage import BAND, outages
from pytest_drainwatch.render.text import duration

CUT = frozenset({Outcome.SEVERED, Outcome.READ_TIMEOUT})


class Window(NamedTuple):
    """A time in which somebody was hurt; ``lasts_ns`` in ns, and ``over``: whether it ended.

    ``text`` is it in a sentence.
    """

    band: str
    lasts_ns: Bounds
    over: bool
    text: str


def _worst(trial: TrialReport) -> Window | None:
    """The window that hurt most; None: there was none that this trial watched."""
    found = list(_windows(trial))
    return next((window for window in found if _can_be_longest(window, found)), None)


def hurt(trial: TrialReport) -> Hurt | None:
    """The same for the page, with cut connections; None: nobody was, as far as was looked."""
    window, beside = _worst(trial), cut_connections(trial)
    if window is not None:
        also = f" Also, {beside}." if beside else ""
        return Hurt(band=window.band, text=f"{window.text}.{also}")
    if beside:
        return Hurt(band=None, text=f"{beside[:1].upper()}{beside[1:]}.")
    if looked(trial):
        return None
    return Hurt(band=None, text="Whether anybody was hurt is not known: nothing was measured.")


def cut_connections(trial: TrialReport) -> str | None:
    """``10 open TCP connections were cut off, at +31.5 ms``; of whosever pods they were.

    UDP flows beside them that ended, and of which no outage says how long it was.
    """
    cut = [flow for flow in trial.flows if flow.proto is Proto.TCP and flow.outcome in CUT]
    lost = [flow for flow in trial.flows if _ended_for_good(flow)]
    parts = []
    for found, what in ((cut, "open TCP connection"), (lost, "UDP flow")):
        if found:
            number = f"{len(found):,} {what}s were" if len(found) > 1 else f"one {what} was"
            ends = within(flow.terminal_ns for flow in found if flow.terminal_ns is not None)
            parts.append(f"{number} cut off{'' if ends is None else f', {prose.at(ends)}'}")
    single = sum(map(_single_losses, trial.flows))
    if single:
        one = single == 1
        parts.append(f"{single:,} single datagram{' was' if one else 's were'} lost")
    return ", and ".join(parts) or None


def _single_losses(flow: FlowReport) -> int:
    """Datagrams that a UDP flow lost between others that were answered."""
    if flow.continuity is None or outages([flow]) is not None:
        return 0
    return flow.continuity.lost or 0


def _ended_for_good(flow: FlowReport) -> bool:
    """Whether it is a UDP flow that surely ended, and none that only moved to another pod."""
    if flow.proto is not Proto.UDP or flow.outcome not in CUT:
        return False
    return flow.mechanism is not Mechanism.REHOMED and outages([flow]) is None


def looked(trial: TrialReport) -> bool:
    """Whether anything was measured that could have shown that somebody was hurt."""
    return (
        any(flow.outcome is not Outcome.NOT_MEASURED for flow in trial.flows)
        or any(prober.attempts for prober in trial.new_connections)
        or any(kind.attempts for kind in (trial.requests.kinds if trial.requests else ()))
    )


def _can_be_longest(window: Window, others: list[Window]) -> bool:
    return not window.over or all(other.lasts_ns[0] <= window.lasts_ns[1] for other in others)


def _windows(trial: TrialReport) -> Iterator[Window]:
    for kind in trial.requests.kinds if trial.requests is not None else ():
        if kind.failing is not None:
            yield _window(
                failing.http_band(kind),
                failing.KINDS[kind.kind],
                (kind.failing.failures, kind.failing.requests),
                kind.failing.first_ns,
                kind.failing.lasts_ns,
                over=kind.failing.recovered_ns is not None,
            )
    for prober in trial.new_connections:
        found = prober.observed_failing
        if found is not None:
            yield _window(
                failing.new_band(prober),
                failing.named(prober, trial.new_connections),
                (found.failures, found.attempts),
                found.first_ns,
                found.lasts_ns,
                over=failing.served_again(prober),
            )
    udp = outages(trial.flows)
    if udp is not None:
        lasts_ns, went = udp.gap_ns or (0, 0), f"{'were' if udp.one_way else 'went'} {udp.words}"
        how = f"for up to {duration(lasts_ns)}" if udp.over_ns else "to the end of the recording"
        yield Window(
            BAND,
            lasts_ns,
            udp.over_ns is not None,
            f"UDP flows {went} {how}, {prose.since(udp.began_ns)}",
        )


def _window(
    band: str,
    what: str,
    counts: tuple[int, int],
    first_ns: Bounds,
    lasts_ns: Bounds,
    *,
    over: bool,
) -> Window:
    """Attempts, or requests, from the first that failed to the last; ``counts``: failed, tried."""
    failed, tried = counts
    if failed == 1:
        return Window(band, lasts_ns, over, f"One of the {what} failed, {prose.at(first_ns)}")
    share = f"all {tried:,}" if failed == tried else f"{failed:,} of {tried:,}"
    how = f"for {duration(lasts_ns)}" if over else "to the end of the recording"
    how = how if failed == tried else f"on and off {how}"
    text = f"{what} failed {how}, {prose.since(first_ns)}: {share} that were tried"
    return Window(band, lasts_ns, over, text[:1].upper() + text[1:])
