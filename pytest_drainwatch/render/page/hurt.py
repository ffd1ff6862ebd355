"""Who was hurt, and which window hurt most.

Windows are compared by how long they surely hurt. Where two may have hurt as long as each other,
requests come before new connections, and those before UDP: so many clients are in it.
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
from pytest_drainwatch.render.page.moments import recorded, within
from pytest_drainwatch.render.page.outage import BAND, GONE, Outages, outages
from pytest_drainwatch.render.page.words import which

CUT = frozenset({Outcome.SEVERED, Outcome.READ_TIMEOUT})


class Window(NamedTuple):
    """A time in which somebody was hurt: its band, and ``text``, it in a sentence.

    ``hurts_ns`` is how long it hurt, in ns: where every other attempt failed, half of the time.
    """

    band: str
    hurts_ns: Bounds
    text: str


def _worst(trial: TrialReport) -> Window | None:
    """The window that hurt most; None: there was none that this trial watched."""
    found = list(_windows(trial))
    longest_ns = max((window.hurts_ns[0] for window in found), default=0)
    return next((window for window in found if window.hurts_ns[1] >= longest_ns), None)


def hurt(trial: TrialReport) -> Hurt | None:
    """The same for the page, with cut connections; None: nobody was, as far as was looked."""
    window, beside = _worst(trial), cut_connections(trial)
    if window is not None:
        also = f" Also, {beside}." if beside else ""
        return Hurt(band=window.band, text=f"{window.text}.{also}{_doubt(trial)}")
    if beside:
        return Hurt(band=None, text=f"{beside[:1].upper()}{beside[1:]}.{_doubt(trial)}")
    if looked(trial):
        return None
    return Hurt(band=None, text="Whether anybody was hurt is not known: nothing was measured.")


def _doubt(trial: TrialReport) -> str:
    """That something else may have hurt them, too; what, stands in the trial's marks."""
    return " Not all of it need be the trigger's doing: see the warnings." if trial.degraded else ""


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
        parts.append(f"{'one datagram was' if one else f'{single:,} single datagrams were'} lost")
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


def _windows(trial: TrialReport) -> Iterator[Window]:
    end_ns = recorded(trial)[1]
    for kind in trial.requests.kinds if trial.requests is not None else ():
        if kind.failing is not None:
            counts = kind.failing.failures, kind.failing.requests
            over = kind.failing.recovered_ns is not None
            what, first_ns, lasts_ns = (
                failing.KINDS[kind.kind],
                kind.failing.first_ns,
                kind.failing.lasts_ns,
            )
            yield Window(
                failing.http_band(kind),
                _hurts(lasts_ns if over else _since(first_ns, end_ns), counts),
                failing.told(what, counts, first_ns, lasts_ns, over=over),
            )
    for prober in trial.new_connections:
        found = prober.observed_failing
        if found is not None:
            over = failing.served_again(prober)
            yield Window(
                failing.new_band(prober),
                _hurts(
                    found.lasts_ns if over else _since(found.first_ns, end_ns),
                    (found.failures, found.attempts),
                ),
                failing.sentence(prober, trial.new_connections),
            )
    udp = outages(trial.flows)
    if udp is not None:
        yield from _of_udp(udp, end_ns)


def _of_udp(udp: Outages, end_ns: int) -> Iterator[Window]:
    if udp.gone_ns is not None:
        yield Window(
            GONE,
            _since(udp.gone_ns, end_ns),
            f"{which(udp.never_back, udp.of, 'UDP flow')} {udp.went(udp.never_back)} "
            f"{prose.since(udp.gone_ns)}, to the end of the recording",
        )
    if udp.back_began_ns is not None and udp.over_ns is not None:
        gap_ns = udp.gap_ns or (0, 0)
        long = "" if udp.gap_ns is None else f" for up to {prose.most(udp.gap_ns[1])}"
        often = "" if udp.times == 1 else f", up to {udp.times} times,"
        yield Window(
            BAND,
            gap_ns,
            f"{which(udp.back, udp.of, 'UDP flow')} {udp.went(udp.back)}{often}{long}, "
            f"{prose.since(udp.back_began_ns)}",
        )


def _since(began_ns: Bounds, end_ns: int) -> Bounds:
    """How long what was not over at the end of the recording had lasted then."""
    return max(0, end_ns - began_ns[1]), max(0, end_ns - began_ns[0])


def _hurts(lasts_ns: Bounds, counts: tuple[int, int]) -> Bounds:
    """The part of a window in which attempts failed; ``counts``: failed, tried."""
    failed, tried = counts
    if not tried:
        return lasts_ns
    return lasts_ns[0] * failed // tried, -(-lasts_ns[1] * failed // tried)
