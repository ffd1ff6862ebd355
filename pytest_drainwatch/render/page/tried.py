"""What new connections and HTTP requests met, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.http.document import KindRequests
from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.http.fate import FAILED as BROKEN
from pytest_drainwatch.core.http.fate import Fate
from pytest_drainwatch.core.probing.document import FAILED, NewConnections
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.render.page import prose
from pytest_drainwatch.render.page.failing import KINDS, named, sentence
from pytest_drainwatch.render.page.moments import within
from pytest_drainwatch.render.page.pods import BYSTANDER, NEWCOMER, TARGET, Pods
from pytest_drainwatch.render.page.words import joined

_BROKEN: dict[str, str] = {
    Fate.WRITTEN_THEN_RESET: "sent, then reset",
    Fate.WRITTEN_THEN_CLOSED: "sent, then closed",
    Fate.RESET_AT_CONNECT: "reset while connecting",
    Fate.CONNECT_TIMEOUT: "timed out while connecting",
    Fate.TIMEOUT: "timed out",
    Fate.SERVER_ERROR: "answered with a server error (5xx)",
    Fate.UNEXPECTED_STATUS: "answered with another status",
    Fate.NOT_HTTP: "answered with something that is not HTTP",
}
RESULTS: dict[str, str] = {
    Result.REFUSED: "refused",
    Result.RESET: "reset",
    Result.TIMEOUT: "without an answer",
    Result.NEVER_SERVED: "accepted and never served",
    Result.UNREACHABLE: "unreachable",
    Result.FOREIGN: "answered by a stranger",
}


def new_connections(trial: TrialReport, pods: Pods) -> str:
    """Each prober's; empty if none were tried."""
    return " ".join(_tried(prober, trial, pods) for prober in trial.new_connections)


def _tried(prober: NewConnections, trial: TrialReport, pods: Pods) -> str:
    what = named(prober, trial.new_connections)
    if not prober.attempts:
        return ""
    if prober.observed_failing is None:
        return f"None of {prober.attempts:,} {what} failed."
    how = _how({RESULTS.get(word, word): n for word, n in prober.results.items() if word in FAILED})
    text = f"{sentence(prober, trial.new_connections, f' ({how})')}."
    return " ".join(filter(None, [text, _meanwhile(trial, pods)]))


def _meanwhile(trial: TrialReport, pods: Pods) -> str:
    """What the pods said of themselves then: facts, from which a reader concludes."""
    targets, newcomers = pods.of_role(TARGET), pods.of_role(NEWCOMER)
    if len(targets) != 1:
        return ""
    parts = []
    label = pods.label(targets[0])
    for event, words in (("stopped_accepting", "stopped accepting"), ("exiting", "exited")):
        entry = next(
            (e for e in trial.timeline if e.event == event and e.subject == targets[0]), None
        )
        if entry is not None:
            parts.append(f"{label} {words} {prose.at(entry.t_ns)}")
            break
    ready = [
        (e.t_ns[1], uid)
        for uid in newcomers
        for e in trial.timeline
        if e.event == "endpointslice_ready_true" and e.subject == uid
    ]
    if ready and not pods.of_role(BYSTANDER):
        by_ns, uid = min(ready)
        parts.append(
            f"{pods.label(uid)}, its replacement, was ready by {prose.near((by_ns, by_ns))}"
        )
    elif not newcomers:
        others = len(pods.of_role(BYSTANDER))
        parts.append(_there(others))
    text = joined(parts) if parts else ""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _there(others: int) -> str:
    if not others:
        return "no other pod was there"
    return "another pod was there" if others == 1 else f"{others} other pods were there"


def requests(trial: TrialReport) -> str:
    """Each kind's; empty if none were made."""
    if trial.requests is None:
        return ""
    return " ".join(filter(None, (_asked(kind) for kind in trial.requests.kinds)))


def _asked(kind: KindRequests) -> str:
    what = KINDS[kind.kind]
    if not kind.attempts:
        return ""
    if kind.failing is None:
        return f"None of {kind.attempts:,} {what} failed."
    how = _how({_BROKEN.get(word, word): n for word, n in kind.fates.items() if word in BROKEN})
    text = f"{kind.failed:,} of {kind.attempts:,} {what} failed ({how})"
    if kind.kind is LaneKind.IN_FLIGHT or kind.failed == 1:
        whole = within([kind.failing.first_ns, kind.failing.last_ns])
        return f"{text}, {prose.at(whole or kind.failing.first_ns)}."
    return (
        f"{text}, from {prose.near(kind.failing.first_ns)} to {prose.near(kind.failing.last_ns)}."
    )


def _how(counts: Mapping[str, int]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{number:,} {word}" for word, number in counts.items())
