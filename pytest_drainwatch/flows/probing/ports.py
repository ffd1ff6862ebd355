"""Source ports for UDP attempts, each as long unused as can be.

A node remembers for two minutes where it sent the datagrams of an address and port, and
sends further ones there whatever has become of the endpoints. The kernel picks ports at
random, so one in a hundred attempts would be no new connection to that node. Going
around the whole range takes longer than the node's memory, at up to 200 attempts a second.
"""

from __future__ import annotations

import errno
import os
import socket

from pytest_drainwatch.flows.limits import port_range

MOST_TRIES = 64  # ports in a row that somebody else holds


class SourcePorts:
    """Goes around the range of ports that the kernel picks from."""

    def __init__(self) -> None:
        found = port_range()
        self._low, high = found or (0, 0)
        self._count = high - self._low + 1
        # Not where the agent before this one began.
        self._next = int.from_bytes(os.urandom(4)) % self._count

    def bind(self, sock: socket.socket, address: str) -> None:
        """Bind to the next port that is free. Raises :class:`OSError` if none is."""
        tries = min(MOST_TRIES, self._count)
        for left in reversed(range(tries)):
            port = self._low + self._next
            self._next = (self._next + 1) % self._count
            try:
                sock.bind((address, port))
                return
            except OSError as error:
                if error.errno != errno.EADDRINUSE or not left:
                    raise
