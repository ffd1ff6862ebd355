"""``drainwatch client http://HOST:PORT/path``: lanes by hand, and what became of their requests."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from urllib.parse import urlsplit

from pytest_drainwatch.core.http.document import KindRequests
from pytest_drainwatch.core.http.judge import requests
from pytest_drainwatch.core.interval import NS_PER_S, Bounds
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.probing.pieces import Surroundings
from pytest_drainwatch.core.stall import stalls_of


class BadUrl(ValueError):
    """What was given is no URL that can be asked; says what was expected."""


def add_options(client: argparse.ArgumentParser) -> None:
    """The options of lanes."""
    group = client.add_argument_group("with http://HOST:PORT/path as the host")
    group.add_argument("--keepalive", type=int, default=5, metavar="N", help="lanes that pool")
    group.add_argument("--new", type=int, default=1, metavar="N", help="lanes that do not")
    group.add_argument("--rate", type=int, default=10, metavar="HZ", help="requests of a lane")
    group.add_argument("--method", default="GET", help="GET | HEAD | POST (empty)")
    group.add_argument("--expect-status", type=int, default=200, metavar="STATUS")
    group.add_argument(
        "--identity-header", metavar="NAME", help="the header that names who answers"
    )


def is_url(host: str) -> bool:
    """Whether that is a URL, of whatever scheme, and no name or address."""
    return "://" in host


def host_of(url: str) -> str:
    """The host of a URL. Raises :class:`BadUrl`."""
    return _parts(url)[0]


def config(arguments: argparse.Namespace, address: str) -> dict[str, object]:
    """What the agent is told. Raises :class:`BadUrl`."""
    host, port, path = _parts(arguments.host)
    return {
        "address": address,
        "port": port,
        "source_address": arguments.source,
        "host": f"{host}:{port}" if port != 80 else host,
        "path": path,
        "method": arguments.method,
        "expect_status": arguments.expect_status,
        "keepalive": arguments.keepalive,
        "idle": 0,
        "new": arguments.new,
        "rate_hz": arguments.rate,
        "identity_header": arguments.identity_header,
    }


def show_requests(seen: Sequence[Observation]) -> None:
    """A few lines for each kind of lanes, times from the first observation on."""
    begun_ns = seen[0].at.lo if seen else 0
    nobody = Surroundings(
        t0_ns=begun_ns,
        targets={},
        workload=frozenset(),
        names={},
        all_pods_known=False,
        stalls=stalls_of(seen),
    )
    found = requests(seen, nobody)
    for kind in found.kinds if found is not None else ():
        _show(kind)


def _show(kind: KindRequests) -> None:
    fates = ", ".join(f"{name} {number}" for name, number in kind.fates.items())
    print(
        f"{kind.kind}  {kind.requests} requests of {kind.lanes} lanes, "
        f"{kind.missed_slots} slots missed: {fates}"
    )
    if kind.answered_by:
        print(f"  by {', '.join(f'{one.by} {one.requests}' for one in kind.answered_by)}")
    if kind.failing is not None:
        print(
            f"  first failure at {_seconds(kind.failing.first_ns)}, last at "
            f"{_seconds(kind.failing.last_ns)}, served again at "
            f"{_seconds(kind.failing.recovered_ns)}"
        )


def _seconds(at: Bounds | None) -> str:
    return "no time" if at is None else f"{at[1] / NS_PER_S:.3f} s"


def _parts(url: str) -> tuple[str, int, str]:
    shown = url.partition("?")[0]  # a query may be a secret, and so is who a user is
    if "@" in shown.partition("//")[2].partition("/")[0]:
        raise BadUrl("a URL with a user; expected http://HOST:PORT/path without one")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 80
    except ValueError as error:
        raise BadUrl(f"{shown!r}: {error}; expected http://HOST:PORT/path") from None
    if parts.scheme != "http" or not host:
        raise BadUrl(f"{shown!r}; expected http://HOST:PORT/path, without TLS")
    path = parts.path or "/"
    return host, port, f"{path}?{parts.query}" if parts.query else path
