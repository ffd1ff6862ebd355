"""What the looks at the node say about one flow: where it was led, and whether that is stale.

*Stale DNAT*: conntrack still leads a flow to a pod that has ended. kube-proxy's rules say
nothing about it, because only new connections meet them (FACTS K4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_drainwatch.core.flow.classify import Mechanism
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.mechanism.conntrack import Entry
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.mechanism.pods import Pods
from pytest_drainwatch.core.mechanism.snapshot import Look

CONCLUDES = (
    "refused while conntrack led it to the pod: the pod's own kernel said so "
    "(kube-proxy's REJECT never meets tracked flows)"
)

LACKS_IT = "no entry is listed, and it was answered before and after: the listing is incomplete"

# Left over from a connection that both ends know to be over.
CLOSING = frozenset({"TIME_WAIT", "CLOSE", "LAST_ACK"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEvidence:
    """Where conntrack led a flow at one occasion; ``at_ns`` in ns since t = 0.

    ``to`` is None if there was no entry, or none was listed. ``to_pod`` is None if the
    address is nobody's, or was that of several pods. ``stale``: what is sent on the flow is
    led to a pod that has ended; None if nothing shows it, neither way. ``state`` is TCP's.
    ``says`` puts it into words.
    """

    occasion: Occasion
    at_ns: tuple[int, int]
    to: str | None
    to_pod: str | None
    state: str | None
    stale: bool | None
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """What of a flow is needed: who it is in conntrack, and how it ended (since t = 0).

    ``address`` and ``port`` are its own; ``to_port`` is the one that it was opened to.
    ``answered`` are the stretches in which one pod answered it, on the harness's clock.
    """

    proto: str
    address: str
    port: int
    to_port: int
    mechanism: Mechanism
    end: Interval | None
    answered: tuple[Interval, ...] = ()

    def tracked_all_through(self, at: Interval) -> bool:
        """Whether answers show that it had an entry at ``at``.

        A TCP connection that lost it would not be led anywhere again. UDP makes a new one with
        its next datagram, so there only an unbroken stretch of answers says so.
        """
        if self.proto == Proto.TCP:
            return any(run.lo <= at.lo for run in self.answered) and any(
                run.hi >= at.hi for run in self.answered
            )
        return any(run.lo <= at.lo and at.hi <= run.hi for run in self.answered)


def evidence_of(
    flow: Tracked, looks: Iterable[Look], pods: Pods, t0_ns: int
) -> tuple[FlowEvidence, ...]:
    """One piece of evidence for each look that could tell about the flow."""
    told: list[_Told] = []
    for look in looks:
        if look.entries is None or look.entries_at is None:
            continue
        entry = look.entries.get((flow.proto, flow.address, flow.port))
        if entry is not None or (
            look.whole and not look.left_out
        ):  # else it may be among those left out
            told.append(_Told(look, look.entries_at, entry))
    concluding = _refused_by_the_pod(flow, told, pods, t0_ns)
    return tuple(_piece(flow, each, pods, t0_ns, concludes=each is concluding) for each in told)


class _Told(NamedTuple):
    """What one look says about the flow: its entry, or that there was none."""

    look: Look
    at: Interval
    entry: Entry | None


def _piece(flow: Tracked, told: _Told, pods: Pods, t0_ns: int, *, concludes: bool) -> FlowEvidence:
    look, entry, at = told.look, told.entry, told.at.since(t0_ns)
    if entry is None:
        return FlowEvidence(
            occasion=look.occasion,
            at_ns=(at.lo, at.hi),
            to=None,
            to_pod=None,
            state=None,
            stale=None,
            says=LACKS_IT if flow.tracked_all_through(told.at) else _absent(look, flow),
        )
    uids = pods.of(entry.to)
    uid = uids[0] if len(uids) == 1 else None
    dead = None if uid is None else pods.dead(uid, told.at)
    over = entry.proto == "tcp" and entry.state in CLOSING
    says = " ".join(_led(entry, uids, dead, over=over, at=told.at, pods=pods))
    return FlowEvidence(
        occasion=look.occasion,
        at_ns=(at.lo, at.hi),
        to=entry.to,
        to_pod=uid,
        state=entry.state,
        stale=False if over and dead else dead,
        says=f"{says}; {CONCLUDES}" if concludes else says,
    )


def _led(
    entry: Entry, uids: tuple[str, ...], dead: bool | None, *, over: bool, at: Interval, pods: Pods
) -> Iterator[str]:
    if not uids and pods.all_seen:
        yield f"conntrack led it to {entry.to}, which no endpoint of the Service had"
    elif not uids:
        yield f"conntrack led it to {entry.to}; whose address that is was not seen"
    elif len(uids) > 1:
        yield (
            f"conntrack led it to {entry.to}, which was the address of {len(uids)} pods "
            f"({', '.join(uids)}): to which one is not known"
        )
    elif dead:
        since_s = (at.lo - pods.ended_ns[uids[0]]) / NS_PER_S
        yield f"conntrack led it to the dead pod {entry.to} (uid {uids[0]}),"
        yield f"at least {since_s:.1f} s after its exit:"
        yield f"a connection that is over, in state {entry.state}" if over else "stale DNAT"
    elif dead is None:
        yield f"conntrack led it to the pod {entry.to} (uid {uids[0]}), which may have ended"
    else:
        yield f"conntrack led it to the living pod {entry.to} (uid {uids[0]})"
    if not entry.replied:
        yield "(no reply was seen on it)"


def _absent(look: Look, flow: Tracked) -> str:
    if look.effects is None:
        return "no entry; what kube-proxy does with new connections could not be read"
    effect = look.effect(flow.proto, flow.to_port)
    if effect is None:
        return "no entry; kube-proxy has no rule for new connections"
    if effect.endpoints:
        return f"no entry; kube-proxy leads new connections to {', '.join(effect.endpoints)}"
    if effect.rejects:
        return "no entry; kube-proxy rejects new connections"
    if effect.drops:
        return "no entry; kube-proxy drops new connections"
    return "no entry; kube-proxy leads new connections nowhere"


def _refused_by_the_pod(
    flow: Tracked, told: Sequence[_Told], pods: Pods, t0_ns: int
) -> _Told | None:
    """The first look after a refusal that shows who refused: conntrack had one and the same
    entry for the flow before and after, so rules that meet new connections had no say. Which
    pod that is must be known.
    """
    if flow.mechanism is not Mechanism.REFUSED or flow.proto != "udp" or flow.end is None:
        return None
    before = [each for each in told if each.at.hi - t0_ns <= flow.end.lo]
    after = next((each for each in told if each.at.lo - t0_ns >= flow.end.hi), None)
    if not before or after is None:
        return None
    was, now = before[-1].entry, after.entry
    if was is None or now is None or now.id is None:
        return None
    one_pod = len(pods.of(now.to)) == 1
    return after if one_pod and (was.to, was.id) == (now.to, now.id) else None
