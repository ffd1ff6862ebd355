"""Following a pod's log over real HTTP: broken streams, refusals, and what a log may not say."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.workload import logs
from pytest_drainwatch.workload.logs import LogFollower, join_logs, parse_log_line
from pytest_drainwatch.workload.place import Place
from pytest_drainwatch.workload.probe import evidence
from tests.conductor.api_server import Call, reply, serving, stream

ROOT = Path(__file__).resolve().parents[2]
RUNNING: dict[str, object] = {"running": {"startedAt": "now"}}
KILLED: dict[str, object] = {"terminated": {"exitCode": 137}}


def entry(event: str, mono_ns: object = 5, **more: object) -> bytes:
    line = {"event": event, "mono_ns": mono_ns, "clock": "b/1", "pod_uid": "u", "nonce": "n"}
    return json.dumps({**line, **more}).encode() + b"\n"


STARTED, LISTENING, TERM = entry("probe_started"), entry("listening"), entry("sigterm_received", 9)


class Pod:
    """A pod with a log: each stream in turn, then ones that stay open."""

    def __init__(self, *streams: Callable[[], Iterator[bytes]]) -> None:
        self._streams = iter(streams)
        self.opened = 0
        self.state: dict[str, object] | None = RUNNING
        self.refuse: tuple[int, str] | None = None
        self.over = threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        if "/log" in call.path:
            self.opened += 1
            if self.refuse:
                reply(handler, {"message": self.refuse[1]}, self.refuse[0])
            else:
                stream(handler, next(self._streams, self.open_end)())
        elif self.state is None:
            reply(handler, {"message": "not found"}, 404)
        else:
            status = {"containerStatuses": [{"name": "probe", "state": self.state}]}
            reply(handler, {"metadata": {"uid": "u", "name": "p"}, "status": status})

    def open_end(self) -> Iterator[bytes]:
        yield STARTED + LISTENING
        self.over.wait(10)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "PAUSES_S", (0.05, 0.1, 0.1))
    monkeypatch.setattr(logs, "STATUS_LAG_S", 0.3)
    monkeypatch.setattr(logs, "LOOK_S", 0.05)


def follow(
    pod: Pod, folder: Path, until: Callable[[LogFollower], object]
) -> tuple[LogFollower, list[Observation]]:
    seen: list[Observation] = []
    with serving(pod, folder) as (api, _):
        follower = LogFollower(api, "ns", "p", "u", seen.append)
        try:
            deadline = time.monotonic() + 10
            while not until(follower):
                assert time.monotonic() < deadline, (follower.problem, seen)
                time.sleep(0.01)
        finally:
            pod.over.set()
            follower.stop()
            follower.join(2)
    return follower, seen


def broken(*lines: bytes) -> Callable[[], Iterator[bytes]]:
    def chunks() -> Iterator[bytes]:
        yield from lines
        raise ConnectionResetError

    return chunks


def whole(*lines: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: iter(lines)


def names(seen: list[Observation]) -> list[str]:
    return [str(o.event) for o in seen]


def test_a_log_that_is_followed_says_so(tmp_path: Path) -> None:
    pod = Pod(whole(STARTED + LISTENING, TERM, entry("exiting", 12)))
    follower, seen = follow(pod, tmp_path, lambda f: f.ended)
    assert (follower.started, follower.problem, pod.opened) == (True, None, 1)
    assert names(seen) == ["probe_started", "listening", "sigterm_received", "exiting"]
    assert (seen[2].subject, seen[2].clock, seen[2].at) == ("u", "b/1", Interval.point(9))
    assert follower.complete
    outcome = follower.outcome()
    assert (outcome.event, outcome.subject) == (Event.LOG_ENDED, "u")
    assert outcome.data == {"container": "probe", "complete": True, "problem": None}


def test_a_refused_log_is_a_problem_at_once(tmp_path: Path) -> None:
    """`pods/log` is a right of its own: without it SIGTERM would silently be 'not seen'."""
    pod = Pod()
    pod.refuse = (403, "pods/log is forbidden")
    follower, _ = follow(pod, tmp_path, lambda f: f.ended)
    assert not follower.started
    assert not follower.complete
    assert "pod p cannot be followed: HTTP 403: pods/log is forbidden" in (follower.problem or "")
    assert pod.opened == 1


def test_a_broken_stream_is_followed_on_and_nothing_is_recorded_twice(tmp_path: Path) -> None:
    torn = TERM[: len(TERM) // 2]
    pod = Pod(broken(STARTED, LISTENING + torn), whole(STARTED + LISTENING, TERM))
    _, seen = follow(pod, tmp_path, lambda f: f.started and pod.opened >= 3)
    assert names(seen) == ["probe_started", "listening", "sigterm_received"]


def test_a_stream_that_ends_while_the_pod_lives_is_followed_on(tmp_path: Path) -> None:
    pod = Pod(whole(STARTED), whole(STARTED))
    follower, seen = follow(pod, tmp_path, lambda f: pod.opened == 3 and f.problem is None)
    assert not follower.problem
    assert names(seen)[:1] == ["probe_started"]


def test_a_log_that_is_lost_for_good_is_a_problem(tmp_path: Path) -> None:
    pod = Pod(*[broken(STARTED)] * 9)
    follower, _ = follow(pod, tmp_path, lambda f: f.ended)
    assert follower.started
    assert "cannot be followed" in (follower.problem or "")
    assert follower.outcome().data["complete"] is False
    assert pod.opened == 4
    pod = Pod(*[whole(STARTED)] * 9)
    follower, _ = follow(pod, tmp_path, lambda f: f.ended)
    assert "the stream ended, though the pod lives" in (follower.problem or "")


def test_a_log_that_is_let_go_of_in_trouble_stays_in_trouble(tmp_path: Path) -> None:
    """Who has not seen its end must not take its last line for the last word."""
    pod = Pod(broken(STARTED), broken(STARTED), broken(STARTED))
    follower, _ = follow(pod, tmp_path, lambda f: f.problem is not None)
    assert "cannot be followed" in (follower.problem or "")
    assert follower.outcome().data["complete"] is False


@pytest.mark.parametrize("state", [KILLED, None])
def test_a_killed_container_says_no_last_words_and_that_is_no_problem(
    state: dict[str, object] | None, tmp_path: Path
) -> None:
    pod = Pod(whole(STARTED, TERM))
    pod.state = state
    follower, _ = follow(pod, tmp_path, lambda f: f.ended)
    assert (follower.problem, pod.opened, follower.complete) == (None, 1, True)


def test_logs_are_joined_under_one_deadline_and_let_go(tmp_path: Path) -> None:
    """Bystanders' logs never end."""
    with serving(Pod(), tmp_path) as (api, _):
        followers = [LogFollower(api, "ns", "p", "u", lambda _: None) for _ in range(40)]
        while not all(f.started for f in followers):
            time.sleep(0.01)
        started = time.monotonic()
        assert not join_logs(followers, 0.4)
        # One after the other they would take 16 s; how quickly they end is no matter.
        assert 0.4 <= time.monotonic() - started < 12
        assert all(f.join(10) for f in followers)
        assert [f.problem for f in followers] == [None] * 40
        assert not any(f.complete for f in followers), "let go of is not read to the end"


@pytest.mark.parametrize(
    "line",
    [
        entry("void", reason="says the workload"),
        entry("trigger_accepted", targets=["u"]),
        entry("flow_fin"),
        entry("pod"),
        entry("listening", "5"),
        entry("listening", True),
        entry("listening", 5.0),
        entry("listening", None),
        entry("listening", -1),
        entry("listening", 10**40),
        entry("listening", clock=None),
        entry("listening", clock=""),
        entry("listening").replace(b'"listening"', b'["listening"]'),
        entry("listening", value=float("nan")),
        b"[]",
        b"5",
        b"null",
        b'"listening"',
        b"[" * 100_000,
        b"not json",
    ],
)
def test_a_workload_cannot_say_what_only_the_instrument_says(line: bytes) -> None:
    assert parse_log_line(line.decode(), "u") is None


def test_every_event_of_the_probe_is_understood() -> None:
    source = (ROOT / "probe_image" / "probe.py").read_text()
    said = set(re.findall(r'\blog\(\s*"([a-z_0-9]+)"', source)) | {"fatal"}
    assert len(said) > 10
    assert {str(event) for event in logs.PROBE_EVENTS} >= said


def test_what_the_probe_may_say_is_its_section_of_the_vocabulary() -> None:
    events = list(Event)
    assert frozenset(events[events.index(Event.PROBE_STARTED) :]) == logs.PROBE_EVENTS


def test_a_line_that_is_too_long_is_dropped_and_its_neighbours_are_not() -> None:
    long = b"x" * (3 * logs.LINE_LIMIT)
    chunks = [
        b"a\n" + long[:100],
        long[100:40_000],
        long[40_000:],
        b"tail\nb",
        b"\n",
        long,
        b"\nc\n",
    ]
    assert list(logs._lines(chunks)) == ["a", "b", "c"]


def test_evidence_is_best_effort_item_by_item(tmp_path: Path) -> None:
    """One odd object (an Event about nothing) must not cost the rest."""

    def answer(handler: BaseHTTPRequestHandler, call: Call) -> None:
        if "/log" in call.path:
            reply(handler, {"message": "no"}, 500)
        elif "/events" in call.path:
            about = {"kind": "Pod", "name": "p"}
            items = [{"reason": "Odd"}, None, {"involvedObject": about, "reason": "Failed"}]
            reply(handler, {"items": items})
        else:
            reply(handler, {"items": [{}, {"metadata": {"name": "p", "uid": "u"}}]})

    with serving(answer, tmp_path) as (api, _):
        found = list(evidence(api, Place(namespace="ns"), Interval.point(1)))
    assert [(str(o.event), o.subject) for o in found] == [
        ("cluster_event", "None/None"),
        ("cluster_event", "Pod/p"),
        ("pod_log", "u"),
    ]
    assert "no log: HTTP 500" in str(found[-1].data["tail"])


@pytest.mark.parametrize("body", [[], "text", {"items": None}, {"items": "x"}, None])
def test_evidence_hides_no_failure_behind_an_odd_answer(body: object, tmp_path: Path) -> None:
    with serving(lambda handler, _: reply(handler, body), tmp_path) as (api, _):
        assert list(evidence(api, Place(namespace="ns"), Interval.point(1))) == []
