"""What a client of HTTP writes down of a request: facts, which ``fate`` judges."""

from __future__ import annotations

from enum import StrEnum


class LaneKind(StrEnum):
    """How a lane asks; see :class:`~pytest_drainwatch.core.scenario.http.Http`."""

    KEEPALIVE = "keepalive"
    IDLE = "idle"
    IN_FLIGHT = "in-flight"
    NEW = "new"


class Ending(StrEnum):
    """With what a request ended."""

    RESPONSE = "response"  # all of a response was read
    FIN = "fin"  # the peer closed before that
    RST = "rst"
    READ_ERROR = "read-error"  # the kernel gave the connection up, or was told to
    NOT_HTTP = "not-http"  # what came is no HTTP/1.1
    TIMEOUT = "timeout"  # connected, and no whole response in time
    REFUSED = "refused"  # the connection was; so here and below nothing was written
    UNREACHABLE = "unreachable"  # an ICMP message said so
    CONNECT_TIMEOUT = "connect-timeout"
    CLIENT_LIMIT = "client-limit"  # our own ports, descriptors or memory ran out, or no route
    UNFINISHED = "unfinished"  # the client stopped before it was known
    NOT_SENT = "not-sent"  # planned, and the client stopped before it was due


class Pool(StrEnum):
    """What had become of the lane's pooled connection when its request was due.

    All but the first: a new connection was dialled for it.
    """

    REUSED = "reused"  # it was open, and nothing had been read on it
    EMPTY = "empty"  # there was none yet, or the client had closed it
    ANNOUNCED = "announced"  # the last response on it said Connection: close
    FIN = "fin"  # the peer had closed it, and we had read that before a byte was written
    RST = "rst"  # the same with a reset, or the kernel took no byte because of one
    UNASKED = "unasked"  # the peer had sent something that nobody had asked for


class Over(StrEnum):
    """How a connection ended."""

    FIN = "fin"
    RST = "rst"
    READ_ERROR = "read-error"
    CLIENT = "client"  # we closed it: after a timeout, or because it was of no more use
    OPEN = "open"  # it was open when the client stopped
