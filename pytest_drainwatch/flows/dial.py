"""Opening connections, patiently: kube-proxy may be a second behind the API."""

from __future__ import annotations

import asyncio
import errno
import socket
from dataclasses import dataclass, field
from time import monotonic_ns

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.flows import icmp
from pytest_drainwatch.flows.errors import ClientLimit

ATTEMPT_NS = 3 * NS_PER_S
PAUSES_S = (0.05, 0.075, 0.1, 0.15, 0.2, 0.25)
IP_BIND_ADDRESS_NO_PORT = 24
_LIMITS = {
    errno.EMFILE: "descriptors of this process (EMFILE)",
    errno.ENFILE: "descriptors of this host (ENFILE)",
    errno.EADDRNOTAVAIL: "source addresses or ports (EADDRNOTAVAIL)",
    errno.ENOBUFS: "socket buffers (ENOBUFS)",
    errno.ENOMEM: "memory (ENOMEM)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialled:
    """An open socket, the attempt that opened it, and those that failed before."""

    sock: socket.socket
    at: Interval
    attempts: int
    failed: dict[str, int] = field(default_factory=dict)


class DialFailed(Exception):
    """No attempt succeeded in time."""

    def __init__(self, at: Interval, attempts: int, failed: dict[str, int], last: str) -> None:
        super().__init__(f"{attempts} attempts failed, the last with {last}")
        self.at = at
        self.attempts = attempts
        self.failed = failed
        self.last = last


async def dial(
    loop: asyncio.AbstractEventLoop,
    kind: socket.SocketKind,
    remote: tuple[str, int],
    source: str | None,
    deadline_ns: int,
) -> Dialled:
    """Open a socket to ``remote``, retrying until ``deadline_ns``.

    Raises :class:`DialFailed`, or :class:`ClientLimit` when the fault is ours.
    """
    begun_ns = monotonic_ns()
    attempts, failed = 0, dict[str, int]()
    while True:
        attempts += 1
        lo_ns = monotonic_ns()
        try:
            sock = await _attempt(loop, kind, remote, source, deadline_ns)
        except OSError as error:
            if error.errno in _LIMITS:
                raise _limit(error, remote, source) from error
            # Our own patience with one attempt ends with a TimeoutError without errno.
            last = "ETIMEDOUT" if error.errno is None else icmp.errno_name(error.errno)
        else:
            at = Interval(lo_ns, monotonic_ns())
            return Dialled(sock=sock, at=at, attempts=attempts, failed=failed)
        failed[last] = failed.get(last, 0) + 1
        pause_s = PAUSES_S[min(attempts, len(PAUSES_S)) - 1]
        now_ns = monotonic_ns()
        if now_ns + pause_s * NS_PER_S >= deadline_ns:
            raise DialFailed(Interval(begun_ns, now_ns), attempts, failed, last)
        await asyncio.sleep(pause_s)


async def _attempt(
    loop: asyncio.AbstractEventLoop,
    kind: socket.SocketKind,
    remote: tuple[str, int],
    source: str | None,
    deadline_ns: int,
) -> socket.socket:
    family = socket.AF_INET6 if ":" in remote[0] else socket.AF_INET
    sock = socket.socket(family, kind)
    try:
        sock.setblocking(False)
        if kind is socket.SOCK_STREAM:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            icmp.enable(sock)
        if source is not None:
            # Let connect choose the port: it may be shared with other destinations.
            sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            sock.bind((source, 0))
        left_ns = max(0, deadline_ns - monotonic_ns())
        async with asyncio.timeout(min(ATTEMPT_NS, left_ns) / NS_PER_S):
            await loop.sock_connect(sock, remote)
        if sock.getsockname() == sock.getpeername():
            # Nobody listens there and the kernel gave us that very port.
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connected to itself")
    except BaseException:
        sock.close()
        raise
    return sock


def _limit(error: OSError, remote: tuple[str, int], source: str | None) -> ClientLimit:
    return ClientLimit(
        f"opening a flow to {remote[0]} port {remote[1]} from {source or 'any address'} "
        f"ran out of {_LIMITS[error.errno or 0]}",
        "as many as the flows asked for",
        "ask for fewer flows, or raise that limit",
    )
