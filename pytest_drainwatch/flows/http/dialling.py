"""A new connection's socket, and what the errors of dialling mean."""

from __future__ import annotations

import socket

from pytest_drainwatch.core.http.ending import Ending
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows.http.config import HttpConfig
from pytest_drainwatch.flows.probing import causes
from pytest_drainwatch.flows.probing.ports import SourcePorts

_ENDINGS = {
    Result.REFUSED: Ending.REFUSED,
    Result.RESET: Ending.RST,
    Result.TIMEOUT: Ending.CONNECT_TIMEOUT,
    Result.UNREACHABLE: Ending.UNREACHABLE,
    Result.CLIENT_LIMIT: Ending.CLIENT_LIMIT,
}


def new_socket(config: HttpConfig) -> socket.socket:
    """One that is not bound yet. Raises :class:`OSError`: descriptors may have run out."""
    family = socket.AF_INET6 if ":" in config.address else socket.AF_INET
    return socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)


def begin(sock: socket.socket, config: HttpConfig, ports: SourcePorts) -> int:
    """Begin to connect from a port of its own; returns errno. Raises :class:`OSError`."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ports.bind(sock, config.source_address or "")
    return sock.connect_ex((config.address, config.port))


def refused_at_once(name: str) -> Ending:
    """Of an error that the first call returned."""
    return _ENDINGS[causes.told_at_once(name)]


def refused_later(name: str) -> Ending:
    """Of an error that came after a SYN was sent."""
    return _ENDINGS[causes.told_later(name)]


def shown(sock: socket.socket) -> str:
    """Its own address and port."""
    address, port = sock.getsockname()[:2]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
