"""Reads what ``tcpdump --time-stamp-precision=nano -w`` writes: IPv4 headers and payloads.

Only what judging the ends of flows needs; anything else is passed over.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pytest_drainwatch.core.interval import NS_PER_S

FIN, RST = 1, 4
ICMP_ERRORS = frozenset({3, 11, 12})  # unreachable, time exceeded, parameter problem

_NANO_MAGIC = 0xA1B23C4D
_ETHERNET, _RAW, _SLL, _SLL2 = 1, 101, 113, 276
_IPV4 = 0x0800


class PcapError(ValueError):
    """Not a capture that this reader understands; says where and what was expected."""


class Kind(StrEnum):
    """What a packet carries."""

    TCP = "tcp"
    UDP = "udp"
    ICMP = "icmp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """One IPv4 packet.

    ``at_ns`` is its stamp, CLOCK_REALTIME. Of an ICMP error ``source`` and
    ``destination`` are those of the datagram that it quotes: the client is the source.
    ``ident`` is the IP header's and passes address translation unchanged.
    """

    at_ns: int
    kind: Kind
    source: tuple[str, int]
    destination: tuple[str, int]
    ident: int
    flags: int = 0
    payload: bytes = b""


def read(path: Path) -> Iterator[Packet]:
    """The IPv4 packets of a capture, in its order. Raises :class:`PcapError`."""
    data = path.read_bytes()
    order = _byte_order(data, path)
    link = struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF
    record = struct.Struct(f"{order}IIII")
    at = 24
    while at < len(data):
        if at + record.size > len(data):
            raise PcapError(f"{path}: torn at byte {at}; expected tcpdump to have ended by itself")
        seconds, nanos, length, _ = record.unpack_from(data, at)
        at += record.size
        if at + length > len(data):
            raise PcapError(f"{path}: torn at byte {at}; expected tcpdump to have ended by itself")
        packet = _packet(seconds * NS_PER_S + nanos, _network_layer(link, data[at : at + length]))
        at += length
        if packet is not None:
            yield packet


def _byte_order(data: bytes, path: Path) -> str:
    for order in "<>":
        if len(data) >= 24 and struct.unpack_from(f"{order}I", data)[0] == _NANO_MAGIC:
            return order
    raise PcapError(
        f"{path} starts with {data[:4].hex() or 'nothing'}; expected a capture with nanosecond "
        "stamps (tcpdump --time-stamp-precision=nano)"
    )


def _network_layer(link: int, frame: bytes) -> bytes:
    """The IPv4 packet of a frame, or nothing."""
    if link == _RAW:
        return frame
    if link == _ETHERNET:
        protocol, header = frame[12:14], 14
    elif link == _SLL2:
        protocol, header = frame[0:2], 20
    elif link == _SLL:
        protocol, header = frame[14:16], 16
    else:
        raise PcapError(f"link type {link}; expected Ethernet, raw IP or Linux cooked capture")
    return frame[header:] if int.from_bytes(protocol) == _IPV4 else b""


def _packet(at_ns: int, data: bytes) -> Packet | None:
    if len(data) < 20 or data[0] >> 4 != 4:
        return None
    header = (data[0] & 15) * 4
    if int.from_bytes(data[6:8]) & 0x1FFF:
        return None  # a later fragment has no ports
    protocol, body = data[9], data[header : int.from_bytes(data[2:4])]
    source, destination = socket.inet_ntoa(data[12:16]), socket.inet_ntoa(data[16:20])
    if protocol == socket.IPPROTO_ICMP:
        if len(body) < 8 or body[0] not in ICMP_ERRORS:
            return None
        quoted = _packet(at_ns, body[8:] + b"\0" * 20)  # ports alone are surely quoted
        if quoted is None:
            return None
        return Packet(
            at_ns=at_ns,
            kind=Kind.ICMP,
            source=quoted.source,
            destination=quoted.destination,
            ident=quoted.ident,
        )
    if protocol not in (socket.IPPROTO_TCP, socket.IPPROTO_UDP) or len(body) < 8:
        return None
    from_port, to_port = struct.unpack_from("!HH", body)
    tcp = protocol == socket.IPPROTO_TCP
    return Packet(
        at_ns=at_ns,
        kind=Kind.TCP if tcp else Kind.UDP,
        source=(source, from_port),
        destination=(destination, to_port),
        ident=int.from_bytes(data[4:6]),
        flags=body[13] if tcp and len(body) > 13 else 0,
        payload=b"" if tcp else body[8:],
    )
