"""The watches against a real HTTP server: frames, resuming, gaps, trouble, and no secrets."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.watch import Watch, listwatch, liveness
from tests.conductor.api_server import Call, reply, serving, stream


def pod(uid: str, version: int, **status: object) -> dict[str, object]:
    return {
        "metadata": {"uid": uid, "name": f"pod-{uid}", "resourceVersion": str(version)},
        "spec": {
            "nodeName": "node-1",
            "containers": [{"env": [{"name": "TOKEN", "value": "s3cret"}]}],
        },
        "status": {"phase": "Running", **status},
    }


def frame(kind: str, item: object) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


class Scripted:
    """Lists and streams for pods in turn; EndpointSlices stay empty and quiet."""

    def __init__(
        self, lists: list[dict[str, object]], streams: list[Callable[[], Iterator[bytes]]]
    ) -> None:
        self._lists, self._streams = iter(lists), iter(streams)
        self.watched_from: list[str] = []
        self.asked_for: list[dict[str, list[str]]] = []
        self.refuse: list[Callable[[BaseHTTPRequestHandler], None]] = []
        self.readyz: Callable[[BaseHTTPRequestHandler], None] = lambda h: reply(h, "ok")
        self.quiet = threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        query = parse_qs(urlparse(call.path).query)
        is_watch = [w.lower() for w in query.get("watch", ())] == ["true"]
        if call.path == "/readyz":
            self.readyz(handler)
        elif "endpointslices" in call.path:
            if is_watch:
                stream(handler, self._hang())
            else:
                reply(handler, {"metadata": {"resourceVersion": "1"}, "items": []})
        elif is_watch:
            self.watched_from.append(query["resourceVersion"][0])
            self.asked_for.append(query)
            if self.refuse:
                self.refuse.pop()(handler)
            else:
                stream(handler, next(self._streams, self._hang)())
        else:
            reply(handler, next(self._lists))

    def _hang(self) -> Iterator[bytes]:
        self.quiet.wait(20)
        yield from ()


def listing(version: int, *items: dict[str, object]) -> dict[str, object]:
    return {"metadata": {"resourceVersion": str(version)}, "items": list(items)}


def watch_pods(
    script: Scripted,
    folder: Path,
    until: Callable[[list[Observation]], bool],
    *,
    quote: bool = True,
) -> list[Observation]:
    """Run the watch until ``until`` holds of what it recorded about pods."""
    seen: list[Observation] = []

    def of_pods() -> list[Observation]:
        return [o for o in list(seen) if o.event is not Event.ENDPOINT_SLICE and not _other(o)]

    with (
        serving(script, folder) as (api, _),
        Watch(api, "ns", pods="app=x", slices="svc=x", record=seen.append, quote=quote),
    ):
        deadline = time.monotonic() + 10
        while not until(of_pods()):
            assert time.monotonic() < deadline, [o.event for o in of_pods()]
            time.sleep(0.01)
        script.quiet.set()
    return of_pods()


def _other(seen: Observation) -> bool:
    return seen.data.get("resource") == "endpointslices"


def count(event: Event, wanted: int) -> Callable[[list[Observation]], bool]:
    return lambda seen: sum(o.event is event for o in seen) >= wanted


@pytest.mark.parametrize("quote", [True, False])
def test_messages_of_pods_are_kept_only_if_they_may_be(quote: bool, tmp_path: Path) -> None:
    told = {"message": "its own words"}
    script = Scripted(
        [listing(5, pod("a", 5, **told))],
        [lambda: iter([frame("MODIFIED", pod("a", 6, **told))])],
    )
    seen = watch_pods(script, tmp_path, count(Event.POD, 2), quote=quote)
    kept = [o.data["message"] for o in seen if o.event is Event.POD][:2]
    assert kept == (["its own words"] * 2 if quote else [None] * 2)


def test_list_then_frames_in_order_whatever_the_chunks(tmp_path: Path) -> None:
    """A frame may come in pieces, and several in one chunk."""
    whole = frame("MODIFIED", pod("a", 6, phase="Pending")) + frame("ADDED", pod("b", 7))

    def pieces() -> Iterator[bytes]:
        yield whole[:50]
        yield whole[50:-20]
        yield whole[-20:]
        time.sleep(5)

    script = Scripted([listing(5, pod("a", 4))], [pieces])
    seen = watch_pods(script, tmp_path, count(Event.POD, 3))
    assert [(o.subject, o.data["type"]) for o in seen if o.event is Event.POD] == [
        ("a", "LISTED"),
        ("a", "MODIFIED"),
        ("b", "ADDED"),
    ]
    assert script.watched_from == ["5"]


def test_410_lists_again_and_is_recorded_as_a_gap(tmp_path: Path) -> None:
    def expired() -> Iterator[bytes]:
        yield frame("ERROR", {"code": 410, "message": "too old"})

    script = Scripted([listing(5, pod("a", 4)), listing(99, pod("b", 98))], [expired])
    seen = watch_pods(script, tmp_path, count(Event.WATCH_GAP, 1))
    (gap,) = [o for o in seen if o.event is Event.WATCH_GAP]
    assert gap.data == {"resource": "pods", "reason": "410 Gone"}
    listed = [o.data["subjects"] for o in seen if o.event is Event.WATCH_LISTED]
    assert listed == [["a"], ["b"]]


def test_a_stream_that_ends_goes_on_from_its_last_version_without_a_gap(tmp_path: Path) -> None:
    """The server ends every stream in the end (timeoutSeconds); nothing is lost by it."""

    def bookmarked() -> Iterator[bytes]:
        yield frame("MODIFIED", pod("a", 6))
        yield frame("BOOKMARK", {"metadata": {"resourceVersion": "50"}})

    def framed() -> Iterator[bytes]:
        yield frame("MODIFIED", pod("a", 51))

    def rest() -> Iterator[bytes]:
        yield frame("DELETED", pod("a", 60))
        time.sleep(5)

    script = Scripted([listing(5, pod("a", 4))], [bookmarked, framed, rest])
    seen = watch_pods(script, tmp_path, count(Event.POD, 4))
    assert script.watched_from == ["5", "50", "51"]
    assert script.asked_for[0]["timeoutSeconds"] == ["300"]
    types = [o.data["type"] for o in seen if o.event is Event.POD]
    assert types == ["LISTED", "MODIFIED", "MODIFIED", "DELETED"]
    assert not [o for o in seen if o.event is Event.WATCH_GAP]


def test_a_stream_that_breaks_goes_on_from_its_last_version(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield frame("MODIFIED", pod("a", 6)) + b'{"type": "MODI'
        raise ConnectionResetError

    def rest() -> Iterator[bytes]:
        yield frame("MODIFIED", pod("a", 7))
        time.sleep(5)

    script = Scripted([listing(5, pod("a", 4))], [broken, rest])
    seen = watch_pods(script, tmp_path, count(Event.POD, 3))
    assert script.watched_from == ["5", "6"]
    assert not [o for o in seen if o.event is Event.WATCH_GAP]


def test_a_pause_that_delays_delivery_is_a_gap_from_the_last_frame_on(tmp_path: Path) -> None:
    def busy(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.6)
        reply(handler, {"message": "the server is restarting"}, 503)

    def broken() -> Iterator[bytes]:
        yield frame("MODIFIED", pod("a", 6))
        script.refuse += [busy, busy]
        raise ConnectionResetError

    script = Scripted([listing(5, pod("a", 4))], [broken])
    seen = watch_pods(script, tmp_path, count(Event.WATCH_GAP, 1))
    assert script.watched_from == ["5", "6", "6", "6"]
    (gap,) = [o for o in seen if o.event is Event.WATCH_GAP]
    assert gap.at.lo == [o for o in seen if o.event is Event.POD][-1].at.hi
    assert gap.at.width > 1_000_000_000
    assert sum(o.event is Event.WATCH_LISTED for o in seen) == 1


@pytest.mark.parametrize(
    "line",
    [
        b"{}\n",
        b"[]\n",
        b"nonsense\n",
        b'"text"\n',
        b'{"type": "ADDED", "object": null}\n',
        b'{"type": "ADDED", "object": {"metadata": {}}}\n',
        b'{"type": "ERROR", "object": {"code": 500, "message": "etcd"}}\n',
        b"\xff\xfe\n",
    ],
)
def test_a_line_that_is_no_frame_lists_again_and_says_so(line: bytes, tmp_path: Path) -> None:
    def odd() -> Iterator[bytes]:
        yield line

    script = Scripted([listing(5, pod("a", 4)), listing(99, pod("b", 98))], [odd])
    seen = watch_pods(script, tmp_path, count(Event.WATCH_GAP, 1))
    (gap,) = [o for o in seen if o.event is Event.WATCH_GAP]
    assert re.match(
        "a line that could not be taken in: |watch error: etcd", str(gap.data["reason"])
    )
    assert [o.data["subjects"] for o in seen if o.event is Event.WATCH_LISTED] == [["a"], ["b"]]


def test_frames_are_named_fields_and_never_the_object(tmp_path: Path) -> None:
    script = Scripted([listing(5, pod("a", 4))], [])
    seen = watch_pods(script, tmp_path, count(Event.POD, 1))
    assert "s3cret" not in repr(seen)
    (shown,) = [o for o in seen if o.event is Event.POD]
    assert shown.data["node"] == "node-1"


def test_a_frame_is_stamped_after_it_was_sent_and_before_it_is_seen(tmp_path: Path) -> None:
    sent: list[int] = []

    def one() -> Iterator[bytes]:
        time.sleep(0.05)
        sent.append(time.monotonic_ns())
        yield frame("DELETED", pod("a", 9))
        time.sleep(5)

    script = Scripted([listing(5, pod("a", 4))], [one])
    seen = watch_pods(script, tmp_path, count(Event.POD, 2))
    deleted = [o for o in seen if o.event is Event.POD][-1]
    assert sent[0] <= deleted.at.hi <= time.monotonic_ns()


@contextmanager
def watching(script: Scripted, folder: Path) -> Iterator[tuple[Watch, list[Observation]]]:
    seen: list[Observation] = []
    with serving(script, folder) as (api, _):
        try:
            with Watch(api, "ns", pods="app=x", slices="svc=x", record=seen.append) as watch:
                yield watch, seen
        finally:
            script.quiet.set()


def wait_for(what: Callable[[], object], timeout_s: float = 10) -> float:
    """How long it took until ``what`` held."""
    started = time.monotonic()
    while not what():
        assert time.monotonic() - started < timeout_s, "it never happened"
        time.sleep(0.01)
    return time.monotonic() - started


def gaps(seen: list[Observation], resource: str) -> list[Observation]:
    return [o for o in seen if o.event is Event.WATCH_GAP and o.data["resource"] == resource]


def test_a_watch_delivers_once_its_stream_is_accepted(tmp_path: Path) -> None:
    """A list alone is not enough: `watch` is a right of its own."""
    script = Scripted([listing(5, pod("a", 4))] * 99, [])
    accept = threading.Event()

    def forbid(handler: BaseHTTPRequestHandler) -> None:
        if not accept.is_set():
            script.refuse.append(forbid)
        reply(handler, {"message": "pods is forbidden: cannot watch"}, 403)

    script.refuse.append(forbid)
    with watching(script, tmp_path) as (watch, _):
        wait_for(lambda: len(script.watched_from) >= 2)
        assert set(watch.pods()) == {"a"}
        assert watch.delivering() == {"pods": False, "endpointslices": False}
        accept.set()
        wait_for(lambda: watch.delivering()["pods"])
        # Accepted as well, but it has nothing to show.
        assert watch.delivering()["endpointslices"] is False


def test_a_refused_watch_is_trouble_whatever_the_other_one_does(tmp_path: Path) -> None:
    script = Scripted([listing(5, pod("a", 4))], [])

    def forbid(handler: BaseHTTPRequestHandler) -> None:
        script.refuse.append(forbid)
        reply(handler, {"message": "pods is forbidden: cannot watch"}, 403)

    script.refuse.append(forbid)
    with watching(script, tmp_path) as (watch, _):
        wait_for(lambda: watch.trouble(0.5))
        said = watch.trouble(0.5) or ""
        assert re.match(r"the watch of pods has been failing for \d\.\d s: HTTP 403: pods is", said)
        assert "endpointslices" not in said
        assert watch.trouble(60) is None


def test_a_stream_that_is_accepted_and_dropped_over_and_over_is_trouble(tmp_path: Path) -> None:
    """Being accepted ends no trouble; only a stream that lives does."""

    def error() -> Iterator[bytes]:
        yield frame("ERROR", {"code": 500, "message": "etcd is away"})

    script = Scripted([listing(5, pod("a", 4))] * 99, [error] * 99)
    with watching(script, tmp_path) as (watch, seen):
        wait_for(lambda: watch.trouble(1.5))
        assert "etcd is away" in (watch.trouble(1.5) or "")
        assert 1 < len(gaps(seen, "pods")) < 12  # it does not hammer a server in need


def test_trouble_ends_with_a_stream_that_lives(tmp_path: Path) -> None:
    script = Scripted([listing(5, pod("a", 4))], [])
    script.refuse += [lambda h: reply(h, {"message": "busy"}, 503)] * 3
    with watching(script, tmp_path) as (watch, _):
        wait_for(lambda: watch.trouble(0.0))
        wait_for(lambda: watch.trouble(0.0) is None)


def freeze(script: Scripted, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """A server that takes connections and answers nothing, until the event is set."""
    monkeypatch.setattr(liveness, "ANSWER_TIMEOUT_S", 0.3)
    monkeypatch.setattr(liveness, "PERIOD_S", 0.1)
    monkeypatch.setattr(liveness, "FAILING_PERIOD_S", 0.1)
    thaw = threading.Event()

    def silent(handler: BaseHTTPRequestHandler) -> None:
        thaw.wait(10)
        reply(handler, "ok")

    script.readyz = silent
    return thaw


def test_a_frozen_server_is_trouble_although_its_streams_are_merely_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Scripted([listing(5, pod("a", 4))], [])
    with watching(script, tmp_path) as (watch, seen):
        wait_for(lambda: watch.delivering()["pods"])
        assert watch.trouble(0.0) is None
        thaw = freeze(script, monkeypatch)
        wait_for(lambda: watch.trouble(1.0))
        said = watch.trouble(1.0) or ""
        assert "/readyz has been failing" in said
        assert "timed out" in said
        assert "pods" not in said
        thaw.set()
        wait_for(lambda: watch.trouble(0.0) is None)
        (gap,) = gaps(seen, "apiserver")
        assert gap.at.width > 1_000_000_000
        # A stream may be half open after an outage: it is opened anew, and nothing is lost.
        wait_for(lambda: script.watched_from == ["5", "5"])
        assert gaps(seen, "pods") == []


def test_a_server_that_is_not_ready_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PERIOD_S", 0.1)
    script = Scripted([listing(5)], [])

    def ill(handler: BaseHTTPRequestHandler) -> None:
        raw = b"[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"
        handler.send_response(500)
        handler.send_header("Content-Length", str(len(raw)))
        handler.end_headers()
        handler.wfile.write(raw)

    script.readyz = ill
    with watching(script, tmp_path) as (watch, _):
        wait_for(lambda: watch.trouble(0.2))
        assert "HTTP 500 [-]etcd failed: reason withheld" in (watch.trouble(0.2) or "")


def test_not_being_allowed_to_ask_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PERIOD_S", 0.05)
    script = Scripted([listing(5)], [])
    asked: list[int] = []

    def forbid(handler: BaseHTTPRequestHandler) -> None:
        asked.append(1)
        reply(handler, {"message": "forbidden"}, 403)

    script.readyz = forbid
    with watching(script, tmp_path) as (watch, _):
        wait_for(lambda: len(asked) > 3)
        assert watch.trouble(0.0) is None


def test_a_gap_that_is_open_at_the_end_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def expired() -> Iterator[bytes]:
        script.lost = True
        yield frame("ERROR", {"code": 410, "message": "too old"})

    class Losing(Scripted):
        lost = False

        def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
            if self.lost and "/pods" in call.path:
                reply(handler, {"message": "etcd is away"}, 503)
            else:
                super().__call__(handler, call)

    script = Losing([listing(5, pod("a", 4))], [expired])
    with watching(script, tmp_path) as (watch, seen):
        wait_for(lambda: script.lost and watch.trouble(0.2))
        freeze(script, monkeypatch)
        wait_for(lambda: "readyz" in (watch.trouble(0.0) or ""))
        assert gaps(seen, "pods") == []
        watch.stop()
        ended = time.monotonic_ns()
    for resource in ("pods", "apiserver"):
        (gap,) = gaps(seen, resource)
        assert gap.at.lo < ended - 200_000_000
    assert gaps(seen, "endpointslices") == []


def test_stopping_is_no_gap_and_leaves_no_thread(tmp_path: Path) -> None:
    script = Scripted([listing(5, pod("a", 4))], [])
    with watching(script, tmp_path) as (watch, seen):
        wait_for(lambda: watch.delivering()["pods"])
        watch.stop()
        names = {thread.name for thread in threading.enumerate()}
        assert not names & {"watch-pods", "watch-endpointslices", "readyz"}
    assert watch.trouble(0.0) is None
    assert not [o for o in seen if o.event is Event.WATCH_GAP]


def test_a_thread_that_died_is_trouble_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise SystemExit("a fault of ours")

    monkeypatch.setattr(listwatch.ListWatch, "_take", broken)

    def one() -> Iterator[bytes]:
        yield frame("MODIFIED", pod("a", 6))
        time.sleep(1)

    script = Scripted([listing(5, pod("a", 4))], [one])
    with watching(script, tmp_path) as (watch, seen):
        wait_for(lambda: watch.trouble())
        assert "the watch of pods died: SystemExit('a fault of ours')" in (watch.trouble() or "")
        time.sleep(1.1)
    assert "the thread died" in str(gaps(seen, "pods")[0].data["reason"])
