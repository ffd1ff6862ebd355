"""Attempts at a workload of the user's: connect, say what one is told to, see an answer.

Who answers does not say who he is. Where nothing is to be said, to be accepted is the answer.
"""

from __future__ import annotations

import re
from time import monotonic_ns

from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows.plain import BUFFER_LIMIT, Exchange, seq_of
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.probing.ports import SourcePorts
from pytest_drainwatch.flows.probing.tcp import TcpAttempt
from pytest_drainwatch.flows.probing.udp import UdpAttempt


class PlainTcpAttempt(TcpAttempt):
    """A new connection, and perhaps one request over it."""

    __slots__ = ("_exchange", "_pattern")

    def __init__(self, config: ProberConfig, slot: int, ports: SourcePorts, every: int = 1) -> None:
        super().__init__(config, slot, ports, every)
        self._exchange, self._pattern = _exchange(config)

    def _question(self) -> bytes:
        return self._exchange.request(self._seq)

    def _accepted(self) -> None:
        if self._exchange.send is None:
            self._settle(Result.ANSWERED, monotonic_ns())
        else:
            super()._accepted()

    def _take(self, received: bytes, at_ns: int, *, ended: bool) -> None:
        pattern = self._pattern
        if received and (pattern is None or pattern.search(received)):
            self._settle(Result.ANSWERED, at_ns)
        elif ended:
            self._settle(self._unserved(), at_ns)
        elif len(received) > BUFFER_LIMIT:
            self._received = received[-BUFFER_LIMIT:]

    def _unserved(self) -> Result:
        return Result.NEVER_SERVED  # what else it may say is no business of ours


class PlainUdpAttempt(UdpAttempt):
    """One datagram from a socket of its own."""

    __slots__ = ("_exchange", "_pattern")

    def __init__(self, config: ProberConfig, slot: int, ports: SourcePorts, every: int = 1) -> None:
        super().__init__(config, slot, ports, every)
        self._exchange, self._pattern = _exchange(config)

    def _question(self) -> bytes:
        return self._exchange.request(self._seq)

    def _take(self, data: bytes, at_ns: int) -> None:
        if seq_of(self._pattern, data, self._seq) == self._seq:
            self._settle(Result.ANSWERED, at_ns)


def _exchange(config: ProberConfig) -> tuple[Exchange, re.Pattern[bytes] | None]:
    assert config.exchange is not None, "the prober chooses these attempts where it has one"
    return config.exchange, config.exchange.pattern
