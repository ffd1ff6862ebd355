"""What the agent tells its conductor: one small JSON line, however many flows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from pytest_drainwatch.flows.flow import Flow
from pytest_drainwatch.flows.ledger import QUIET_NS


class Phase(StrEnum):
    """What the agent is doing."""

    DIALLING = "dialling"
    HOLDING = "holding"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The flows of one protocol.

    ``alive`` has its first responder and has not ended; of those, ``refused`` saw an
    error since its last answer and ``quiet`` waits for a reply for over a second.
    ``on_target`` was first answered by the target (null without one).
    """

    wanted: int
    dialled: int
    answered: int
    on_target: int | None
    alive: int
    target_alive: int | None
    target_answering: int | None
    refused: int
    quiet: int
    moved: int
    ended: int
    min_answers: int


def count(
    flows: Iterable[Flow], wanted: int, target: str | None, dialling: bool, now_ns: int
) -> Counts:
    """Count flows; the only loop over all of them, so it runs a few times a second."""
    dialled = answered = on_target = alive = target_alive = target_answering = 0
    refused = quiet = moved = ended = 0
    fewest: int | None = None
    for flow in flows:
        ledger = flow.ledger
        dialled += 1
        ended += flow.ended is not None
        moved += ledger.moved
        if not ledger.answers:
            continue
        answered += 1
        on_this_target = flow.responder_uid == target
        if fewest is None or ledger.answers < fewest:
            fewest = ledger.answers
        on_target += on_this_target
        if flow.ended is not None or ledger.moved:
            continue
        alive += 1
        oldest_ns = ledger.oldest_outstanding_ns
        is_quiet = oldest_ns is not None and now_ns - oldest_ns > QUIET_NS
        is_refused = ledger.in_trouble
        quiet += is_quiet
        refused += is_refused
        target_alive += on_this_target
        target_answering += on_this_target and not is_quiet and not is_refused
    complete = not dialling and answered >= max(wanted, dialled)
    return Counts(
        wanted=wanted,
        dialled=dialled,
        answered=answered,
        on_target=None if target is None else on_target,
        alive=alive,
        target_alive=None if target is None else target_alive,
        target_answering=None if target is None else target_answering,
        refused=refused,
        quiet=quiet,
        moved=moved,
        ended=ended,
        min_answers=(fewest or 0) if complete else 0,
    )


class StatusPipe:
    """Writes status lines, and drops them rather than wait for a slow reader."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.reader_gone = False
        os.set_blocking(fd, False)

    def write(self, status: dict[str, object], *, last: bool = False) -> None:
        """One line. The last one is worth waiting for."""
        if last:
            os.set_blocking(self._fd, True)
        line = json.dumps(status, separators=(",", ":")) + "\n"
        try:
            os.write(self._fd, line.encode())  # under PIPE_BUF: all of it or nothing
        except BlockingIOError:
            pass
        except OSError:
            self.reader_gone = True


def as_json(counts: Counts | None) -> dict[str, object] | None:
    """Counts as they stand in a status line."""
    return None if counts is None else asdict(counts)
