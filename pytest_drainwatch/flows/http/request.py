"""One request of a lane, from its slot to its end."""

from __future__ import annotations

from asyncio import TimerHandle

from pytest_drainwatch.core.http.ending import Ending, Pool


class Request:
    """The facts of one request; ``ended`` is None while it is under way.

    ``begun_ns`` is when it was due and its client turned to it: to dial, or to write.
    ``written`` and ``received`` count bytes of it and of its response.
    """

    __slots__ = (
        "begun_ns",
        "by_fin",
        "close",
        "connection",
        "dialled",
        "ended",
        "errno",
        "opening",
        "path",
        "pool",
        "received",
        "responder",
        "said_close",
        "slot",
        "status",
        "timer",
        "took_ns",
        "written",
        "written_ns",
    )

    def __init__(
        self, slot: int, begun_ns: int, path: str, *, close: bool = False, opening: bool = False
    ) -> None:
        self.slot, self.begun_ns = slot, begun_ns
        self.path, self.close, self.opening = path, close, opening
        self.pool = Pool.EMPTY
        self.connection: int | None = None
        self.dialled = False
        self.written = self.received = 0
        self.written_ns: int | None = None
        self.ended: Ending | None = None
        self.took_ns = 0
        self.status: int | None = None
        self.said_close = self.by_fin = False
        self.responder: str | None = None
        self.errno: str | None = None
        self.timer: TimerHandle | None = None

    def end(self, ending: Ending, at_ns: int) -> None:
        """It ended so, and that was known at ``at_ns``."""
        self.ended = ending
        self.took_ns = max(0, at_ns - self.begun_ns)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
