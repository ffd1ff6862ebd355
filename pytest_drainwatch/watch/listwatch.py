"""One kind of API object as time-stamped frames.

list -> watch from that version -> frames and bookmarks move the version -> when a
stream ends, watch on from there: nothing is lost -> 410 Gone, or anything odd: list
again. A frame is stamped on arrival, before it is parsed, and reduced to named fields.
A stretch in which something was missed, or came more than a second late, is recorded
as a gap, never papered over.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, explain
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.priority import run_soon
from pytest_drainwatch.watch.frames import Fields, reduce_object
from pytest_drainwatch.watch.liveness import DELAY_NS, Health, gap

Record = Callable[[Observation], None]
# Whether an object that was asked for is one of those that are meant.
Keep = Callable[[Mapping[str, Any]], bool]

# Between attempts: doubled from the first to the last while they fail.
FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 1.0
# The server ends the stream after so long, and we watch on without a gap.
SERVER_TIMEOUT_S = 300
# Connect, and the longest silence: bookmarks come about once a minute. A server that
# freezes is noticed earlier, by the liveness check.
STREAM_TIMEOUT = (5.0, 90.0)
# Refusals after which the version that we watched from is still good.
RETRY_STATUS = frozenset({401, 403, 429})


@dataclass(slots=True)
class Sight:
    """What a watch shows right now; guarded by its condition."""

    objects: dict[str, Fields] = field(default_factory=dict)
    shown: int = 0
    streamed: bool = False


@dataclass(slots=True)
class Blind:
    """A stretch that has not ended yet, in which nothing can be seen."""

    reason: str
    since_ns: int  # of the last thing that was surely not missed
    noticed_ns: int

    def is_late(self) -> bool:
        return time.monotonic_ns() - self.noticed_ns > DELAY_NS


class _Relist(Exception):
    """The version that we watched from is of no more use."""


class ListWatch:
    """One kind of object: its list, its stream, its thread."""

    def __init__(
        self,
        name: str,
        event: Event,
        request: Callable[..., Any],
        record: Record,
        stop: threading.Event,
        changed: threading.Condition,
        keep: Keep = lambda _: True,
        *,
        quote: bool = True,
    ) -> None:
        self.name, self.sight, self.health = name, Sight(), Health(f"the watch of {name}")
        self.thread = threading.Thread(target=self._run, daemon=True, name=f"watch-{name}")
        self._event, self._request, self._record = event, request, record
        self._keep, self._quote = keep, quote
        self._stop, self._changed = stop, changed
        self._version: str | None = None
        self._whole_ns = time.monotonic_ns()  # until then nothing was missed
        self._blind: Blind | None = None
        self._response: Any = None
        self._pause_s = FIRST_PAUSE_S

    def interrupt(self) -> None:
        """Wake the thread out of its stream. Closing would wait for the reader."""
        with suppress(Exception):
            self._response.connection.sock.shutdown(2)

    def close(self) -> None:
        """Record a gap that lasts until now."""
        lost = self._version is None
        self._end_blindness(only_if_late=not lost)

    def _run(self) -> None:
        run_soon()
        try:
            while not self._stop.is_set():
                self._turn()
        except BaseException as error:
            self._go_blind(f"the thread died: {error!r}")
            self.health.died(repr(error))

    def _turn(self) -> None:
        """List if there is no version to watch from, then one stream to its end."""
        try:
            if self._version is None:
                self._list()
            with closing(self._lines()) as lines:
                for received_ns, line in lines:
                    self._take(line, received_ns)
        except Exception as error:
            if self._stop.is_set():
                return
            reason = str(error) if isinstance(error, _Relist) else explain(error)
            if is_useless_version(error):
                self._version = None
            self._go_blind(reason)
            lived = self.health.steady
            self.health.fails(reason)
            self._rest(lived)
        else:
            if self._stop.is_set():
                return
            self._whole_ns = time.monotonic_ns()
            self._go_blind("the stream ended")
            self.health.works()
            self._rest(self.health.steady)

    def _list(self) -> None:
        sent = time.monotonic_ns()
        response = self._request(_request_timeout=REQUEST_TIMEOUT)
        raw = response.data
        at = Interval(sent, time.monotonic_ns())
        response.release_conn()
        listing = json.loads(raw)
        version = str(listing["metadata"]["resourceVersion"])
        items = [item for item in listing.get("items") or () if self._keep(item)]
        reduced = [reduce_object(self._event, item, "LISTED", quote=self._quote) for item in items]
        if self._stop.is_set():
            return
        subjects = [subject for subject, _ in reduced]
        data = {"resource": self.name, "subjects": subjects, "resource_version": version}
        self._record(Observation(source=Source.K8S, event=Event.WATCH_LISTED, at=at, data=data))
        for subject, fields in reduced:
            self._show(at, subject, fields)
        with self._changed:
            self.sight.objects = dict(reduced)
            self._changed.notify_all()
        self._end_blindness(only_if_late=False)
        self._version, self._whole_ns = version, at.hi

    def _lines(self) -> Generator[tuple[int, bytes], None, None]:
        """The lines of one stream, each with the time of its arrival."""
        if self._stop.is_set():
            return
        self._response = response = self._request(
            resource_version=self._version,
            watch=True,
            allow_watch_bookmarks=True,
            timeout_seconds=SERVER_TIMEOUT_S,
            _request_timeout=STREAM_TIMEOUT,
        )
        with closing(response):
            self.health.opened()
            self._end_blindness(only_if_late=True)
            with self._changed:
                self.sight.streamed = True
                self._changed.notify_all()
            rest = b""
            if self._stop.is_set():
                return
            for chunk in response.stream(decode_content=False):
                received = time.monotonic_ns()
                *complete, rest = (rest + chunk).split(b"\n")
                for line in complete:
                    yield received, line
                if self._stop.is_set():
                    return

    def _take(self, line: bytes, received_ns: int) -> None:
        try:
            frame = json.loads(line)
            kind, item = frame["type"], frame["object"]
            if kind == "ERROR":
                expired = item.get("code") == 410
                raise _Relist("410 Gone" if expired else f"watch error: {item.get('message')}")
            if kind != "BOOKMARK" and self._keep(item):
                subject, fields = reduce_object(self._event, item, kind, quote=self._quote)
                self._show(Interval.point(received_ns), subject, fields)
            self._version = str(item["metadata"]["resourceVersion"])
        except _Relist:
            raise
        except Exception as error:
            raise _Relist(f"a line that could not be taken in: {error!r}") from error
        self._whole_ns, self._pause_s = received_ns, FIRST_PAUSE_S
        self.health.works()

    def _show(self, at: Interval, subject: str, fields: Fields) -> None:
        self._record(
            Observation(source=Source.K8S, event=self._event, at=at, subject=subject, data=fields)
        )
        with self._changed:
            self.sight.shown += 1
            if fields["type"] == "DELETED":
                self.sight.objects.pop(subject, None)
            else:
                self.sight.objects[subject] = fields
            self._changed.notify_all()

    def _rest(self, lived: bool) -> None:
        """Not at all after a stream that lived, longer and longer while none does."""
        if lived:
            self._pause_s = FIRST_PAUSE_S
            return
        self._stop.wait(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LAST_PAUSE_S)

    def _go_blind(self, reason: str) -> None:
        """From the last thing surely seen on; the first reason counts, unless all is lost."""
        with self._changed:
            if self._blind is None:
                self._blind = Blind(reason, self._whole_ns, time.monotonic_ns())
            elif self._version is None:
                self._blind.reason = reason

    def _end_blindness(self, *, only_if_late: bool) -> None:
        with self._changed:
            blind, self._blind = self._blind, None
        if blind is not None and (blind.is_late() or not only_if_late):
            self._record(gap(self.name, blind.reason, blind.since_ns))


def is_useless_version(error: Exception) -> bool:
    """Whether to list again after this; a broken connection leaves the version good."""
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return 400 <= status < 500 and status not in RETRY_STATUS
    return isinstance(error, _Relist)
