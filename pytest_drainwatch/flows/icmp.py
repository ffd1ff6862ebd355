"""ICMP errors of a UDP socket, from its error queue.

A connected socket alone reports port unreachable at most; with ``IP_RECVERR`` the
kernel queues every ICMP error with type and code, and quotes the datagram it is
about (FACTS K18).
"""

from __future__ import annotations

import errno as errno_names
import socket
import struct
from dataclasses import dataclass

IP_RECVERR, IPV6_RECVERR = 11, 25
_EXTENDED_ERR = struct.Struct("=IBBBBII")  # struct sock_extended_err
_ORIGINS = {1: "local", 2: "icmp", 3: "icmp6"}
_SOCKADDR_IN, _SOCKADDR_IN6 = struct.Struct("=HH4s"), struct.Struct("=HHI16s")


@dataclass(frozen=True, slots=True, kw_only=True)
class IcmpError:
    """One entry of the error queue; ``quoted`` is the datagram that caused it."""

    type: int
    code: int
    errno: str
    origin: str
    offender: str | None
    quoted: bytes


def enable(sock: socket.socket) -> None:
    """Let the kernel queue ICMP errors for ``sock``."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)


def read_one(sock: socket.socket) -> IcmpError | None:
    """The next queued error, or None."""
    try:
        quoted, ancillary, _, _ = sock.recvmsg(2048, 512, socket.MSG_ERRQUEUE)
    except BlockingIOError:
        return None
    for level, kind, data in ancillary:
        if (level, kind) in (
            (socket.IPPROTO_IP, IP_RECVERR),
            (socket.IPPROTO_IPV6, IPV6_RECVERR),
        ):
            return _decode(data, quoted)
    return None


def errno_name(number: int | None) -> str:
    """``ECONNRESET`` for 104."""
    return errno_names.errorcode.get(number or 0, f"errno {number}")


def _decode(data: bytes, quoted: bytes) -> IcmpError:
    number, origin, kind, code, _, _, _ = _EXTENDED_ERR.unpack_from(data)
    return IcmpError(
        type=kind,
        code=code,
        errno=errno_name(number),
        origin=_ORIGINS.get(origin, str(origin)),
        offender=_offender(data[_EXTENDED_ERR.size :]),
        quoted=quoted,
    )


def _offender(data: bytes) -> str | None:
    family = int.from_bytes(data[:2], "little" if struct.pack("=H", 1)[0] else "big")
    if family == socket.AF_INET and len(data) >= _SOCKADDR_IN.size:
        return socket.inet_ntop(socket.AF_INET, _SOCKADDR_IN.unpack_from(data)[2])
    if family == socket.AF_INET6 and len(data) >= _SOCKADDR_IN6.size:
        return socket.inet_ntop(socket.AF_INET6, _SOCKADDR_IN6.unpack_from(data)[3])
    return None
