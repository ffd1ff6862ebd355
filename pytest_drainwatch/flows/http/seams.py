"""What a connection needs of those around it: of the agent's loop, and of whose it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from pytest_drainwatch.flows.http.config import HttpConfig
from pytest_drainwatch.flows.http.request import Request
from pytest_drainwatch.flows.probing.ports import SourcePorts

if TYPE_CHECKING:
    from pytest_drainwatch.flows.http.connection import Connection


class Loop(Protocol):
    """What a connection needs of the agent's loop."""

    config: HttpConfig
    ports: SourcePorts

    @property
    def quiet_ns(self) -> int:
        """Whatever the sockets read now tell, they did not have it then."""

    def watch(self, fd: int, read: Callable[[], None]) -> None:
        """Call ``read`` while there is something to read."""

    def watch_writes(self, fd: int, write: Callable[[], None]) -> None:
        """Call ``write`` while there is room to write."""

    def unwatch(self, fd: int) -> None:
        """Stop both."""

    def unwatch_writes(self, fd: int) -> None:
        """Stop the second."""

    def soon(self, call: Callable[[], None]) -> None:
        """Call ``call`` once the sockets that are ready now have been read."""


class Owner(Protocol):
    """Whose connection it is."""

    def ended(self, connection: Connection, request: Request) -> None:
        """A request on it has ended."""

    def closed(self, connection: Connection) -> None:
        """It is over; no request is under way on it any more."""
