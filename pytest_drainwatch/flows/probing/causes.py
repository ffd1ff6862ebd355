"""Whose doing an error of a socket is: the path's, the peer's, or this machine's own.

The same number means both. What comes later (an RST, an ICMP message) was said by the
path. What the first call returns was decided here, before anything was sent: a route that
this machine lacks or refuses tells nothing about the workload.
"""

from __future__ import annotations

import errno

from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows.icmp import errno_name

_BY_PEER = {
    errno_name(number): result
    for number, result in (
        (errno.ECONNREFUSED, Result.REFUSED),
        (errno.ECONNRESET, Result.RESET),
        (errno.ECONNABORTED, Result.RESET),
        (errno.EPIPE, Result.RESET),
        (errno.ETIMEDOUT, Result.TIMEOUT),
    )
}
# What Linux makes of ICMP and ICMPv6 messages other than port unreachable: no network, host,
# or protocol; administratively prohibited, a source route failed, a bad header, too big.
_BY_ICMP = {
    errno_name(number)
    for number in (
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.EHOSTDOWN,
        errno.ENONET,
        errno.ENOPROTOOPT,
        errno.EACCES,
        errno.EOPNOTSUPP,
        errno.EPROTO,
        errno.EMSGSIZE,
    )
}


def told_later(name: str) -> Result:
    """Of an error that came after something was sent; one that no path causes is our own."""
    return Result.UNREACHABLE if name in _BY_ICMP else _BY_PEER.get(name, Result.CLIENT_LIMIT)


def told_at_once(name: str) -> Result:
    """Of an error that the first call to connect or to send returned."""
    return _BY_PEER.get(name, Result.CLIENT_LIMIT)
