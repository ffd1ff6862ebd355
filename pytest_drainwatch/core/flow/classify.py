"""What a flow's life means: one table from final state to outcome and mechanism."""

from __future__ import annotations

from enum import StrEnum

from pytest_drainwatch.core.flow.life import FlowLife
from pytest_drainwatch.core.flow.table import Proto, State


class Outcome(StrEnum):
    """How a flow ended. Closed; ``not-measured`` is never a pass and never zero."""

    DRAINED = "drained-clean-close"
    SEVERED = "severed"
    READ_TIMEOUT = "read-timeout"
    SURVIVED = "survived-observation-window"
    NOT_MEASURED = "not-measured"


class Mechanism(StrEnum):
    """By what a flow ended, beside its outcome; ``none`` where nothing did, or it is not known."""

    ANNOUNCED_FIN = "announced-fin"
    ANNOUNCED_RST = "announced-rst"
    FIN_UNANNOUNCED = "fin-unannounced"
    RST = "rst"
    EPIPE = "epipe"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    SILENCE = "silence"
    REHOMED = "rehomed"
    FOREIGN_RESPONDER = "foreign-responder"
    ACCEPTED_NEVER_SERVED = "accepted-never-served"
    CLIENT_LIMIT = "client-limit"
    CLIENT_STALL = "client-stall"
    NONE = "none"


class Role(StrEnum):
    """Whose flow it is: of a pod that is terminated, or of another replica."""

    TARGET = "target"
    BYSTANDER = "bystander"


Verdict = tuple[Outcome, Mechanism]

_O, _M = Outcome, Mechanism

VERDICTS: dict[State, Verdict] = {
    # A recording that stops while the flow lives says nothing about its fate.
    State.NEW: (_O.NOT_MEASURED, _M.NONE),
    State.CONNECTED: (_O.NOT_MEASURED, _M.NONE),
    State.ALIVE: (_O.NOT_MEASURED, _M.NONE),
    State.ANNOUNCED: (_O.NOT_MEASURED, _M.NONE),
    State.SILENT: (_O.NOT_MEASURED, _M.SILENCE),
    State.REFUSED: (_O.NOT_MEASURED, _M.REFUSED),
    State.UNREACHABLE: (_O.NOT_MEASURED, _M.UNREACHABLE),
    State.QUIET: (_O.NOT_MEASURED, _M.SILENCE),
    State.ANNOUNCED_SILENT: (_O.NOT_MEASURED, _M.SILENCE),
    State.LIMITED: (_O.NOT_MEASURED, _M.CLIENT_LIMIT),
    State.STILL_LIMITED: (_O.NOT_MEASURED, _M.CLIENT_LIMIT),
    State.STALLED: (_O.NOT_MEASURED, _M.CLIENT_STALL),
    State.STILL_STALLED: (_O.NOT_MEASURED, _M.CLIENT_STALL),
    # Unanswered when the watch stopped, for too short a time to say why.
    State.UNDECIDED: (_O.NOT_MEASURED, _M.SILENCE),
    State.SURVIVED: (_O.SURVIVED, _M.NONE),
    State.STARVED: (_O.READ_TIMEOUT, _M.ACCEPTED_NEVER_SERVED),
    State.NOT_CONNECTED: (_O.NOT_MEASURED, _M.NONE),
    State.FIN_ANNOUNCED: (_O.DRAINED, _M.ANNOUNCED_FIN),
    State.FIN_UNANNOUNCED: (_O.SEVERED, _M.FIN_UNANNOUNCED),
    State.RESET: (_O.SEVERED, _M.RST),
    State.RESET_ANNOUNCED: (_O.SEVERED, _M.ANNOUNCED_RST),
    State.BROKEN_PIPE: (_O.SEVERED, _M.EPIPE),
    State.TIMED_OUT: (_O.READ_TIMEOUT, _M.SILENCE),
    State.CUT_OFF: (_O.SEVERED, _M.UNREACHABLE),
    State.MOVED: (_O.SEVERED, _M.REHOMED),
    State.MOVED_AFTER_REFUSAL: (_O.SEVERED, _M.REFUSED),
    State.MOVED_AFTER_UNREACHABLE: (_O.SEVERED, _M.UNREACHABLE),
    State.TAKEN_OVER: (_O.SEVERED, _M.NONE),
    State.FOREIGN: (_O.SEVERED, _M.FOREIGN_RESPONDER),
    State.STILL_REFUSED: (_O.SEVERED, _M.REFUSED),
    State.STILL_UNREACHABLE: (_O.SEVERED, _M.UNREACHABLE),
    State.STILL_SILENT: (_O.SEVERED, _M.SILENCE),
}


def classify(life: FlowLife) -> Verdict:
    """The verdict on a flow.

    Silence reads differently per transport: a UDP peer that has gone quiet is
    gone, a TCP peer that sends nothing and closes nothing is a read timeout.
    """
    if life.state is State.STILL_SILENT and life.proto is Proto.TCP:
        return Outcome.READ_TIMEOUT, Mechanism.SILENCE
    return VERDICTS[life.state]
