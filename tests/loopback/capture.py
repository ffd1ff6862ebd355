"""A packet capture of one interface: what truly happened, and when.

With a raw socket of its own, so that loopback tests need no tcpdump. The kernel stamps
packets with CLOCK_REALTIME; a pair of both clocks, read when one arrives, brings the
stamp onto CLOCK_MONOTONIC.
"""

from __future__ import annotations

import socket
import struct
import threading
from dataclasses import dataclass

from bench.pcap import FIN, RST
from bench.wallclock import read_pair
from pytest_drainwatch.core.interval import NS_PER_S, Interval

ETH_P_ALL = 3
SO_TIMESTAMPNS = 35
PACKET_OUTGOING = 4
_TIMESPEC = struct.Struct("qq")


@dataclass(frozen=True, slots=True)
class Packet:
    """A TCP segment or ICMP error, by the client port that it concerns."""

    kind: str  # "fin", "rst", "icmp"
    client_port: int
    at: Interval  # CLOCK_MONOTONIC


class Capture:
    """Captures IPv4 on ``interface`` until closed. Raises PermissionError without the right."""

    def __init__(self, interface: str, server_port: int) -> None:
        self.packets: list[Packet] = []
        self._port = server_port
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self._sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self._sock.bind((interface, ETH_P_ALL))
        self._sock.settimeout(0.1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Read what is left, and stop."""
        self._stop.set()
        self._thread.join()
        self._sock.close()

    def _run(self) -> None:
        while True:
            try:
                data, ancillary, _, address = self._sock.recvmsg(256, 64)
            except TimeoutError:
                if self._stop.is_set():
                    return
                continue
            # On loopback a packet passes twice; leaving is the earlier one.
            if address[2] != PACKET_OUTGOING:
                continue
            found = _parse(data, self._port)
            if found:
                seconds, nanos = _TIMESPEC.unpack_from(ancillary[0][2])
                offset = read_pair().offset
                real = Interval.point(seconds * NS_PER_S + nanos)
                self.packets.append(Packet(*found, at=real - offset))


def _parse(data: bytes, server_port: int) -> tuple[str, int] | None:
    if len(data) < 28 or data[0] >> 4 != 4:
        return None
    header = (data[0] & 15) * 4
    if data[9] == socket.IPPROTO_TCP:
        source, destination = struct.unpack_from("!HH", data, header)
        flags = data[header + 13]
        if source == server_port and flags & (FIN | RST):
            return ("rst" if flags & RST else "fin"), destination
    if data[9] == socket.IPPROTO_ICMP and data[header] == 3:
        inner = header + 8
        inner_header = (data[inner] & 15) * 4
        source, destination = struct.unpack_from("!HH", data, inner + inner_header)
        if destination == server_port:
            return "icmp", source
    return None
