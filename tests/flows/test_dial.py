"""Dialling: what is retried, and what is nobody's fault but ours."""

from __future__ import annotations

import asyncio
import errno
import socket
import time

import pytest

from pytest_drainwatch.flows.dial import DialFailed, dial
from pytest_drainwatch.flows.errors import ClientLimit


class Loop:
    """An event loop of which only the connecting is replaced."""

    def __init__(self, *results: OSError | None) -> None:
        self.results = list(results)
        self.calls = 0

    async def sock_connect(self, sock: socket.socket, address: tuple[str, int]) -> None:
        result = self.results[min(self.calls, len(self.results) - 1)]
        self.calls += 1
        if result is not None:
            raise result
        sock.bind(("127.0.0.1", 0))
        sock.connect(address)


def run(loop: object, remote: tuple[str, int] = ("127.0.0.1", 9), timeout_s: float = 0.4) -> object:
    async def main() -> object:
        deadline_ns = time.monotonic_ns() + int(timeout_s * 1e9)
        kind = socket.SOCK_DGRAM
        dialled = await dial(loop, kind, remote, None, deadline_ns)  # type: ignore[arg-type]
        dialled.sock.close()
        return dialled.attempts, dialled.failed

    return asyncio.run(main())


@pytest.mark.parametrize(
    "number",
    [errno.ECONNREFUSED, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ECONNRESET],
)
def test_what_kube_proxy_may_cause_is_retried(number: int) -> None:
    failing = OSError(number, "not yet")
    name = errno.errorcode[number]
    assert run(Loop(failing, failing, None)) == (3, {name: 2})
    with pytest.raises(DialFailed, match=name):
        run(Loop(failing))


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS])
def test_our_own_limits_are_not(number: int) -> None:
    loop = Loop(OSError(number, "none left"))
    with pytest.raises(ClientLimit, match=errno.errorcode[number]):
        run(loop)
    assert loop.calls == 1


def test_a_connection_to_itself_is_a_refusal() -> None:
    """Dialling a free port of this host, the kernel may pick that very port as the source."""

    class ToItself(Loop):
        async def sock_connect(self, sock: socket.socket, address: tuple[str, int]) -> None:
            self.calls += 1
            sock.bind(address)
            sock.connect(address)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    with pytest.raises(DialFailed, match="ECONNREFUSED"):
        run(ToItself(), address)
