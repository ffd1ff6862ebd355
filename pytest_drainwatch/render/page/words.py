"""Kubernetes' and TCP's terms in words that need no explanation."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_drainwatch.core.flow.classify import Mechanism, Outcome

# What was done, as a mark; beside them the sentences of :mod:`.says`.
VERBS = {
    "delete": "delete asked for",
    "force-delete": "delete with force asked for",
    "evict": "eviction asked for",
    "scale": "scaling down asked for",
    "rollout": "rollout asked for",
    "evacuate-node": "evacuation of the node asked for",
    "namespace-delete": "deletion of the namespace asked for",
    "container-kill": "container killed",
    "none": "t = 0 (nothing is done)",
}

_O, _M = Outcome, Mechanism
# How a TCP connection ended.
FATES: dict[tuple[Outcome, str], str] = {
    (_O.DRAINED, _M.ANNOUNCED_FIN): "closed cleanly, as the pod had announced",
    (_O.SEVERED, _M.ANNOUNCED_RST): "cut off by a reset, after the pod had announced its end",
    (_O.SEVERED, _M.FIN_UNANNOUNCED): "closed without warning",
    (_O.SEVERED, _M.RST): "cut off by a reset, without warning",
    (_O.SEVERED, _M.EPIPE): "cut off (broken pipe)",
    (_O.SEVERED, _M.REFUSED): "cut off (refused)",
    (_O.SEVERED, _M.UNREACHABLE): "cut off (unreachable)",
    (_O.SEVERED, _M.FOREIGN_RESPONDER): "taken over by somebody who is not of the workload",
    (_O.SEVERED, _M.SILENCE): "left without an answer",
    (_O.SEVERED, _M.REHOMED): "taken over by another pod",
    (_O.SEVERED, _M.NONE): "cut off, and how is not known",
    (_O.READ_TIMEOUT, _M.SILENCE): "left hanging: not closed, and never answered again",
    (_O.READ_TIMEOUT, _M.ACCEPTED_NEVER_SERVED): "accepted, and never served",
    (_O.SURVIVED, _M.NONE): "still open and answering at the end",
    (_O.NOT_MEASURED, _M.NONE): "not measured",
    (_O.NOT_MEASURED, _M.SILENCE): "not measured (unanswered for too short a time to tell)",
    (_O.NOT_MEASURED, _M.CLIENT_LIMIT): "not measured (our own machine could not send)",
    (_O.NOT_MEASURED, _M.CLIENT_STALL): "not measured (our own machine could not look)",
}


def which(number: int, of: int, what: str) -> str:
    """``The one UDP flow``, ``Both UDP flows``, ``All 10 UDP flows``, ``One of 10 UDP flows``."""
    if number < of:
        return f"{'One' if number == 1 else f'{number:,}'} of {of:,} {what}s"
    if number == 1:
        return f"The one {what}"
    return f"{'Both' if number == 2 else f'All {number:,}'} {what}s"


def joined(parts: Sequence[str]) -> str:
    """Parts of a sentence, which may have commas of their own: ``a; b and c``."""
    return " and ".join(["; ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
