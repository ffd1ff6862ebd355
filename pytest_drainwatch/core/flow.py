"""One flow's life as a table ``(state, signal) -> state``.

Rules for whoever edits this file:

1. Everything that decides how a flow's life went is in :data:`TRANSITIONS`;
   nothing else may move a flow from one state to another.
2. The table is total: every state answers every signal.
3. States after a proven end are absorbing. What comes later is history, not verdict.
4. A UDP path may come back, so REFUSED, UNREACHABLE and SILENT are left again
   when the *same* responder answers. A different responder proves the end.
5. Who has not been answered for a while when the watch stops neither survived nor
   ended: UNDECIDED is not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.jsonvalue import integer
from pytest_drainwatch.core.observation import Event, Observation

UDP_SILENT_COUNT = 6
UDP_SILENT_NS = 3 * NS_PER_S
TCP_SILENT_NS = 10 * NS_PER_S
# An answer that is out for so long is not merely on its way.
QUIET_NS = 1 * NS_PER_S
ICMP_UNREACHABLE_V4, ICMP_PORT_V4 = 3, 3
ICMP_UNREACHABLE_V6, ICMP_PORT_V6 = 1, 4


class Proto(StrEnum):
    """The transport of a flow."""

    TCP = "tcp"
    UDP = "udp"


class State(StrEnum):
    """Where a flow stands."""

    NEW = "new"
    CONNECTED = "connected"  # open, not answered yet
    ALIVE = "alive"  # answered by its first responder
    ANNOUNCED = "announced"  # the peer said bye, and serves on
    QUIET = "quiet"  # unanswered, but not for long enough to call it an end
    SILENT = "silent"  # unanswered for longer than loss explains
    ANNOUNCED_SILENT = "announced-silent"  # the same, after a bye
    LIMITED = "limited"  # our own machine could not send
    REFUSED = "refused"  # UDP: port unreachable since the last answer
    UNREACHABLE = "unreachable"  # UDP: host or network unreachable since the last answer
    # --- absorbing ---
    SURVIVED = "survived"
    STARVED = "starved"  # accepted, never served
    NOT_CONNECTED = "not-connected"
    FIN_ANNOUNCED = "fin-announced"
    FIN_UNANNOUNCED = "fin-unannounced"
    RESET = "reset"
    RESET_ANNOUNCED = "reset-announced"
    BROKEN_PIPE = "broken-pipe"
    TIMED_OUT = "timed-out"
    CUT_OFF = "cut-off"  # TCP: a network error that the kernel gave up on
    MOVED = "moved"
    MOVED_AFTER_REFUSAL = "moved-after-refusal"
    MOVED_AFTER_UNREACHABLE = "moved-after-unreachable"
    FOREIGN = "foreign"
    STILL_REFUSED = "still-refused"
    STILL_UNREACHABLE = "still-unreachable"
    STILL_SILENT = "still-silent"
    STILL_LIMITED = "still-limited"
    UNDECIDED = "undecided"


class Signal(StrEnum):
    """What happens to a flow, as the table sees it."""

    CONNECT = "connect"
    CONNECT_FAIL = "connect-fail"
    ANSWER = "answer"
    UNANSWERED = "unanswered"
    SILENCE = "silence"
    LIMIT = "limit"
    BYE = "bye"
    FIN = "fin"
    RST = "rst"
    EPIPE = "epipe"
    TIMEOUT = "timeout"
    NET_ERROR = "net-error"
    ICMP_PORT = "icmp-port"
    ICMP_OTHER = "icmp-other"
    MOVE = "move"
    FOREIGN = "foreign"
    END = "end"  # the harness stopped watching; the flow was open


_S, _E = State, Signal

# What any living state does unless its own row says otherwise.
_LIVING: dict[Signal, State] = {
    _E.FIN: _S.FIN_UNANNOUNCED,
    _E.RST: _S.RESET,
    _E.EPIPE: _S.BROKEN_PIPE,
    _E.TIMEOUT: _S.TIMED_OUT,
    _E.NET_ERROR: _S.CUT_OFF,
    _E.ICMP_PORT: _S.REFUSED,
    _E.ICMP_OTHER: _S.UNREACHABLE,
    _E.UNANSWERED: _S.QUIET,
    _E.SILENCE: _S.SILENT,
    _E.LIMIT: _S.LIMITED,
    _E.BYE: _S.ANNOUNCED,
    _E.MOVE: _S.MOVED,
    _E.FOREIGN: _S.FOREIGN,
    _E.ANSWER: _S.ALIVE,
    _E.END: _S.SURVIVED,
}

_AFTER_BYE: dict[Signal, State] = {
    **_LIVING,
    _E.ANSWER: _S.ANNOUNCED,
    _E.UNANSWERED: _S.ANNOUNCED,
    _E.SILENCE: _S.ANNOUNCED_SILENT,
    _E.FIN: _S.FIN_ANNOUNCED,
    _E.RST: _S.RESET_ANNOUNCED,
}

_ROWS: dict[State, dict[Signal, State]] = {
    _S.NEW: {_E.CONNECT: _S.CONNECTED, _E.CONNECT_FAIL: _S.NOT_CONNECTED},
    _S.CONNECTED: {
        **_LIVING,
        _E.UNANSWERED: _S.CONNECTED,
        _E.SILENCE: _S.STARVED,
        _E.END: _S.CONNECTED,
    },
    _S.ALIVE: _LIVING,
    _S.QUIET: {**_LIVING, _E.END: _S.UNDECIDED},
    _S.ANNOUNCED: _AFTER_BYE,
    _S.ANNOUNCED_SILENT: {
        **_AFTER_BYE,
        _E.UNANSWERED: _S.ANNOUNCED_SILENT,
        _E.END: _S.STILL_SILENT,
    },
    _S.SILENT: {**_LIVING, _E.UNANSWERED: _S.SILENT, _E.END: _S.STILL_SILENT},
    # A refusal and an unreachable host can alternate; the first one names the end.
    _S.REFUSED: {
        **_LIVING,
        _E.ICMP_OTHER: _S.REFUSED,
        _E.UNANSWERED: _S.REFUSED,
        _E.SILENCE: _S.REFUSED,
        _E.MOVE: _S.MOVED_AFTER_REFUSAL,
        _E.END: _S.STILL_REFUSED,
    },
    _S.UNREACHABLE: {
        **_LIVING,
        _E.ICMP_PORT: _S.UNREACHABLE,
        _E.UNANSWERED: _S.UNREACHABLE,
        _E.SILENCE: _S.UNREACHABLE,
        _E.MOVE: _S.MOVED_AFTER_UNREACHABLE,
        _E.END: _S.STILL_UNREACHABLE,
    },
    _S.LIMITED: {
        **_LIVING,
        _E.UNANSWERED: _S.LIMITED,
        _E.SILENCE: _S.LIMITED,
        _E.END: _S.STILL_LIMITED,
    },
}

ABSORBING = frozenset(State) - _ROWS.keys()
LIVING = frozenset({_S.NEW, _S.CONNECTED, _S.ALIVE, _S.QUIET, _S.ANNOUNCED, _S.LIMITED})
# States without an end although they are absorbing.
ENDLESS = frozenset({_S.SURVIVED, _S.UNDECIDED, _S.STILL_LIMITED, _S.NOT_CONNECTED})
# The kernel tells when a TCP connection ended: that is better evidence than silence before it.
_SILENCES = frozenset({_S.SILENT, _S.ANNOUNCED_SILENT})
PUSHED = frozenset({_E.FIN, _E.RST, _E.EPIPE, _E.TIMEOUT, _E.NET_ERROR})

TRANSITIONS: dict[tuple[State, Signal], State] = {
    (state, signal): _ROWS.get(state, {}).get(signal, state) for state in State for signal in Signal
}


@dataclass(frozen=True, slots=True)
class Step:
    """A signal, when it applied, and the observation that it came from."""

    signal: Signal
    at: Interval
    seen: Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLife:
    """Where a flow's life led: final state, when it left the living, by which step."""

    proto: Proto
    state: State
    end: Interval | None
    end_step: Step | None
    steps: tuple[Step, ...]


def live(proto: Proto, history: Sequence[Observation], workload: AbstractSet[str]) -> FlowLife:
    """Run a flow's observations through the table.

    ``workload`` holds the UIDs of every pod that was seen to belong to the
    workload: an answer from anybody else is foreign. Empty means "not known".
    """
    state = State.NEW
    end: Step | None = None
    steps = tuple(_signals(proto, history, workload))
    for step in steps:
        before, state = state, TRANSITIONS[state, step.signal]
        if state in LIVING:
            end = None
        elif state in ENDLESS:
            continue
        elif before in LIVING or (before in _SILENCES and step.signal in PUSHED):
            end = step
    return FlowLife(
        proto=proto, state=state, end=end.at if end else None, end_step=end, steps=steps
    )


def _signals(
    proto: Proto, history: Sequence[Observation], workload: AbstractSet[str]
) -> Iterator[Step]:
    """Translate observations; the only arithmetic is where an end must lie.

    A UDP path breaks after the send of the last exchange that worked and before
    the first sign that it does not work any more. Silence is such a sign one round
    trip after the first send that was lost; the longest one seen stands for it.
    """
    last_good_ns: int | None = None
    rtt_max_ns = 0
    for seen in history:
        event, data, at = seen.event, seen.data, seen.at
        if event is Event.FLOW_ANSWERED:
            last_good_ns = integer(data.get("last_sent_ns"), at.lo)
            rtt_max_ns = max(rtt_max_ns, integer(data.get("rtt_max_ns"), 0))
            yield Step(Signal.ANSWER, at, seen)
        elif event is Event.FLOW_UNANSWERED:
            first = integer(data.get("first_sent_ns"), at.lo)
            if _is_silence(proto, integer(data.get("count"), 0), at.hi - first):
                lo = first if last_good_ns is None else last_good_ns
                yield Step(Signal.SILENCE, Interval(lo, max(lo, first + rtt_max_ns)), seen)
            elif at.hi - first >= max(QUIET_NS, 3 * rtt_max_ns):
                yield Step(Signal.UNANSWERED, at, seen)
        elif event is Event.FLOW_RESPONDER:
            yield Step(_responder(seen, workload), at, seen)
        elif event is Event.FLOW_ICMP or event in _ERRORS:
            if proto is Proto.UDP and last_good_ns is not None:
                at = Interval(min(last_good_ns, at.hi), at.hi)
            signal = _icmp(data) if event is Event.FLOW_ICMP else _error(proto, data.get("errno"))
            yield Step(signal, at, seen)
        elif event in _PLAIN:
            yield Step(_PLAIN[event], at, seen)


_PLAIN = {
    Event.FLOW_CONNECTED: Signal.CONNECT,
    Event.FLOW_CONNECT_FAILED: Signal.CONNECT_FAIL,
    Event.FLOW_ANNOUNCED: Signal.BYE,
    Event.FLOW_FIN: Signal.FIN,
    Event.FLOW_GARBAGE: Signal.FOREIGN,
    Event.FLOW_OPEN_AT_END: Signal.END,
}
_ERRORS = frozenset({Event.FLOW_RESET, Event.FLOW_WRITE_ERROR, Event.FLOW_READ_ERROR})


def _responder(seen: Observation, workload: AbstractSet[str]) -> Signal:
    uid = str(seen.data.get("responder", "")).partition("/")[0]
    if workload and uid not in workload:
        return Signal.FOREIGN
    return Signal.MOVE if seen.data.get("previous") else Signal.ANSWER


_LOCAL_ERRNOS = frozenset({"ENOBUFS", "ENOMEM", "EMFILE", "ENFILE", "EADDRNOTAVAIL", "EPERM"})


def _error(proto: Proto, errno: object) -> Signal:
    if errno in _LOCAL_ERRNOS:
        return Signal.LIMIT
    named = {
        "ECONNRESET": Signal.RST,
        "EPIPE": Signal.EPIPE,
        "ETIMEDOUT": Signal.TIMEOUT,
        "ECONNREFUSED": Signal.ICMP_PORT if proto is Proto.UDP else Signal.RST,
    }
    fallback = Signal.ICMP_OTHER if proto is Proto.UDP else Signal.NET_ERROR
    return named.get(str(errno), fallback)


def _is_silence(proto: Proto, count: int, lasted_ns: int) -> bool:
    if proto is Proto.TCP:
        return lasted_ns >= TCP_SILENT_NS
    return count >= UDP_SILENT_COUNT and lasted_ns >= UDP_SILENT_NS


def _icmp(data: Mapping[str, object]) -> Signal:
    kind = (data.get("type"), data.get("code"))
    ports = {(ICMP_UNREACHABLE_V4, ICMP_PORT_V4), (ICMP_UNREACHABLE_V6, ICMP_PORT_V6)}
    return Signal.ICMP_PORT if kind in ports else Signal.ICMP_OTHER
