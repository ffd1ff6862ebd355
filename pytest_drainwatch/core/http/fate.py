"""What a request's facts mean: one table from its ending to its fate.

Rules for editors: the table is total, and each fate is in exactly one of the sets below.
"Retry-safe" is what a client library may do without asking: nothing had been written, or the
method is idempotent (RFC 9110, section 9.2.2) and nothing of a response had come.
"""

from __future__ import annotations

from enum import StrEnum

from pytest_drainwatch.core.http.ending import Ending, Pool


class Fate(StrEnum):
    """What became of a request. Closed."""

    SERVED = "served"
    # The pooled connection was found closed before a byte was written; a new one served.
    CLOSED_BEFORE_WRITE = "closed-before-write"
    WRITTEN_THEN_RESET = "written-then-reset"
    WRITTEN_THEN_CLOSED = "written-then-closed"
    RESET_AT_CONNECT = "reset-at-connect"  # a new connection ended before a byte was written
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    CONNECT_TIMEOUT = "connect-timeout"
    TIMEOUT = "timeout"
    SERVER_ERROR = "server-error"  # 5xx
    UNEXPECTED_STATUS = "unexpected-status"
    NOT_HTTP = "not-http"
    NOT_SENT = "not-sent"  # and the client's own below
    CLIENT_LIMIT = "client-limit"
    UNFINISHED = "unfinished"  # nobody knows, here and below
    CLIENT_STALL = "client-stall"  # unanswered, and we could not look for much of that time


SERVED = frozenset({Fate.SERVED, Fate.CLOSED_BEFORE_WRITE})
FAILED = frozenset(
    {
        Fate.WRITTEN_THEN_RESET,
        Fate.WRITTEN_THEN_CLOSED,
        Fate.RESET_AT_CONNECT,
        Fate.REFUSED,
        Fate.UNREACHABLE,
        Fate.CONNECT_TIMEOUT,
        Fate.TIMEOUT,
        Fate.SERVER_ERROR,
        Fate.UNEXPECTED_STATUS,
        Fate.NOT_HTTP,
    }
)
OURS = frozenset({Fate.NOT_SENT, Fate.CLIENT_LIMIT})  # the workload never met them
UNKNOWN = frozenset({Fate.UNFINISHED, Fate.CLIENT_STALL})

# Silence: what a client that cannot look sees of a healthy workload too.
SILENT = frozenset({Ending.TIMEOUT, Ending.CONNECT_TIMEOUT})
# The pooled connection had gone before the request was written: the client dials again.
GONE = frozenset({Pool.FIN, Pool.RST, Pool.UNASKED})

_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_WRITTEN = {
    Ending.FIN: Fate.WRITTEN_THEN_CLOSED,
    Ending.RST: Fate.WRITTEN_THEN_RESET,
}
_ALWAYS = {
    Ending.READ_ERROR: Fate.TIMEOUT,
    Ending.NOT_HTTP: Fate.NOT_HTTP,
    Ending.TIMEOUT: Fate.TIMEOUT,
    Ending.REFUSED: Fate.REFUSED,
    Ending.UNREACHABLE: Fate.UNREACHABLE,
    Ending.CONNECT_TIMEOUT: Fate.CONNECT_TIMEOUT,
    Ending.CLIENT_LIMIT: Fate.CLIENT_LIMIT,
    Ending.UNFINISHED: Fate.UNFINISHED,
    Ending.NOT_SENT: Fate.NOT_SENT,
}
_NOTHING_WRITTEN = frozenset(
    {
        Fate.CLOSED_BEFORE_WRITE,
        Fate.RESET_AT_CONNECT,
        Fate.REFUSED,
        Fate.UNREACHABLE,
        Fate.CONNECT_TIMEOUT,
    }
)
_NO_RESPONSE = frozenset({Fate.WRITTEN_THEN_RESET, Fate.WRITTEN_THEN_CLOSED, Fate.TIMEOUT})


def fate(ended: Ending, *, pool: Pool, status: int | None, expected: int, written: bool) -> Fate:
    """The fate of a request that ended so; of a stall of ours nothing is known here."""
    if ended is Ending.RESPONSE:
        if status == expected:
            return Fate.CLOSED_BEFORE_WRITE if pool in GONE else Fate.SERVED
        if status is not None and status >= 500:
            return Fate.SERVER_ERROR
        return Fate.UNEXPECTED_STATUS
    if ended in _WRITTEN:
        return _WRITTEN[ended] if written else Fate.RESET_AT_CONNECT
    return _ALWAYS[ended]


def retry_safe(what: Fate, *, method: str, received: bool) -> bool | None:
    """Whether a client may repeat it unasked; None where the question makes no sense."""
    if what in _NOTHING_WRITTEN:
        return True
    if what in _NO_RESPONSE:
        return method in _IDEMPOTENT and not received
    return False if what in FAILED else None
