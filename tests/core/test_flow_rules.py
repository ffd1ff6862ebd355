"""The table told by signals instead of by states: each rule has a line here that needs it."""

from __future__ import annotations

import pytest

from pytest_drainwatch.core.flow.classify import VERDICTS
from pytest_drainwatch.core.flow.table import ABSORBING, TRANSITIONS, Signal, State

S = State
OPEN = frozenset(State) - ABSORBING - {S.NEW}
AFTER_BYE = {S.ANNOUNCED, S.ANNOUNCED_SILENT}
PROVEN = {S.REFUSED, S.UNREACHABLE, S.SILENT}  # nothing that our own machine does adds to it


def each(states: set[State] | frozenset[State], to: State) -> dict[State, State]:
    return dict.fromkeys(states, to)


def stay(*states: State) -> dict[State, State]:
    return {state: state for state in states}


# What an open flow does; a state that a line does not name has the line's first entry.
RULES: dict[Signal, tuple[State, dict[State, State]]] = {
    Signal.FIN: (S.FIN_UNANNOUNCED, each(AFTER_BYE, S.FIN_ANNOUNCED)),
    Signal.RST: (S.RESET, each(AFTER_BYE, S.RESET_ANNOUNCED)),
    Signal.EPIPE: (S.BROKEN_PIPE, {}),
    Signal.TIMEOUT: (S.TIMED_OUT, {}),
    Signal.NET_ERROR: (S.CUT_OFF, {}),
    Signal.FOREIGN: (S.FOREIGN, {}),
    Signal.STRANGER: (S.TAKEN_OVER, {}),
    Signal.MOVE: (
        S.MOVED,
        {S.REFUSED: S.MOVED_AFTER_REFUSAL, S.UNREACHABLE: S.MOVED_AFTER_UNREACHABLE},
    ),
    # The first ICMP error names the end.
    Signal.ICMP_PORT: (S.REFUSED, stay(S.UNREACHABLE)),
    Signal.ICMP_OTHER: (S.UNREACHABLE, stay(S.REFUSED)),
    Signal.BYE: (S.ANNOUNCED, {}),
    Signal.ANSWER: (S.ALIVE, each(AFTER_BYE, S.ANNOUNCED)),
    Signal.UNANSWERED: (S.QUIET, stay(*OPEN - {S.ALIVE, S.QUIET})),
    Signal.SILENCE: (
        S.SILENT,
        {**each(AFTER_BYE, S.ANNOUNCED_SILENT), **stay(S.LIMITED, S.REFUSED, S.UNREACHABLE)},
    ),
    # Only who was never answered can starve.
    Signal.STARVE: (S.STARVED, stay(*OPEN - {S.CONNECTED})),
    Signal.LIMIT: (S.LIMITED, stay(*AFTER_BYE, *PROVEN)),
    Signal.STALL: (S.STALLED, stay(*AFTER_BYE, *PROVEN, S.CONNECTED, S.LIMITED)),
    Signal.END: (
        S.SURVIVED,
        {
            S.CONNECTED: S.CONNECTED,
            S.QUIET: S.UNDECIDED,
            S.SILENT: S.STILL_SILENT,
            S.ANNOUNCED_SILENT: S.STILL_SILENT,
            S.LIMITED: S.STILL_LIMITED,
            S.STALLED: S.STILL_STALLED,
            S.REFUSED: S.STILL_REFUSED,
            S.UNREACHABLE: S.STILL_UNREACHABLE,
        },
    ),
}


@pytest.mark.parametrize("signal", RULES)
@pytest.mark.parametrize("state", sorted(OPEN))
def test_an_open_flow(state: State, signal: Signal) -> None:
    usual, exceptions = RULES[signal]
    assert TRANSITIONS[state, signal] is exceptions.get(state, usual)


@pytest.mark.parametrize("signal", sorted(set(Signal) - RULES.keys()))
@pytest.mark.parametrize("state", sorted(OPEN))
def test_dialling_is_over_once_connected(state: State, signal: Signal) -> None:
    assert TRANSITIONS[state, signal] is state


def test_a_new_flow() -> None:
    moves = {e: to for (state, e), to in TRANSITIONS.items() if state is S.NEW and to is not S.NEW}
    assert moves == {
        Signal.CONNECT: S.CONNECTED,
        Signal.CONNECT_FAIL: S.NOT_CONNECTED,
        Signal.LIMIT: S.STILL_LIMITED,
    }


@pytest.mark.parametrize("state", sorted(OPEN | {S.NEW, S.NOT_CONNECTED, S.UNDECIDED}))
def test_a_recording_that_stops_while_a_flow_lives_has_not_measured_it(state: State) -> None:
    mechanism = {
        S.SILENT: "silence",
        S.ANNOUNCED_SILENT: "silence",
        S.QUIET: "silence",
        S.UNDECIDED: "silence",
        S.REFUSED: "refused",
        S.UNREACHABLE: "unreachable",
        S.LIMITED: "client-limit",
        S.STALLED: "client-stall",
    }
    assert VERDICTS[state] == ("not-measured", mechanism.get(state, "none"))
