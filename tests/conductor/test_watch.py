"""The watch loop against a real HTTP stream: frames, bookmarks, 410, gaps, and no secrets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlparse

from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.watch import Watch
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
        self.quiet = threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        query = parse_qs(urlparse(call.path).query)
        is_watch = [w.lower() for w in query.get("watch", ())] == ["true"]
        if "endpointslices" in call.path:
            if is_watch:
                stream(handler, self._hang())
            else:
                reply(handler, {"metadata": {"resourceVersion": "1"}, "items": []})
        elif is_watch:
            self.watched_from.append(query["resourceVersion"][0])
            stream(handler, next(self._streams, self._hang)())
        else:
            reply(handler, next(self._lists))

    def _hang(self) -> Iterator[bytes]:
        self.quiet.wait(20)
        yield from ()


def listing(version: int, *items: dict[str, object]) -> dict[str, object]:
    return {"metadata": {"resourceVersion": str(version)}, "items": list(items)}


def watch_pods(
    script: Scripted, folder: Path, until: Callable[[list[Observation]], bool]
) -> list[Observation]:
    """Run the watch until ``until`` holds of what it recorded about pods."""
    seen: list[Observation] = []

    def of_pods() -> list[Observation]:
        return [o for o in list(seen) if o.event is not Event.ENDPOINT_SLICE and not _other(o)]

    with (
        serving(script, folder) as (api, _),
        Watch(api, "ns", pods="app=x", slices="svc=x", record=seen.append),
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


def test_a_stream_that_ends_is_a_gap_too(tmp_path: Path) -> None:
    def short() -> Iterator[bytes]:
        yield frame("BOOKMARK", pod("a", 50))

    script = Scripted([listing(5, pod("a", 4)), listing(60, pod("a", 4))], [short])
    seen = watch_pods(script, tmp_path, count(Event.WATCH_GAP, 1))
    assert [o.data["reason"] for o in seen if o.event is Event.WATCH_GAP] == ["the stream ended"]
    # A bookmark moves the version and is no change of a pod.
    assert [o.data["type"] for o in seen if o.event is Event.POD] == ["LISTED", "LISTED"]


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
