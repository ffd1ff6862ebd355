"""Servers that misbehave as a test tells them to."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

LOOPBACK = "127.0.0.1"
CLOCK = "11111111-2222-3333-4444-555555555555/1"
POD_A, POD_B, STRANGER = "pod-a/00000000000000aa", "pod-b/00000000000000bb", "stranger/cafe"


def pong(seq: int, responder: str = POD_A, clock: str | None = CLOCK) -> bytes:
    """A well-formed reply; the clock is another one, so its stamps need not make sense here."""
    now = time.monotonic_ns()
    tail = f" clock={clock}" if clock else ""
    return f"pong {seq} {now} {now} {responder}{tail}\n".encode()


class Peer:
    """One accepted connection, seen by a script."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock = sock
        self.number = number
        self.port: int = sock.getpeername()[1]
        self.closed_ns: tuple[int, int] | None = None  # around the call that ended it
        self._file = sock.makefile("rb")

    def request(self) -> int | None:
        """The next request's sequence number; None at the end."""
        try:
            line = self._file.readline()
        except OSError:
            return None
        return int(line.split()[1]) if line.endswith(b"\n") else None

    def serve(self, count: int, responder: str = POD_A) -> None:
        """Answer so many requests, or all that come for -1."""
        while count != 0:
            seq = self.request()
            if seq is None:
                return
            self.send(pong(seq, responder))
            count -= 1

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def half_close(self) -> None:
        self.closed_ns = self._timed(lambda: self.sock.shutdown(socket.SHUT_WR))

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._file.close()
        self.closed_ns = self._timed(self.sock.close)

    def close(self) -> None:
        self._file.close()
        self.sock.close()

    def _timed(self, call: Callable[[], object]) -> tuple[int, int]:
        before = time.monotonic_ns()
        call()
        return before, time.monotonic_ns()


class ScriptedTcp:
    """Runs ``script`` on every connection, each in a thread."""

    def __init__(self, script: Callable[[Peer], None]) -> None:
        self.peers: list[Peer] = []
        self._script = script
        self._listener = socket.create_server((LOOPBACK, 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for peer in self.peers:
            with suppress(OSError):
                peer.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                peer = Peer(sock, len(self.peers))
            except OSError:  # reset already
                sock.close()
                continue
            self.peers.append(peer)
            thread = threading.Thread(target=self._run, args=(peer,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, peer: Peer) -> None:
        try:
            self._script(peer)
        except OSError:
            pass  # the client left, which the test sees on the client's side
        finally:
            peer.close()


Datagram = Callable[[int, str], list[bytes]]


class ScriptedUdp:
    """Answers each request with what ``script(seq, peer)`` returns, in that order."""

    def __init__(self, script: Datagram) -> None:
        self._script = script
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind((LOOPBACK, 0))
        self._sock.settimeout(0.1)
        self.port: int = self._sock.getsockname()[1]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._sock.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                data, peer = self._sock.recvfrom(2048)
            except OSError:
                continue
            for reply in self._script(int(data.split()[1]), f"{peer[0]}:{peer[1]}"):
                self._sock.sendto(reply, peer)
