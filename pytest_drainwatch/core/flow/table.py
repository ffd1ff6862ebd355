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
6. What our own machine could not send (LIMITED) or see (STALLED) is never blamed on the
   workload.

How observations become signals is said in :mod:`.signals`, what the last state means in
:mod:`.classify`. docs/verdicts.md is generated from these tables.
"""

from __future__ import annotations

from enum import StrEnum


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
    STALLED = "stalled"  # the client could not look while it would have mattered
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
    TAKEN_OVER = "taken-over"  # by whom is not known: the watch of the pods had a gap
    STILL_REFUSED = "still-refused"
    STILL_UNREACHABLE = "still-unreachable"
    STILL_SILENT = "still-silent"
    STILL_LIMITED = "still-limited"
    STILL_STALLED = "still-stalled"
    UNDECIDED = "undecided"


class Signal(StrEnum):
    """What happens to a flow, as the table sees it."""

    CONNECT = "connect"
    CONNECT_FAIL = "connect-fail"
    ANSWER = "answer"
    UNANSWERED = "unanswered"
    SILENCE = "silence"
    STARVE = "starve"  # TCP: accepted, and silent for so long without ever having answered
    LIMIT = "limit"
    STALL = "stall"
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
    STRANGER = "stranger"
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
    _E.STALL: _S.STALLED,
    _E.BYE: _S.ANNOUNCED,
    _E.MOVE: _S.MOVED,
    _E.FOREIGN: _S.FOREIGN,
    _E.STRANGER: _S.TAKEN_OVER,
    _E.ANSWER: _S.ALIVE,
    _E.END: _S.SURVIVED,
}

# What was announced stays announced, whatever our own machine is up to.
_AFTER_BYE: dict[Signal, State] = {
    **_LIVING,
    _E.ANSWER: _S.ANNOUNCED,
    _E.UNANSWERED: _S.ANNOUNCED,
    _E.LIMIT: _S.ANNOUNCED,
    _E.STALL: _S.ANNOUNCED,
    _E.SILENCE: _S.ANNOUNCED_SILENT,
    _E.FIN: _S.FIN_ANNOUNCED,
    _E.RST: _S.RESET_ANNOUNCED,
}


def _unmoved(state: State) -> dict[Signal, State]:
    """What adds nothing to the evidence that a path is broken."""
    return dict.fromkeys((_E.UNANSWERED, _E.LIMIT, _E.STALL), state)


_ROWS: dict[State, dict[Signal, State]] = {
    _S.NEW: {
        _E.CONNECT: _S.CONNECTED,
        _E.CONNECT_FAIL: _S.NOT_CONNECTED,
        _E.LIMIT: _S.STILL_LIMITED,
    },
    _S.CONNECTED: {
        **_LIVING,
        _E.UNANSWERED: _S.CONNECTED,
        _E.STALL: _S.CONNECTED,
        _E.STARVE: _S.STARVED,
        _E.END: _S.CONNECTED,
    },
    _S.ALIVE: _LIVING,
    _S.QUIET: {**_LIVING, _E.END: _S.UNDECIDED},
    _S.ANNOUNCED: _AFTER_BYE,
    _S.ANNOUNCED_SILENT: {
        **_AFTER_BYE,
        _E.UNANSWERED: _S.ANNOUNCED_SILENT,
        _E.LIMIT: _S.ANNOUNCED_SILENT,
        _E.STALL: _S.ANNOUNCED_SILENT,
        _E.END: _S.STILL_SILENT,
    },
    _S.SILENT: {**_LIVING, **_unmoved(_S.SILENT), _E.END: _S.STILL_SILENT},
    # A refusal and an unreachable host can alternate; the first one names the end.
    _S.REFUSED: {
        **_LIVING,
        **_unmoved(_S.REFUSED),
        _E.ICMP_OTHER: _S.REFUSED,
        _E.SILENCE: _S.REFUSED,
        _E.MOVE: _S.MOVED_AFTER_REFUSAL,
        _E.END: _S.STILL_REFUSED,
    },
    _S.UNREACHABLE: {
        **_LIVING,
        **_unmoved(_S.UNREACHABLE),
        _E.ICMP_PORT: _S.UNREACHABLE,
        _E.SILENCE: _S.UNREACHABLE,
        _E.MOVE: _S.MOVED_AFTER_UNREACHABLE,
        _E.END: _S.STILL_UNREACHABLE,
    },
    _S.LIMITED: {
        **_LIVING,
        _E.UNANSWERED: _S.LIMITED,
        _E.STALL: _S.LIMITED,
        _E.SILENCE: _S.LIMITED,
        _E.END: _S.STILL_LIMITED,
    },
    _S.STALLED: {**_LIVING, _E.UNANSWERED: _S.STALLED, _E.END: _S.STILL_STALLED},
}

ABSORBING = frozenset(State) - _ROWS.keys()
LIVING = frozenset({_S.NEW, _S.CONNECTED, _S.ALIVE, _S.QUIET, _S.ANNOUNCED, _S.LIMITED, _S.STALLED})
# States without an end although they are absorbing.
ENDLESS = frozenset(
    {_S.SURVIVED, _S.UNDECIDED, _S.STILL_LIMITED, _S.STILL_STALLED, _S.NOT_CONNECTED}
)
# The kernel tells when a TCP connection ended: that is better evidence than silence before it.
SILENCES = frozenset({_S.SILENT, _S.ANNOUNCED_SILENT})
PUSHED = frozenset({_E.FIN, _E.RST, _E.EPIPE, _E.TIMEOUT, _E.NET_ERROR})

TRANSITIONS: dict[tuple[State, Signal], State] = {
    (state, signal): _ROWS.get(state, {}).get(signal, state) for state in State for signal in Signal
}
