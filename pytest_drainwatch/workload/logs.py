"""The probe's lifecycle log, followed while the pod lives: afterwards it cannot be read."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.priority import run_soon
from pytest_drainwatch.workload import manifests

Record = Callable[[Observation], None]

# What a workload may say of itself; whatever else stands in its log is not ours to record.
PROBE_EVENTS = frozenset(
    {
        Event.PROBE_STARTED,
        Event.LISTENING,
        Event.PRESTOP_CALLED,
        Event.PRESTOP_ANSWERED,
        Event.SIGTERM_RECEIVED,
        Event.SIGTERM_REPEATED,
        Event.SIGTERM_IGNORED,
        Event.READYZ_NOW_503,
        Event.STOPPED_ACCEPTING,
        Event.DRAIN_STARTED,
        Event.DRAIN_DEADLINE_REACHED,
        Event.DRAIN_COMPLETE,
        Event.TCP_FLOWS_CLOSED,
        Event.ACCEPT_FAILED,
        Event.TCP_LINE_REFUSED,
        Event.UDP_RECEIVED,
        Event.EXITING,
        Event.FATAL,
    }
)
_BY_NAME = {str(event): event for event in PROBE_EVENTS}
LAST_WORDS = frozenset({Event.EXITING, Event.FATAL})
LINE_LIMIT = 16 * 1024
MAX_NS = 2**63

# Before each attempt to follow on; together longer than an outage that a trial survives.
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 4.0)
# A stream that lived as long as this was a good one.
STEADY_S = 1.0
# A container is gone for a moment before its status says so.
STATUS_LAG_S = 3.0
LOOK_S = 0.3
# For a thread that was told to stop.
STOP_TIMEOUT_S = 2.0
# Refusals that asking again does not mend.
REFUSED = frozenset({401, 403, 404})


class LogFollower:
    """Follows one pod's log in a thread, through a broken stream or two."""

    def __init__(self, api: Api, namespace: str, pod: str, uid: str, record: Record) -> None:
        self.pod, self.uid = pod, uid
        self._api, self._namespace, self._record = api, namespace, record
        self._lock = threading.Lock()
        self._problem: str | None = None
        self._stop, self._started, self._ended = (threading.Event() for _ in range(3))
        self._complete = threading.Event()
        self._last_words = False
        self._seen: set[tuple[Event, int, str]] = set()
        self._response: Any = None
        self._thread = threading.Thread(target=self._run, name=f"log-{pod}", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str | None:
        """Why the log is not followed, or was not to its end; None if all is well."""
        with self._lock:
            return self._problem

    @property
    def started(self) -> bool:
        """Whether the probe's first line was seen."""
        return self._started.is_set()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._ended.is_set()

    @property
    def complete(self) -> bool:
        """Whether the log was read to its end, with nothing lost."""
        return self._complete.is_set()

    def outcome(self) -> Observation:
        """What is known of the log, as an observation; for when nothing more is awaited."""
        return Observation(
            source=Source.ORCHESTRATOR,
            event=Event.LOG_ENDED,
            at=Interval.point(time.monotonic_ns()),
            subject=self.uid,
            data={
                "container": manifests.CONTAINER,
                "complete": self.complete,
                "problem": self.problem,
            },
        )

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the log; False if it is still open."""
        return self._ended.wait(timeout_s)

    def stop(self) -> None:
        """Let go of a log that is still open."""
        self._stop.set()
        with suppress(Exception):  # closing would wait for the reader
            self._response.connection.sock.shutdown(2)

    def _run(self) -> None:
        run_soon()
        try:
            self._follow()
        except BaseException as error:
            self._trouble(f"following the log of {self.pod} failed: {error!r}")
        finally:
            self._ended.set()

    def _follow(self) -> None:
        attempt = 0
        while True:
            opened = time.monotonic()
            try:
                self._read()
                why, refused, whole = "the stream ended, though the pod lives", False, True
            except Exception as error:
                why = explain(error)
                refused, whole = getattr(error, "status", None) in REFUSED, False
            over = self._last_words or (whole and self._is_over())
            if self._stop.is_set() or over:
                if over:
                    self._trouble(None)
                    self._complete.set()
                # Let go of while it could not be read it stays in trouble; an open stream has none.
                return
            self._trouble(f"the log of pod {self.pod} cannot be followed: {why}")
            if time.monotonic() - opened >= STEADY_S + (STATUS_LAG_S if whole else 0):
                attempt = 0
            if refused or attempt == len(PAUSES_S) or self._stop.wait(PAUSES_S[attempt]):
                return
            attempt += 1

    def _read(self) -> None:
        """One stream from the log's beginning to its end; lines seen before are left out."""
        self._response = response = self._api.core.read_namespaced_pod_log(
            self.pod,
            self._namespace,
            container=manifests.CONTAINER,
            follow=True,
            _preload_content=False,
        )
        with closing(response):
            self._trouble(None)
            for line in _lines(response.stream(decode_content=False)):
                if self._stop.is_set():
                    return
                seen = parse_log_line(line, self.uid)
                if seen is not None:
                    self._take(seen)

    def _take(self, seen: Observation) -> None:
        key = (seen.event, seen.at.lo, str(seen.data.get("nonce")))
        if key in self._seen:
            return
        self._record(seen)
        self._seen.add(key)
        self._last_words |= seen.event in LAST_WORDS
        if seen.event is Event.PROBE_STARTED:
            self._started.set()

    def _is_over(self) -> bool:
        """Whether the container ended, as a stream that ends cleanly suggests."""
        deadline = time.monotonic() + STATUS_LAG_S
        while True:
            with suppress(Exception):
                if not self._lives():
                    return True
            if time.monotonic() > deadline or self._stop.wait(LOOK_S):
                return False

    def _lives(self) -> bool:
        from kubernetes.client.exceptions import NotFoundException

        try:
            response = self._api.core.read_namespaced_pod(
                self.pod, self._namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT
            )
        except NotFoundException:
            return False
        pod = json.loads(response.data)
        states = [c.get("state") or {} for c in pod["status"].get("containerStatuses") or ()]
        return pod["metadata"]["uid"] == self.uid and not any("terminated" in s for s in states)

    def _trouble(self, problem: str | None) -> None:
        with self._lock:
            self._problem = problem


def join_logs(followers: Iterable[LogFollower], timeout_s: float) -> bool:
    """Wait for the ends of logs, all under one deadline, then let go of those still open.

    A bystander's log never ends: give only those that will, or a deadline to match.
    Returns whether all had ended.
    """
    all_of_them = tuple(followers)
    deadline = time.monotonic() + timeout_s
    ended = [each.join(max(0.0, deadline - time.monotonic())) for each in all_of_them]
    for each in all_of_them:
        each.stop()
    deadline = time.monotonic() + STOP_TIMEOUT_S
    for each in all_of_them:
        each.join(max(0.0, deadline - time.monotonic()))
    return all(ended)


def parse_log_line(line: str, uid: str) -> Observation | None:
    """A lifecycle line as an observation on the probe's clock; None for anything else.

    A workload's log may hold anything, and must not be able to say what only the
    instrument says.
    """
    try:
        raw = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    name, mono_ns, clock = raw.get("event"), raw.get("mono_ns"), raw.get("clock")
    event = _BY_NAME.get(name) if isinstance(name, str) else None
    if event is None or type(mono_ns) is not int or not isinstance(clock, str) or not clock:
        return None
    if not 0 <= mono_ns < MAX_NS:
        return None
    known = {"event", "mono_ns", "clock", "pod_uid"}
    return Observation(
        source=Source.PROBE,
        event=event,
        at=Interval.point(mono_ns),
        subject=uid,
        clock=clock,
        data={key: value for key, value in raw.items() if key not in known},
    )


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Whole lines; one that is too long is dropped without being held."""
    rest, too_long = b"", False
    for chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            if not too_long and len(line) <= LINE_LIMIT:
                yield line.decode("utf-8", "replace")
            too_long = False
        if len(rest) > LINE_LIMIT:
            rest, too_long = b"", True
