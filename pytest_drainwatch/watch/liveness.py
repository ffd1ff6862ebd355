"""Whether the API server is there: a quiet watch looks the same when it is frozen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing

from pytest_drainwatch.api import Api, explain
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source

Record = Callable[[Observation], None]

PERIOD_S = 2.0
ANSWER_TIMEOUT_S = 2.0
# While it fails we want to know soon when it is back.
FAILING_PERIOD_S = 0.5
# A connection that lived as long as this worked, even if nothing was said over it.
STEADY_S = 1.0
# A later delivery than this is recorded as a gap.
DELAY_NS = 1_000_000_000


class Health:
    """How long one thread's dealings with the API server have been failing."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._problem: str | None = None
        self._since = 0.0
        self._open_since: float | None = None
        self._died: str | None = None

    def works(self) -> None:
        """Something was received that only a working server sends."""
        with self._lock:
            self._problem = None

    def opened(self) -> None:
        """A stream was accepted; it counts as working once it has lived for a moment."""
        with self._lock:
            self._open_since = time.monotonic()

    def fails(self, problem: str, since: float | None = None) -> None:
        """It failed, as of ``since`` or now."""
        with self._lock:
            if self._problem is None or self._is_steady():
                self._since = time.monotonic() if since is None else since
            self._problem, self._open_since = problem, None

    def died(self, problem: str) -> None:
        """The thread ended although nobody asked it to."""
        with self._lock:
            self._died = problem

    @property
    def steady(self) -> bool:
        """Whether a stream is open and has lived for a moment."""
        with self._lock:
            return self._is_steady()

    def trouble(self, silent_s: float) -> str | None:
        """What is wrong, if it has been for longer than ``silent_s``."""
        with self._lock:
            if self._died is not None:
                return f"{self._what} died: {self._died}"
            if self._problem is None or self._is_steady():
                return None
            failing_s = time.monotonic() - self._since
            if failing_s <= silent_s:
                return None
            return f"{self._what} has been failing for {failing_s:.1f} s: {self._problem}"

    def _is_steady(self) -> bool:
        return self._open_since is not None and time.monotonic() - self._open_since >= STEADY_S


class Liveness:
    """Asks ``/readyz`` in a thread and over a connection of its own; silence is a gap."""

    def __init__(self, api: Api, *, record: Record, recovered: Callable[[], None]) -> None:
        """``recovered`` is called when it answers again after a failure."""
        self._api, self._record, self._recovered = api, record, recovered
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._answered_ns = time.monotonic_ns()
        self._silence: str | None = None  # why, while it lasts
        self.health = Health("the check that the API server answers /readyz")
        self.thread = threading.Thread(target=self._run, daemon=True, name="readyz")

    def stop(self) -> None:
        """Ask the thread to end; :meth:`close` records what is still open."""
        self._stop.set()

    def close(self) -> None:
        """Record a silence that lasts until now."""
        self._note()

    def _run(self) -> None:
        # A pool of its own: this must not queue behind the trial's calls, nor they behind it.
        client = type(self._api.client)(configuration=self._api.client.configuration)
        try:
            with closing(client):
                while not self._stop.is_set():
                    well = self._look(client)
                    self._stop.wait(PERIOD_S if well else FAILING_PERIOD_S)
        except BaseException as error:
            self.health.died(repr(error))

    def _look(self, client: object) -> bool:
        sent = time.monotonic()
        try:
            ask(client)
        except Exception as error:
            if not self._stop.is_set():
                with self._lock:
                    self._silence = self._silence or explain(error)
                self.health.fails(explain(error), since=sent)
            return False
        self.health.works()
        if self._note():
            self._recovered()
        with self._lock:
            self._answered_ns = time.monotonic_ns()
        return True

    def _note(self) -> bool:
        """Record the silence that ends now, once; returns whether there was one."""
        with self._lock:
            reason, self._silence = self._silence, None
            since_ns = self._answered_ns
        if reason is None:
            return False
        self._record(gap("apiserver", f"/readyz: {reason}", since_ns))
        return True


class NotReady(Exception):
    """The API server answers, and says that it is not ready."""


def ask(client: object) -> None:
    """Raise if the API server does not answer ``/readyz``, or with a server's error.

    That we may not ask (401, 403), or that there is no such path, is an answer too.
    """
    request = client.param_serialize(  # type: ignore[attr-defined]
        "GET", "/readyz", auth_settings=["BearerToken"]
    )
    answer = client.call_api(*request, _request_timeout=ANSWER_TIMEOUT_S)  # type: ignore[attr-defined]
    text = answer.read().decode("utf-8", "replace")
    if answer.status >= 500:
        failed = [line for line in text.splitlines() if line.startswith("[-]")]
        raise NotReady(f"HTTP {answer.status} {' '.join(failed) or text[:100]}".strip())


def gap(resource: str, reason: str, since_ns: int) -> Observation:
    """A stretch until now in which something may have been missed, or came late."""
    return Observation(
        source=Source.K8S,
        event=Event.WATCH_GAP,
        at=Interval(since_ns, time.monotonic_ns()),
        data={"resource": resource, "reason": reason},
    )
