"""A flow's observations as the table's signals; the only arithmetic is where an end lies.

A UDP path breaks after the last request that was served was sent, and before the first
sign that it does not serve any more. A request that was lost is such a sign as soon as
it got there: for its way the shortest round trip of the flow is allowed. How long it
waited in a dying process is that process's affair, and no part of the path.

What the client did not see while it was stalled is no sign of anything: silence
counts without the stalls in it, and a connection that ended while the machine slept
ended for a reason that nobody saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pytest_drainwatch.core.flow.table import Proto, Signal
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.jsonvalue import integer, integer_or_none, text
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.stall import NO_STALLS, Stalls

UDP_SILENT_COUNT = 6
UDP_SILENT_NS = 3 * NS_PER_S
TCP_SILENT_NS = 10 * NS_PER_S
# An answer that is out for so long is not merely on its way.
QUIET_NS = 1 * NS_PER_S
# One lost datagram may be chance; from the second on the path is the explanation. On a path
# that lost none of so many before, the first one is not chance either.
SIGNS_OF_A_BREAK = 2
LOSSLESS_AFTER = 60
# From a send's stamp to the far end of a short path, kernels included.
PASSAGE_NS = 1 * NS_PER_MS
# A deadline of the client's own making: evidence about the client, never about the peer.
OWN_DEADLINE = "deadline"
ICMP_UNREACHABLE_V4, ICMP_PORT_V4 = 3, 3
ICMP_UNREACHABLE_V6, ICMP_PORT_V6 = 1, 4


@dataclass(frozen=True, slots=True)
class Step:
    """A signal, when it applied, and the observation that it came from."""

    signal: Signal
    at: Interval
    seen: Observation


def signals(
    proto: Proto,
    history: Sequence[Observation],
    workload: AbstractSet[str],
    stalls: Stalls = NO_STALLS,
    *,
    all_pods_known: bool = True,
) -> Iterator[Step]:
    """The steps of a flow's life.

    ``workload`` holds the UIDs of every pod that was seen to belong to the
    workload: an answer from anybody else is foreign, if ``all_pods_known``. Empty means
    "not known".
    """
    path = _Path(history if proto is Proto.UDP else (), stalls)
    announced = False
    for seen in history:
        event, data, at = seen.event, seen.data, seen.at
        if event is Event.FLOW_ANSWERED:
            path.answered(seen)
            yield Step(Signal.ANSWER, at, seen)
        elif event is Event.FLOW_UNANSWERED:
            yield from _unanswered(proto, seen, path, stalls)
        elif event is Event.FLOW_RESPONDER:
            bounded = seen.data.get("bounded") is True  # by others, of whom it is known
            at = path.broke(at, seen) if proto is Proto.UDP and not bounded else at
            yield Step(_responder(seen, workload, all_pods_known), stalls.widen(at), seen)
        elif event is Event.FLOW_ICMP or event in _ERRORS:
            if proto is Proto.UDP:
                at = path.broke(at, seen)
            signal = _icmp(data) if event is Event.FLOW_ICMP else _error(proto, data.get("errno"))
            yield _pushed(signal, stalls.widen(at), seen, stalls)
        elif event is Event.FLOW_FIN:
            # What was announced before the machine slept is no less true after it.
            asleep = NO_STALLS if announced else stalls
            yield _pushed(Signal.FIN, stalls.widen(at), seen, asleep)
        elif event is Event.FLOW_CONNECT_FAILED:
            limited = text(data.get("errno")) in _LOCAL_ERRNOS
            yield Step(Signal.LIMIT if limited else Signal.CONNECT_FAIL, at, seen)
        elif event in _PLAIN:
            announced = announced or event is Event.FLOW_ANNOUNCED
            yield Step(_PLAIN[event], stalls.widen(at), seen)


_PLAIN = {
    Event.FLOW_CONNECTED: Signal.CONNECT,
    Event.FLOW_ANNOUNCED: Signal.BYE,
    Event.FLOW_GARBAGE: Signal.FOREIGN,
    Event.FLOW_OPEN_AT_END: Signal.END,
}
_ERRORS = frozenset({Event.FLOW_RESET, Event.FLOW_WRITE_ERROR, Event.FLOW_READ_ERROR})


class _Path:
    """What is known of a UDP path: its last exchange that worked, and when sends got lost."""

    def __init__(self, history: Sequence[Observation], stalls: Stalls) -> None:
        self._stalls = stalls
        self.answers = False
        self.last_good_ns: int | None = None
        self.rtt_max_ns = 0
        self._rtt_min_ns: int | None = None
        self._good = 0
        self._lost_by_chance = 0  # those after which the same responder went on
        # A run of losses is written when it ends, which may be after the sign that it led to.
        self._lost = [o for o in history if o.event is Event.FLOW_UNANSWERED]
        # When the first request of each stretch was sent: that of a new responder's tells by
        # when the path no longer led to the old one.
        self._sent_ns = {
            (text(o.data.get("responder")), integer(o.data.get("first_seq"), 0)): o.at.lo
            for o in history
            if o.event is Event.FLOW_ANSWERED
        }

    def answered(self, seen: Observation) -> None:
        self.answers = True
        before_ns = seen.at.lo if self.last_good_ns is None else self.last_good_ns
        self.last_good_ns = integer(seen.data.get("last_sent_ns"), seen.at.lo)
        self.rtt_max_ns = max(self.rtt_max_ns, integer(seen.data.get("rtt_max_ns"), 0))
        shortest_ns = integer(seen.data.get("rtt_min_ns"), self.rtt_max_ns)
        known_ns = self._rtt_min_ns
        self._rtt_min_ns = shortest_ns if known_ns is None else min(known_ns, shortest_ns)
        self._good += integer(seen.data.get("count"), 0)
        self._lost_by_chance += integer(seen.data.get("lost"), 0)
        self._lost_by_chance += sum(before_ns < _first_ns(run) < seen.at.lo for run in self._lost)

    def arrived_ns(self, sent_ns: int) -> int:
        """Until when a request that was stamped at ``sent_ns`` had got there."""
        left_ns = self._stalls.delayed(Interval.point(sent_ns)).hi
        return left_ns + max(PASSAGE_NS, self._rtt_min_ns or 0)

    def broke(self, at: Interval, sign: Observation) -> Interval:
        """Where the path broke, if ``sign`` at ``at`` is how it showed."""
        if self.last_good_ns is None:
            return at
        lo = min(self.last_good_ns, at.hi)
        first_ns = self._first_lost_ns(lo, at.hi, sign)
        if first_ns is None and sign.event is Event.FLOW_RESPONDER:
            asked = (text(sign.data.get("responder")), integer(sign.data.get("seq"), 0))
            sent_ns = self._sent_ns.get(asked, lo)
            first_ns = sent_ns if lo < sent_ns <= at.hi else None
        hi = at.hi if first_ns is None else min(at.hi, self.arrived_ns(first_ns))
        return Interval(lo, max(lo, hi))

    def _first_lost_ns(self, after_ns: int, until_ns: int, sign: Observation) -> int | None:
        """When the first of the sends was lost that ``sign`` is the end of."""
        for run in self._lost:
            first_ns = _first_ns(run)
            if not after_ns < first_ns <= until_ns:
                continue
            lost, enough = integer(run.data.get("count"), 0), SIGNS_OF_A_BREAK
            if sign.event is not Event.FLOW_RESPONDER:
                # Which of the run's sends it is about; those before it were lost in silence.
                lost = integer(sign.data.get("seq"), 0) - integer(run.data.get("first_seq"), 0) + 1
            elif self._good >= LOSSLESS_AFTER and not self._lost_by_chance:
                enough = 1
            return first_ns if lost >= enough else None
        return None


def _first_ns(run: Observation) -> int:
    """When the first send of a run of losses was made."""
    return integer(run.data.get("first_sent_ns"), run.at.lo)


def _unanswered(proto: Proto, seen: Observation, path: _Path, stalls: Stalls) -> Iterator[Step]:
    first = _first_ns(seen)
    count = integer(seen.data.get("count"), 0)
    waited = Interval(min(first, seen.at.hi), seen.at.hi)
    if _is_silence(proto, count, waited.width):
        if stalls.slept(waited) or not _is_silence(
            proto, count, waited.width - stalls.paused_ns(waited)
        ):
            yield Step(Signal.STALL, seen.at, seen)
            return
        lo = first if path.last_good_ns is None else path.last_good_ns
        # A datagram that nobody accepted starves nobody: that path is dark, and may come up.
        starved = proto is Proto.TCP and not path.answers
        signal = Signal.STARVE if starved else Signal.SILENCE
        yield Step(signal, Interval(lo, max(lo, path.arrived_ns(first))), seen)
    elif waited.width >= max(QUIET_NS, 3 * path.rtt_max_ns):
        yield Step(Signal.UNANSWERED, seen.at, seen)


def _pushed(signal: Signal, at: Interval, seen: Observation, stalls: Stalls) -> Step:
    return Step(Signal.STALL if stalls.slept(at) else signal, at, seen)


def _responder(seen: Observation, workload: AbstractSet[str], all_known: bool) -> Signal:
    uid = str(seen.data.get("responder", "")).partition("/")[0]
    first = not seen.data.get("previous")
    if not uid:  # somebody of a workload that signs nothing
        return Signal.ANSWER if first else Signal.MOVE
    if workload and uid not in workload and (all_known or not first):
        return Signal.FOREIGN if all_known else Signal.STRANGER
    return Signal.ANSWER if first else Signal.MOVE


_LOCAL_ERRNOS = frozenset({"ENOBUFS", "ENOMEM", "EMFILE", "ENFILE", "EADDRNOTAVAIL", "EPERM"})


def _error(proto: Proto, said: object) -> Signal:
    errno = text(said)
    if errno in _LOCAL_ERRNOS:
        return Signal.LIMIT
    if errno == OWN_DEADLINE:
        return Signal.STALL
    named = {
        "ECONNRESET": Signal.RST,
        "EPIPE": Signal.EPIPE,
        "ETIMEDOUT": Signal.TIMEOUT,
        "ECONNREFUSED": Signal.ICMP_PORT if proto is Proto.UDP else Signal.RST,
    }
    fallback = Signal.ICMP_OTHER if proto is Proto.UDP else Signal.NET_ERROR
    return named.get(errno, fallback)


def _is_silence(proto: Proto, count: int, lasted_ns: int) -> bool:
    if proto is Proto.TCP:
        return lasted_ns >= TCP_SILENT_NS
    return count >= UDP_SILENT_COUNT and lasted_ns >= UDP_SILENT_NS


def _icmp(data: Mapping[str, object]) -> Signal:
    kind = (integer_or_none(data.get("type")), integer_or_none(data.get("code")))
    ports = {(ICMP_UNREACHABLE_V4, ICMP_PORT_V4), (ICMP_UNREACHABLE_V6, ICMP_PORT_V6)}
    return Signal.ICMP_PORT if kind in ports else Signal.ICMP_OTHER
