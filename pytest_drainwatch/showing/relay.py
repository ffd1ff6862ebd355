"""From the workers of xdist to their controller's terminal: small messages while they measure.

xdist brings reports and nothing else, so workers send datagrams to a socket of the
controller's. It has a name and no file, so nothing is left of it; where there can be none
(another machine, another system) the run is silent until a test ends, as xdist's runs are.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

MOST = 4096  # bytes of a message
PATIENCE_S = 0.2  # for a controller that does not read: a measurement must not wait for it


class Kind(StrEnum):
    """What a message is about."""

    LINE = "line"  # to be read by a person, whatever comes next
    STATUS = "status"  # takes the place of the worker's last one


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a worker has to say; ``text`` is one line."""

    worker: str
    kind: Kind
    text: str


class Sender:
    """A worker's end. Nothing that goes wrong here is anybody's failure."""

    def __init__(self, name: str, worker: str) -> None:
        self._worker = worker
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(PATIENCE_S)
        self._address = "\0" + name

    def __call__(self, kind: Kind, text: str) -> None:
        """Send, or give up."""
        told = {"worker": self._worker, "kind": kind, "text": text[: MOST // 8]}
        with suppress(OSError):
            self._socket.sendto(json.dumps(told).encode(), self._address)

    def close(self) -> None:
        """Send no more."""
        self._socket.close()


class Receiver:
    """The controller's end: hands each message over, in a thread of its own.

    Raises OSError where there are no such sockets.
    """

    def __init__(self, deliver: Callable[[Message], None]) -> None:
        self.name = f"drainwatch-{os.getpid()}-{secrets.token_hex(8)}"
        self._deliver = deliver
        self._closing = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.bind("\0" + self.name)
        except OSError:
            self._socket.close()
            raise
        self._thread = threading.Thread(target=self._receive, name="drainwatch-relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hand over what has been sent so far, and no more."""
        self._closing = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread once it has read all
        self._thread.join(timeout=1)
        self._socket.close()

    def _receive(self) -> None:
        while True:
            try:
                raw = self._socket.recv(MOST)
            except OSError:
                return
            if not raw and self._closing:
                return
            message = read(raw)
            if message is not None:
                self._deliver(message)


def read(raw: bytes) -> Message | None:
    """A message, if it is one: whoever finds the socket's name can write to it."""
    try:
        told = json.loads(raw)
        worker, kind, text = str(told["worker"]), Kind(told["kind"]), str(told["text"])
    except Exception:  # RecursionError too: whatever it is, it must not end the relay
        return None
    return Message(worker=_plain(worker)[:20], kind=kind, text=_plain(text))


def _plain(text: str) -> str:
    """Without what a terminal would take for a command."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
