"""HTTP lanes against servers on loopback that end in every way that a server can."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_drainwatch.core.flow.classify import Outcome
from pytest_drainwatch.core.http.document import How
from pytest_drainwatch.core.http.ending import Ending, LaneKind, Over, Pool
from pytest_drainwatch.core.http.fate import Fate
from pytest_drainwatch.core.observation import Event
from tests.loopback.http_servers import (
    SECRET,
    Asking,
    head,
    judged,
    of,
    respond,
    runs,
    stdlib,
)
from tests.loopback.rig import LOOPBACK, PATIENCE_S, TOP, Rig
from tests.loopback.servers import Peer, ScriptedTcp


def serve(peer: Peer) -> None:
    """Answer all that comes."""
    while head(peer):
        respond(peer, "200 OK", "X-Pod-Name: pod-a")


def test_all_kinds_of_lanes_are_served_and_their_books_add_up(rig: Rig) -> None:
    with stdlib() as server:
        asking = Asking(
            rig,
            server.port,
            keepalive=3,
            idle=3,
            in_flight=2,
            new=2,
            in_flight_path="/slow?s=0.5",
            in_flight_ns=500_000_000,
            identity_header="x-pod-name",
        )
        asking.ready().plan(1.0)
        asking.until_trigger(1.0)
        asking.agent.await_status(lambda s: s["http"]["due"] == 0, "all asked")
        asking.over()
        status = asking.agent.lines[-1]["http"]
        assert (status["identified"], status["responders"]) == (10, ["pod-a"])
        assert status["failing"] == 0
        assert status["problem"] is None
        part = asking.recorded()
    found = judged(part.seen, asking.trigger_ns)
    assert {kind.kind for kind in found.kinds} == set(LaneKind)
    for kind in found.kinds:
        assert kind.failed == 0
        assert kind.fates_before.keys() | kind.fates.keys() == {"served"}
        assert kind.planned == kind.requests + (kind.missed_slots or 0)
        assert {one.by for one in kind.answered_by} == {"pod-a"}
    assert (of(found, LaneKind.IDLE).attempts, of(found, LaneKind.IN_FLIGHT).attempts) == (3, 2)
    # Each lane's pooled connection is there from its first request to the end.
    assert [c.outcome for c in found.connections] == [Outcome.SURVIVED] * 8
    assert all(c.served_after for c in found.connections if c.lane.startswith("keepalive"))
    assert found.lost == 0


def test_nothing_of_a_response_but_named_facts_is_recorded(rig: Rig) -> None:
    with stdlib() as server:
        asking = Asking(
            rig,
            server.port,
            keepalive=1,
            new=1,
            idle=1,
            headers=[["Authorization", f"Bearer {SECRET}"], ["X-Token", SECRET]],
            path=f"/?token={SECRET}",
            identity_header="X-Pod-Name",
        )
        asking.ready()
        part = asking.recorded()
    assert runs(part, "keepalive-00")
    assert SECRET not in str(part.seen)
    assert SECRET not in str(asking.agent.lines)


def test_an_idle_connection_that_is_closed_before_the_write_is_dialled_again(rig: Rig) -> None:
    """The FIN is read while nothing is outstanding: nothing was lost, and a client may retry."""

    def script(peer: Peer) -> None:
        if peer.number == 0:
            head(peer)
            respond(peer)
            closing.append(peer)
            while not may_close:
                time.sleep(0.005)
            peer.half_close()
            head(peer)
        else:
            serve(peer)

    closing: list[Peer] = []
    may_close: list[bool] = []
    with ScriptedTcp(script) as server:
        asking = Asking(rig, server.port, idle=1)
        asking.ready().plan(0.5)
        asking.until_trigger(0.05)
        may_close.append(True)
        asking.agent.await_status(lambda s: s["http"]["due"] == 0, "the idle request")
        asking.over()
        part = asking.recorded()
        assert closing[0].closed_ns is not None
        lo_ns, hi_ns = closing[0].closed_ns
    found = judged(part.seen, asking.trigger_ns)
    (ended, _) = [o for o in part.of("idle-00") if o.event is Event.HTTP_CONNECTION]
    assert ended.data["over"] == Over.FIN
    assert ended.at.lo <= hi_ns
    assert lo_ns <= ended.at.hi
    idle = of(found, LaneKind.IDLE)
    assert idle.fates == {"closed-before-write": 1}
    assert (idle.failed, idle.redialled) == (0, 1)
    (old,) = found.connections
    assert (old.outcome, old.how) == (Outcome.DRAINED, How.FIN_IDLE)


@pytest.mark.parametrize("ends", ["fin", "reset"])
def test_the_end_of_each_of_many_idle_connections_lies_within_its_bounds(
    rig: Rig, ends: str
) -> None:
    """They end all at once: the last one is stamped before the first is looked at."""

    def script(peer: Peer) -> None:
        head(peer)
        respond(peer)
        end_all.wait(PATIENCE_S)
        if ends == "reset":
            peer.reset()
        else:
            peer.half_close()
            head(peer)

    end_all = threading.Event()
    with ScriptedTcp(script) as server:
        asking = Asking(rig, server.port, idle=30).ready().plan(3600)
        end_all.set()
        asking.agent.await_status(lambda s: s["http"]["old"] == 0, "no pooled connection")
        part = asking.recorded()
        truth = {f"{LOOPBACK}:{peer.port}": peer.closed_ns for peer in server.peers[:30]}
    seen = [
        o for o in part.seen if o.event is Event.HTTP_CONNECTION and o.data["over"] != Over.OPEN
    ]
    assert len(seen) >= 30
    for o in seen:
        closed_ns = truth.get(str(o.data["local"]))
        if closed_ns is not None:  # else of one that was opened again
            assert o.data["over"] == (Over.FIN if ends == "fin" else Over.RST)
            assert o.at.lo <= closed_ns[1]
            assert closed_ns[0] <= o.at.hi


def after_one_request(ends: str) -> ScriptedTcp:
    """A server that serves one request and ends the connection when the second one has come."""

    def script(peer: Peer) -> None:
        if peer.number:
            serve(peer)
            return
        head(peer)
        respond(peer)
        if not head(peer):
            return
        if ends == "reset":
            peer.reset()
        elif ends == "fin":
            peer.half_close()
            head(peer)
        elif ends == "part":
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            peer.half_close()
            head(peer)
        elif ends == "garbage":
            peer.send(b"this is no HTTP\r\n\r\n")
            head(peer)
        elif ends == "busy":
            respond(peer, "503 Service Unavailable")
            serve(peer)
        elif ends == "announced":
            respond(peer, "200 OK", "Connection: close")
            peer.half_close()
            head(peer)

    return ScriptedTcp(script)


ENDS = [
    ("reset", Fate.WRITTEN_THEN_RESET, True, Outcome.SEVERED, How.RST_OUTSTANDING),
    ("fin", Fate.WRITTEN_THEN_CLOSED, True, Outcome.SEVERED, How.FIN_OUTSTANDING),
    ("part", Fate.WRITTEN_THEN_CLOSED, False, Outcome.SEVERED, How.FIN_OUTSTANDING),
    ("garbage", Fate.NOT_HTTP, False, Outcome.NOT_MEASURED, How.CLIENT),
    ("busy", Fate.SERVER_ERROR, False, Outcome.SURVIVED, How.NONE),
    ("announced", Fate.SERVED, None, Outcome.DRAINED, How.CONNECTION_CLOSE),
]


@pytest.mark.parametrize(("ends", "fate", "safe", "outcome", "how"), ENDS)
def test_how_the_second_request_on_a_connection_ends(
    rig: Rig, ends: str, fate: Fate, safe: bool | None, outcome: Outcome, how: How
) -> None:
    with after_one_request(ends) as server:
        asking = Asking(rig, server.port, idle=1)
        asking.ready().plan(0.3)
        asking.until_trigger()
        asking.agent.await_status(lambda s: s["http"]["due"] == 0, "the idle request")
        asking.over()
        part = asking.recorded()
    found = judged(part.seen, asking.trigger_ns)
    idle = of(found, LaneKind.IDLE)
    assert idle.fates == {str(fate): 1}
    assert (idle.retry_safe, idle.not_retry_safe) == (safe is True, safe is False)
    old = [c for c in found.connections if c.connection == 1]
    assert [(c.outcome, c.how) for c in old] == [(outcome, how)]


def test_a_response_that_a_reset_follows_is_a_response(rig: Rig) -> None:
    """What came before the reset is read first, and the error believed last."""

    def script(peer: Peer) -> None:
        head(peer)
        respond(peer)
        peer.reset()

    with ScriptedTcp(script) as server:
        asking = Asking(rig, server.port, keepalive=1, rate_hz=50)
        asking.ready()
        time.sleep(0.5)
        part = asking.recorded()
    found = judged(part.seen, 0)
    assert of(found, LaneKind.KEEPALIVE).fates.keys() <= {"served", "closed-before-write"}
    # Without a pool: one that was made while the request before it was under way.
    pools = {o.data.get("pool") for o in runs(part, "keepalive-00")[1:]}
    assert Pool.RST in pools
    assert pools <= {Pool.RST, None}


def test_a_response_whose_end_is_that_of_its_connection_is_told_apart(rig: Rig) -> None:
    """Nobody can tell whether it was cut: so the report says how many there were."""

    def script(peer: Peer) -> None:
        head(peer)
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nhalf of what the server meant to")
        peer.half_close()
        head(peer)

    with ScriptedTcp(script) as server:
        asking = Asking(rig, server.port, keepalive=1, rate_hz=20).ready()
        part = asking.recorded()
    assert {o.data.get("by_fin") for o in runs(part, "keepalive-00")} == {True}
    keepalive = of(judged(part.seen, 0), LaneKind.KEEPALIVE)
    assert any("had no length" in note for note in keepalive.notes)


def test_the_end_of_a_response_without_length_is_a_fin_within_its_bounds(rig: Rig) -> None:
    def script(peer: Peer) -> None:
        head(peer)
        respond(peer)
        if not peer.number and head(peer):
            peer.send(b"HTTP/1.1 200 OK\r\n\r\nas much as there is")
            peer.half_close()
        head(peer)

    with ScriptedTcp(script) as server:
        asking = Asking(rig, server.port, idle=1)
        asking.ready().plan(0.3)
        asking.agent.await_status(lambda s: s["http"]["due"] == 0, "the idle request")
        asking.over()
        part = asking.recorded()
        assert server.peers[0].closed_ns is not None
        lo_ns, hi_ns = server.peers[0].closed_ns
    (ended, *_) = [o for o in part.of("idle-00") if o.event is Event.HTTP_CONNECTION]
    assert ended.data["over"] == Over.FIN
    assert ended.at.lo <= hi_ns
    assert lo_ns <= ended.at.hi


def test_a_server_that_says_why_it_closes_though_nobody_asked(rig: Rig) -> None:
    """Some servers send a 408 on an idle connection: it answers no request of ours."""

    def script(peer: Peer) -> None:
        if peer.number:
            serve(peer)
            return
        head(peer)
        respond(peer)
        time.sleep(0.05)
        respond(peer, "408 Request Timeout", "Connection: close")
        peer.half_close()
        head(peer)

    with ScriptedTcp(script) as server:
        asking = Asking(rig, server.port, keepalive=1, rate_hz=4)
        asking.ready()
        time.sleep(0.6)
        part = asking.recorded()
    keepalive = of(judged(part.seen, 0), LaneKind.KEEPALIVE)
    assert keepalive.failed == 0
    assert keepalive.redialled == 1
    assert keepalive.statuses.keys() == {"200"}


def test_a_silent_server_neither_holds_the_schedule_up_nor_goes_unnoticed(rig: Rig) -> None:
    """Open loop: a slot whose lane waits for an answer dials a connection of its own."""

    def script(peer: Peer) -> None:
        if peer.number < 1:
            head(peer)
            respond(peer)
        head(peer)
        head(peer)

    with ScriptedTcp(script) as server:
        asking = Asking(rig, server.port, keepalive=1, rate_hz=20, timeout_ns=500_000_000)
        asking.ready()
        begun_ns = time.monotonic_ns()
        time.sleep(1.5)
        part = asking.recorded()
    keepalive = of(judged(part.seen, begun_ns), LaneKind.KEEPALIVE)
    assert keepalive.fates.keys() <= {"timeout", "client-stall", "unfinished", "served"}
    assert keepalive.fates["timeout"] > 5
    assert keepalive.planned == keepalive.requests + (keepalive.missed_slots or 0)
    # A lane that waited for each answer would have asked three times.
    assert keepalive.requests > 10


def test_a_port_where_nobody_listens(rig: Rig) -> None:
    with stdlib() as server:
        port = server.port
    asking = Asking(rig, port, keepalive=2, idle=2, new=1)
    status = asking.agent.await_status(
        lambda s: bool(s["http"]) and s["http"]["failing"] == 5, "all lanes failing"
    )
    assert status["http"]["ready"] == 0
    assert status["http"]["problem"] == "refused (ECONNREFUSED)"
    part = asking.recorded()
    assert {o.data["ended"] for o in runs(part, "keepalive-00")} == {Ending.REFUSED}


def test_another_status_than_expected_is_not_ready_and_says_so(rig: Rig) -> None:
    with stdlib() as server:
        asking = Asking(rig, server.port, keepalive=1, path="/missing")
        status = asking.agent.await_status(
            lambda s: bool(s["http"]) and s["http"]["failed"] > 0, "a failed request"
        )
        assert status["http"]["ready"] == 0
        assert status["http"]["problem"] == "status 404, expected 200"
        part = asking.recorded()
    assert of(judged(part.seen, 0), LaneKind.KEEPALIVE).fates.keys() == {"unexpected-status"}


def test_an_identity_header_that_is_not_there_is_named(rig: Rig) -> None:
    with stdlib() as server:
        asking = Asking(rig, server.port, keepalive=1, identity_header="X-Nobody").ready()
        status = asking.agent.lines[-1]["http"]
        assert status["identified"] == 0
        assert status["problem"] == "no header X-Nobody in a response"


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_other_methods(rig: Rig, method: str) -> None:
    with stdlib() as server:
        part = Asking(rig, server.port, keepalive=1, new=1, method=method).ready().recorded()
    for kind in judged(part.seen, 0).kinds:
        assert kind.fates.keys() == {"served"}


def test_an_idle_lane_opens_again_if_the_server_closes_it_before_the_trigger(rig: Rig) -> None:
    def script(peer: Peer) -> None:
        head(peer)
        respond(peer)
        if peer.number == 0:
            peer.half_close()
        serve(peer)

    with ScriptedTcp(script) as server:
        asking = Asking(rig, server.port, idle=1).ready().plan(1.5)
        asking.until_trigger(0.1)
        asking.agent.await_status(lambda s: s["http"]["due"] == 0, "the idle request")
        asking.over()
        part = asking.recorded()
    assert len(runs(part, "idle-00", opening=True)) == 2
    (last,) = runs(part, "idle-00")
    assert last.data["pool"] == Pool.REUSED
    assert of(judged(part.seen, asking.trigger_ns), LaneKind.IDLE).fates == {"served": 1}


def test_a_server_that_is_killed_in_the_middle_of_all(rig: Rig) -> None:
    """The default of http.server: SIGTERM ends it at once, whatever is in flight."""
    with stdlib() as server:
        asking = Asking(
            rig,
            server.port,
            keepalive=2,
            in_flight=2,
            idle=2,
            in_flight_path="/slow?s=2",
            in_flight_ns=2_000_000_000,
        )
        asking.ready().plan(2.0)
        asking.until_trigger()
        server.end(signal.SIGTERM)
        asking.agent.await_status(lambda s: s["http"]["due"] == 0, "all asked")
        time.sleep(1.0)
        part = asking.recorded()
    found = judged(part.seen, asking.trigger_ns)
    assert of(found, LaneKind.IN_FLIGHT).fates == {"written-then-closed": 2}
    idle = of(found, LaneKind.IDLE)
    assert idle.fates == {"refused": 2}  # the pooled one was found closed, the new one refused
    assert idle.redialled == 2
    keepalive = of(found, LaneKind.KEEPALIVE)
    assert keepalive.fates["refused"] > 10
    assert keepalive.failing is not None
    assert keepalive.failing.recovered_ns is None


def test_requests_that_nobody_answers_are_few_lines(rig: Rig) -> None:
    """Each dials a connection of its own, and they went the same way all the same."""
    with stdlib() as server:
        port = server.port
    asking = Asking(rig, port, keepalive=2, rate_hz=50)
    asking.agent.await_status(
        lambda s: bool(s["http"]) and s["http"]["failed"] >= 60, "sixty failed requests"
    )
    part = asking.recorded()
    assert len(runs(part, "keepalive-00")) < 10  # one, but for slots that a busy machine missed
    assert not [o for o in part.seen if o.event is Event.HTTP_CONNECTION]
    assert of(judged(part.seen, 0), LaneKind.KEEPALIVE).fates["refused"] >= 60


def test_a_server_that_keeps_no_connection_open_makes_no_line_for_each(rig: Rig) -> None:
    def script(peer: Peer) -> None:
        head(peer)
        respond(peer, "200 OK", "Connection: close")

    with ScriptedTcp(script) as server:
        asking = Asking(rig, server.port, keepalive=1, rate_hz=50).ready()
        time.sleep(1.0)
        part = asking.recorded()
    keepalive = of(judged(part.seen, 0), LaneKind.KEEPALIVE)
    assert keepalive.fates.keys() == {"served"}
    assert keepalive.requests > 30
    assert len(runs(part, "keepalive-00")) < keepalive.requests / 3
    assert not [o for o in part.seen if o.event is Event.HTTP_CONNECTION]


@pytest.mark.parametrize("lane", ["keepalive", "new"])
def test_a_client_that_was_stopped_blames_nobody(rig: Rig, lane: str) -> None:
    """What came while it could not look is read before any request is given up."""
    with stdlib() as server:
        asking = Asking(rig, server.port, **{lane: 4}, rate_hz=20, timeout_ns=10**9).ready()
        begun_ns = time.monotonic_ns()
        for _ in range(2):
            time.sleep(0.3)
            asking.agent.signal(signal.SIGSTOP)
            time.sleep(1.2)
            asking.agent.signal(signal.SIGCONT)
        asking.agent.await_status(lambda s: s["http"]["served"] > 0, "a status after that")
        time.sleep(0.3)
        part = asking.recorded()
    assert part.all(Event.AGENT_STALLED)
    (kind,) = judged(part.seen, begun_ns).kinds
    assert kind.failed == 0
    assert kind.fates.keys() <= {"served", "client-stall", "unfinished"}
    assert kind.missed_slots is not None
    assert kind.missed_slots > 10  # and it says how much it missed


def test_ipv6(rig: Rig) -> None:
    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    port = listener.getsockname()[1]

    def answer() -> None:
        for _ in range(3):
            sock, _ = listener.accept()
            with sock:
                heads.append(sock.recv(65536))
                sock.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")

    heads: list[bytes] = []
    answering = threading.Thread(target=answer, daemon=True)
    answering.start()
    long = "0:0:0:0:0:0:0:1"
    asking = Asking(rig, port, address=long, keepalive=1, rate_hz=20, expect_status=204).ready()
    answering.join()
    part = asking.recorded()
    listener.close()
    assert f"Host: [::1]:{port}".encode() in heads[0]
    assert of(judged(part.seen, 0), LaneKind.KEEPALIVE).served >= 3


def test_an_agent_without_h11_says_so(tmp_path: Path) -> None:
    (tmp_path / "h11.py").write_text("raise ImportError('there is no h11 here')")
    config = {
        "record": str(tmp_path / "part.jsonl"),
        "http": {"address": LOOPBACK, "port": 1, "keepalive": 1},
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest_drainwatch.flows"],
        input=json.dumps(config) + "\n",
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{TOP}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    (status,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert "there is no h11 here" in status["error"]["what"]
    assert status["error"]["next"] == "pip install h11"
