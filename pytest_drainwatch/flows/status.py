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


class Census:
    """Counts the flows of one protocol, some at a time: all of ten thousand in one turn of
    the loop would be a stall.
    """

    def __init__(self, target: str | None) -> None:
        self._target = target
        self._dialled = self._answered = self._on_target = self._alive = 0
        self._target_alive = self._target_answering = 0
        self._refused = self._quiet = self._moved = self._ended = 0
        self._fewest: int | None = None

    def add(self, flows: Iterable[Flow], now_ns: int) -> None:
        """Count these as they stand."""
        for flow in flows:
            ledger = flow.ledger
            self._dialled += 1
            self._ended += flow.ended is not None
            self._moved += ledger.moved
            if flow.held:  # nobody is asked anything: it is as good as answered until it ends
                self._answered += 1
                self._alive += flow.ended is None
                continue
            if not ledger.answers:
                continue
            self._answered += 1
            on_this_target = flow.responder_uid == self._target
            if self._fewest is None or ledger.answers < self._fewest:
                self._fewest = ledger.answers
            self._on_target += on_this_target
            if flow.ended is not None or ledger.moved:
                continue
            self._alive += 1
            oldest_ns = ledger.oldest_outstanding_ns
            is_quiet = oldest_ns is not None and now_ns - oldest_ns > QUIET_NS
            is_refused = ledger.in_trouble
            self._quiet += is_quiet
            self._refused += is_refused
            self._target_alive += on_this_target
            self._target_answering += on_this_target and not is_quiet and not is_refused

    def counts(self, wanted: int, *, dialling: bool) -> Counts:
        """What was counted, of ``wanted`` flows."""
        targeted = self._target is not None
        complete = not dialling and self._answered >= max(wanted, self._dialled)
        return Counts(
            wanted=wanted,
            dialled=self._dialled,
            answered=self._answered,
            on_target=self._on_target if targeted else None,
            alive=self._alive,
            target_alive=self._target_alive if targeted else None,
            target_answering=self._target_answering if targeted else None,
            refused=self._refused,
            quiet=self._quiet,
            moved=self._moved,
            ended=self._ended,
            min_answers=(self._fewest or 0) if complete else 0,
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


def as_json(counts: Counts) -> dict[str, object]:
    """Counts as they stand in a status line."""
    return asdict(counts)
