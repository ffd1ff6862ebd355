"""The end of a trial over real HTTP: last words awaited, newcomers read, and losses that void."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from pytest_drainwatch import collect as collecting
from pytest_drainwatch.collect import collect
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import Header
from pytest_drainwatch.core.scenario import Flows, Scenario, Trigger
from pytest_drainwatch.preflight import TrialVoid
from pytest_drainwatch.recorder import Recorder
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.workload import logs, newcomers, probe
from pytest_drainwatch.workload.logs import LogFollower
from tests.conductor.api_server import Call, Script, reply, serving, stream

# UID -> name: the pod that is terminated, another replica, and the replacement.
OLD, OTHER, NEW = "uid-old", "uid-other", "uid-new"
PODS = {OLD: "pod-old", OTHER: "pod-other", NEW: "pod-new"}


def entry(event: str, mono_ns: int, **more: object) -> bytes:
    line = {"event": event, "mono_ns": mono_ns, "clock": "b/1", "nonce": "n", **more}
    return json.dumps(line).encode() + b"\n"


STARTED, TERM, EXITING = (
    entry("probe_started", 5),
    entry("sigterm_received", 9),
    entry("exiting", 12),
)
RECEIVED = entry("udp_received", 20, flows=[{"flow": "udp-oneway-0001", "count": 3}])


def never_ends() -> Iterator[bytes]:
    """A bystander's log, until somebody lets go of it."""
    yield STARTED
    while True:
        time.sleep(0.05)
        yield b"another line\n"


def lost(*lines: bytes) -> Callable[[], Iterator[bytes]]:
    """A log that breaks off, each time that it is asked for."""

    def chunks() -> Iterator[bytes]:
        yield from lines
        raise ConnectionResetError

    return chunks


@dataclass
class Cluster:
    """Pods by name with the logs that are followed, and those that are read once."""

    followed: dict[str, Callable[[], Iterator[bytes]]] = field(default_factory=dict)
    whole: dict[str, bytes | int] = field(default_factory=dict)
    read_at: dict[str, float] = field(default_factory=dict)

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        url = urlsplit(call.path)
        *_, pod, last = url.path.split("/")
        if last == "events":
            about = {"kind": "Pod", "uid": OLD, "fieldPath": "spec.containers{probe}"}
            reply(handler, {"items": [{"involvedObject": about, "reason": "Killing"}]})
        elif last != "log":
            state = {"running": {"startedAt": "now"}}
            status = {"containerStatuses": [{"name": "probe", "state": state}]}
            uid = next(uid for uid, name in PODS.items() if name == last)
            reply(handler, {"metadata": {"uid": uid, "name": last}, "status": status})
        elif parse_qs(url.query).get("follow"):
            stream(handler, self.followed[pod]())
        else:
            self.read_at[pod] = time.monotonic()
            self._read(handler, self.whole[pod])

    def _read(self, handler: BaseHTTPRequestHandler, log: bytes | int) -> None:
        if isinstance(log, int):
            return reply(handler, {"message": "no log"}, log)
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.send_header("Content-Length", str(len(log)))
        handler.end_headers()
        handler.wfile.write(log)
        return None


@dataclass
class Watch:
    """Sees these pods now."""

    uids: tuple[str, ...]

    def pods(self) -> dict[str, dict[str, object]]:
        return {uid: {"name": PODS[uid]} for uid in self.uids}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "NOTES_TOLD_S", 0.1)
    monkeypatch.setattr(logs, "PAUSES_S", (0.02, 0.02))
    monkeypatch.setattr(logs, "STATUS_LAG_S", 0.1)
    monkeypatch.setattr(logs, "LOOK_S", 0.02)
    monkeypatch.setattr(probe, "EVENTS_PAUSE_S", 0.02)


@dataclass
class Trial:
    """A stage with its followers, ready to be collected."""

    stage: Stage
    followers: list[LogFollower]
    script: Script

    def collect(self, *, ended: tuple[str, ...] = (OLD,)) -> None:
        watch = Watch((OTHER, NEW))
        collect(self.stage, watch, self.followers, ended)  # type: ignore[arg-type]

    def seen(self, event: Event) -> list[Observation]:
        return [o for o in self.stage.recorder.observations() if o.event is event]

    def outcomes(self) -> dict[str, tuple[object, bool]]:
        """Of each log: whether it was read to its end, and whether there was a problem."""
        ends = self.seen(Event.LOG_ENDED)
        assert len(ends) == len(self.followers)
        return {o.subject: (o.data["complete"], bool(o.data["problem"])) for o in ends}

    def log_reads(self) -> list[str]:
        """The pods whose log was read once, as they were asked for."""
        paths = [call.path for call in self.script.calls]
        return [p.split("/")[-2] for p in paths if "/log" in p and "follow" not in p]


@contextmanager
def trial(
    cluster: Cluster,
    folder: Path,
    *uids: str,
    one_way: int = 0,
    verb: Trigger = Trigger.DELETE,
) -> Iterator[Trial]:
    """The logs of the pods ``uids`` are followed, and their first lines are there."""
    header = Header(
        drainwatch_version="test",
        git_commit="test",
        trial_id="t",
        wall_clock_start="",
        clock="b/1",
        scenario={},
        environment={},
    )
    with serving(cluster, folder) as (api, script):
        recorder = Recorder(folder / "recording.jsonl", header)
        stage = Stage(
            cluster=None,  # type: ignore[arg-type]
            api=api,
            scenario=Scenario(flows=Flows(tcp=1, udp=1, udp_one_way=one_way), trigger=verb),
            folder=folder,
            recorder=recorder,
            image="",
            namespace="ns",
            progress=None,  # type: ignore[arg-type]
        )
        followers = [LogFollower(api, "ns", PODS[uid], uid, recorder) for uid in uids]
        deadline = time.monotonic() + 20
        while not all(each.started for each in followers):
            assert time.monotonic() < deadline, [each.problem for each in followers]
            time.sleep(0.01)
        try:
            yield Trial(stage, followers, script)
        finally:
            for each in followers:
                each.stop()
                each.join(10)
            recorder.close()


def test_the_last_words_of_who_ended_are_awaited_and_the_others_let_go(tmp_path: Path) -> None:
    """Collecting begins before the terminated pod has said them; a bystander never will."""
    begun = threading.Event()

    def ends() -> Iterator[bytes]:
        yield STARTED
        begun.wait(20)
        time.sleep(0.3)
        yield TERM
        yield EXITING

    cluster = Cluster({"pod-old": ends, "pod-other": never_ends}, {"pod-new": STARTED})
    with trial(cluster, tmp_path, OLD, OTHER) as told:
        begun.set()
        told.collect()
        assert [o.subject for o in told.seen(Event.SIGTERM_RECEIVED)] == [OLD]
        assert [o.subject for o in told.seen(Event.EXITING)] == [OLD]
        assert told.outcomes() == {OLD: (True, False), OTHER: (False, False)}
        assert [o.data["reason"] for o in told.seen(Event.CLUSTER_EVENT)] == ["Killing"]
        assert len(told.seen(Event.CLUSTER_EVENTS_READ)) == 1
        assert len(told.log_reads()) == 1, "since when the newcomer has listened"
        assert all(each.join(20) for each in told.followers), "the other one is let go of"


def test_a_log_that_was_lost_before_its_sigterm_line_voids_the_trial(tmp_path: Path) -> None:
    """SIGTERM would be "not seen", which is not what happened."""
    with trial(Cluster({"pod-old": lost(STARTED)}), tmp_path, OLD) as told:
        with pytest.raises(TrialVoid, match=r"pod-old was lost before its SIGTERM line: .*cannot"):
            told.collect()
        assert told.outcomes() == {OLD: (False, True)}, "what is known of it is kept"


def test_a_log_that_was_lost_after_its_sigterm_line_is_told_and_no_more(tmp_path: Path) -> None:
    with trial(Cluster({"pod-old": lost(STARTED, TERM)}), tmp_path, OLD) as told:
        told.collect()
        assert told.outcomes() == {OLD: (False, True)}


def test_a_bystanders_lost_log_voids_nothing(tmp_path: Path) -> None:
    ends = {"pod-old": lambda: iter([STARTED, TERM, EXITING]), "pod-other": lost(STARTED)}
    with trial(Cluster(ends), tmp_path, OLD, OTHER) as told:
        told.followers[1].join(20)
        told.collect()
        assert told.outcomes() == {OLD: (True, False), OTHER: (False, True)}


def test_what_came_during_the_trial_tells_of_one_way_flows(tmp_path: Path) -> None:
    """Its log is read when it has had time to tell of everything: a line holds 32 flows."""
    ends = {"pod-old": lambda: iter([STARTED, TERM, EXITING]), "pod-other": never_ends}
    cluster = Cluster(ends, {"pod-new": STARTED + RECEIVED})
    with trial(cluster, tmp_path, OLD, OTHER, one_way=64) as told:
        began = time.monotonic()
        told.collect()
        assert cluster.read_at["pod-new"] - began >= 4 * collecting.NOTES_TOLD_S
        assert told.log_reads() == ["pod-new"], "the others' are followed already"
        (received,) = told.seen(Event.UDP_RECEIVED)
        assert (received.subject, received.at.lo, received.clock) == (NEW, 20, "b/1")
        assert {o.subject for o in told.seen(Event.PROBE_STARTED)} == {OLD, OTHER, NEW}


@pytest.mark.parametrize("refusal", [403, 404, 500])
def test_a_newcomer_whose_log_is_refused_costs_nobody_else(refusal: int, tmp_path: Path) -> None:
    seen: list[Observation] = []
    cluster = Cluster(whole={"pod-new": refusal, "pod-other": STARTED + RECEIVED})
    with serving(cluster, tmp_path) as (api, script):
        newcomers.record_logs(api, "ns", PODS, [OLD], seen.append)
    assert sorted(cluster.read_at) == ["pod-new", "pod-other"]
    assert [(o.event, o.subject) for o in seen] == [
        (Event.PROBE_STARTED, OTHER),
        (Event.UDP_RECEIVED, OTHER),
    ]
    assert all("container=probe" in call.path for call in script.calls)


def test_a_newcomer_says_only_what_a_workload_may_say(tmp_path: Path) -> None:
    seen: list[Observation] = []
    odd = entry("trigger_accepted", 7, targets=[NEW]) + b"\xff\xfe no text\n[]\n" + RECEIVED
    with serving(Cluster(whole={"pod-new": odd}), tmp_path) as (api, _):
        newcomers.record_logs(api, "ns", {NEW: "pod-new"}, [], seen.append)
    assert [o.event for o in seen] == [Event.UDP_RECEIVED]


def test_a_newcomers_log_that_breaks_off_tells_nothing(tmp_path: Path) -> None:
    """Half a log would be taken for the whole of it."""

    def torn(handler: BaseHTTPRequestHandler, call: Call) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(10 * len(RECEIVED)))
        handler.end_headers()
        handler.wfile.write(STARTED + RECEIVED)
        handler.close_connection = True

    seen: list[Observation] = []
    with serving(torn, tmp_path) as (api, script):
        newcomers.record_logs(api, "ns", {NEW: "pod-new"}, [], seen.append)
    assert len(script.calls) >= 1
    assert seen == []


def test_after_a_control_nobodys_last_words_are_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pods live on: waiting for their ends would only cost time, and a lost log is no loss."""
    monkeypatch.setattr(collecting, "LAST_WORDS_S", 60.0)
    monkeypatch.setattr(probe, "EVENTS_TIMEOUT_S", 60.0)
    cluster = Cluster({PODS[OTHER]: never_ends})
    with trial(cluster, tmp_path, OTHER, verb=Trigger.NONE) as measured:
        begun = time.monotonic()
        measured.collect(ended=(OTHER,))
        assert time.monotonic() - begun < 20
        assert measured.outcomes() == {OTHER: (False, False)}


@pytest.mark.parametrize("verb", [Trigger.NAMESPACE_DELETE, Trigger.SCALE])
def test_of_a_namespace_that_goes_no_event_can_be_had(verb: Trigger, tmp_path: Path) -> None:
    """Else none posted would read as nothing happened."""
    cluster = Cluster({PODS[OLD]: lambda: iter([STARTED, TERM, EXITING])})
    with trial(cluster, tmp_path, OLD, verb=verb) as measured:
        measured.collect()
        (read,) = measured.seen(Event.CLUSTER_EVENTS_READ)
        problem = read.data["problem"]
        if verb is Trigger.NAMESPACE_DELETE:
            assert "namespace was being deleted" in str(problem)
        else:
            assert problem is None
