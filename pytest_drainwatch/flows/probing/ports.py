"""Source ports for attempts, each as long unused as can be.

A node remembers for two minutes where it sent the packets of an address and port (UDP, and
a SYN that nobody answered), and sends further ones there whatever has become of the
endpoints. The kernel picks ports at random, so one in a hundred attempts would be no new
connection to that node. Going around the whole range takes longer than the node's memory,
at up to 200 attempts a second.
"""

from __future__ import annotations

import errno
import os
import socket
from itertools import accumulate

from pytest_drainwatch.flows.limits import port_range

MOST_TRIES = 64  # ports in a row that somebody else holds
# Whoever closes first holds its port for a minute (TIME_WAIT), so the client of a trial before
# may have left a block of thousands: longer and longer leaps get over it.
LEAPS = (64, 128, 256, 512, *[1024] * 63)
_BY_THEN = tuple(MOST_TRIES + total for total in accumulate(LEAPS))


class SourcePorts:
    """Goes around the range of ports that the kernel picks from."""

    def __init__(self) -> None:
        found = port_range()
        self._known = found is not None
        self._low, high = found or (0, 0)
        self._count = high - self._low + 1
        steps = [1] * min(MOST_TRIES, self._count)
        # Once around at most.
        steps += [
            leap for leap, so_far in zip(LEAPS, _BY_THEN, strict=True) if so_far <= self._count
        ]
        self._steps = tuple(steps)
        # Not where the agent before this one began.
        self._next = int.from_bytes(os.urandom(4)) % self._count
        self._had = self._held = 0  # ports that were bound, and that somebody else had

    def bind(self, sock: socket.socket, address: str) -> None:
        """Bind to the next port that is free. Raises :class:`OSError` if none is."""
        for left, step in zip(reversed(range(len(self._steps))), self._steps, strict=True):
            port = self._low + self._next
            try:
                sock.bind((address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                self._held += step  # what a leap skips is not used either
                self._next = (self._next + step) % self._count
                if not left:
                    raise
            else:
                self._had += 1
                self._next = (self._next + 1) % self._count
                return

    def round_ns(self, interval_ns: int) -> int | None:
        """How long until a port is used again, one every ``interval_ns``; None: unknown.

        Ports that somebody else holds make a round shorter.
        """
        if not self._known or not self._had:
            return None
        passed = self._had + self._held
        if passed < self._count:  # not even once around: the rest is free as far as we know
            return (self._count - self._held) * interval_ns
        return self._count * interval_ns * self._had // passed
