"""Cases about HTTP keep-alive: what pooled connections meet when their server is told to end."""

from __future__ import annotations

import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.core.http.document import How
from pytest_drainwatch.core.http.ending import Ending, LaneKind, Over, Pool
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.render import http as shown
from pytest_drainwatch.render.terminal import show
from tests.core import story as s
from tests.core.http.asked import Asked, Lane, end, http
from tests.core.story import OLD
from tests.loopback.http_servers import Asking, head, judged, of, respond, runs, stdlib
from tests.loopback.rig import LOOPBACK, Rig
from tests.loopback.servers import Peer, ScriptedTcp

LANES = 20
WITHIN_NS = 10**9


class Ending20:
    """A keep-alive server that is told to end, as its script says."""

    def __init__(self, way: str) -> None:
        self.told = threading.Event()
        self.requests_since = 0
        self._way = way
        self._lock = threading.Lock()
        self.server = ScriptedTcp(self._script)

    def _script(self, peer: Peer) -> None:
        while True:
            if self._way == "closes idle ones" and not self._wait(peer):
                peer.half_close()
                head(peer)
                return
            if not head(peer):
                return
            since = self.told.is_set()
            if not since:
                respond(peer)
                continue
            with self._lock:
                self.requests_since += 1
            if self._way == "resets":
                peer.reset()
                return
            if self._way == "answers 500":
                respond(peer, "500 Internal Server Error")
            elif self._way == "announces":
                respond(peer, "200 OK", "Connection: close")
                peer.half_close()
                head(peer)
                return
            else:
                respond(peer)

    def _wait(self, peer: Peer) -> bool:
        """Until there is a request; False once it was told to end."""
        peer.sock.settimeout(0.01)
        try:
            while True:
                with suppress(TimeoutError):
                    peer.sock.recv(1, socket.MSG_PEEK)
                    return True
                if self.told.is_set() and peer.number < LANES:
                    return False
        finally:
            peer.sock.settimeout(None)


@pytest.mark.parametrize(
    ("way", "fates", "retries", "outcome"),
    [
        ("closes idle ones", {"closed-before-write": LANES}, (0, 0), Outcome.DRAINED),
        ("resets", {"written-then-reset": LANES}, (LANES, 0), Outcome.SEVERED),
        ("answers 500", {"server-error": LANES}, (0, LANES), Outcome.SURVIVED),
        ("goes on", {"served": LANES}, (0, 0), Outcome.SURVIVED),
        ("announces", {"served": LANES}, (0, 0), Outcome.DRAINED),
    ],
)
def test_c13_what_the_next_request_on_each_of_20_idle_connections_meets(
    rig: Rig, way: str, fates: dict[str, int], retries: tuple[int, int], outcome: Outcome
) -> None:
    """Each asks at some time of its own after the server was told to end."""
    ending = Ending20(way)
    with ending.server as server:
        asking = Asking(rig, server.port, idle=LANES, idle_within_ns=WITHIN_NS)
        asking.ready().plan(0.6)
        told_ns = asking.until_trigger(-0.15)  # before the first of them asks
        ending.told.set()
        asking.agent.await_status(lambda st: st["http"]["due"] == 0, "all asked")
        asking.over()
        part = asking.recorded()
    found = judged(part.seen, told_ns)
    idle = of(found, LaneKind.IDLE)
    assert idle.fates == fates
    assert (idle.retry_safe, idle.not_retry_safe) == retries
    old = [one for one in found.connections if one.connection == 1]
    assert [one.outcome for one in old] == [outcome] * LANES
    begun = [o.at.lo for n in range(LANES) for o in runs(part, f"idle-{n:02d}")]
    assert len(set(begun)) == LANES
    assert min(begun) >= asking.trigger_ns


def test_c13_drained_needs_a_word_or_a_fin_before_any_write() -> None:
    """The same FIN with a request under way is severed, however gently it came."""
    for outstanding, outcome in ((False, Outcome.DRAINED), (True, Outcome.SEVERED)):
        ends = [end("idle-00", Over.FIN, 2000, outstanding=outstanding)]
        lane = Lane(name="idle-00", asked=[Asked(ms=1000)], ends=ends)
        found = derive(s.recording([s.accepted()], s.cluster(), http(lane))).trial.requests
        assert found is not None
        assert [one.outcome for one in found.connections] == [outcome]


@pytest.mark.parametrize("cut", ["in-flight-00", "in-flight-01"])
def test_c15_the_report_says_which_of_two_requests_in_flight_was_cut(cut: str) -> None:
    lanes = []
    for name in ("in-flight-00", "in-flight-01"):
        ended = Ending.RST if name == cut else Ending.RESPONSE
        took_ms = 5100 if name == cut else 10_000
        over = Over.RST if name == cut else Over.CLIENT
        ends = [end(name, over, took_ms - 5000, outstanding=name == cut, said_close=name != cut)]
        asked = [Asked(ms=-5000, took_ms=took_ms, ended=ended, said_close=name != cut)]
        lanes.append(Lane(name=name, asked=asked, ends=ends))
    told = derive(s.recording([s.accepted()], s.cluster(), http(*lanes)))
    found = told.trial.requests
    assert found is not None
    (kind,) = found.kinds
    assert (kind.attempts, kind.failed) == (2, 1)
    assert kind.fates == {"served": 1, "written-then-reset": 1}
    assert [one.lane for one in found.not_served] == [cut]
    outcomes = {one.lane: one.outcome for one in found.connections}
    assert outcomes.pop(cut) is Outcome.SEVERED
    assert list(outcomes.values()) == [Outcome.DRAINED]
    assert f"{cut}: written-then-reset" in show(told)


class Picking:
    """A TCP proxy that sends new connections to ``pick``, and leaves old ones where they are."""

    def __init__(self, pick: int) -> None:
        self.pick = pick
        self._listener = socket.create_server((LOOPBACK, 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for sock in self._open:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        while True:
            try:
                front, _ = self._listener.accept()
                back = socket.create_connection((LOOPBACK, self.pick))
            except OSError:
                return
            for sock in (front, back):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open += [front, back]
            for one, other in ((front, back), (back, front)):
                threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    def _copy(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)


def test_c16_a_proxy_that_is_drained_for_new_connections_and_not_for_pooled_ones(
    rig: Rig,
) -> None:
    with stdlib(name="pod-a") as a, stdlib(name="pod-b") as b, Picking(a.port) as proxy:
        asking = Asking(
            rig,
            proxy.port,
            keepalive=10,
            new=2,
            identity_header="X-Pod-Name",
            in_flight_ns=10**9,
        )
        asking.ready().plan(0.5)
        moved_ns = asking.until_trigger()
        proxy.pick = b.port  # as a server in maintenance: no new picks
        time.sleep(1.0)
        ended_ns = time.monotonic_ns()
        a.end(signal.SIGKILL)
        time.sleep(0.7)
        part = asking.recorded()
    found = judged(part.seen, moved_ns)
    new = {one.by: one for one in of(found, LaneKind.NEW).answered_by}
    # Two times: of new connections, and of pooled ones.
    last_new_ns = new["pod-a"].last_ns[1] if "pod-a" in new else 0
    assert last_new_ns < 500_000_000
    pooled = {one.by: one for one in of(found, LaneKind.KEEPALIVE).answered_by}
    assert pooled["pod-a"].last_ns[1] > last_new_ns
    old = [one for one in found.connections if one.connection == 1]
    assert len(old) == 10
    for one in old:
        assert one.by == "pod-a"
        assert one.ended_ns is not None
        assert one.ended_ns[1] >= ended_ns - moved_ns
        assert one.served_after > 5


def test_c16_the_report_says_so_in_words() -> None:
    old_pod, new_pod = f"pod-{OLD}", "pod-uid-new"
    pooled = Lane(
        asked=[Asked(ms=-5000, count=100, by=old_pod), Asked(ms=5000, ended=Ending.RST)],
        ends=[end("keepalive-00", Over.RST, 5001, by=old_pod, outstanding=True)],
    )
    new = Lane(
        name="new-00",
        asked=[
            Asked(ms=-5000, count=60, by=old_pod, pool=Pool.EMPTY),
            Asked(ms=1000, count=60, by=new_pod, pool=Pool.EMPTY),
        ],
    )
    told = derive(s.recording([s.accepted()], s.cluster(), http(pooled, new)))
    assert "drained for new connections, and not for pooled ones" in show(told)
    found = told.trial.requests
    assert found is not None
    (old,) = found.old_connections
    assert (old.role, old.outcomes) == (Role.TARGET, {"severed": 1})
    # Had new connections stayed with it as long, nothing had been drained at all.
    still = Lane(name="new-00", asked=[Asked(ms=-5000, count=100, by=old_pod, pool=Pool.EMPTY)])
    told = derive(s.recording([s.accepted()], s.cluster(), http(pooled, still)))
    assert "drained for new" not in show(told)
    # Where it had one in two, three requests elsewhere are chance, and so nothing is said.
    turns = [
        Asked(ms=-5000 + 100 * n, by=(old_pod, new_pod)[n % 2], pool=Pool.EMPTY) for n in range(40)
    ]
    few = [Asked(ms=ms, by=new_pod, pool=Pool.EMPTY) for ms in (1000, 2000, 3000)]
    many = Asked(ms=1000, count=30, by=new_pod, pool=Pool.EMPTY)
    for since, said in ((few, False), ([many], True)):
        shared = Lane(name="new-00", asked=[*turns, *since])
        told = derive(s.recording([s.accepted()], s.cluster(), http(pooled, shared)))
        assert ("drained for new" in show(told)) is said
    # Nor if it had none, or if new connections failed meanwhile: they may have led to it.
    never = Lane(name="new-00", asked=[replace(new.asked[0], by=new_pod), many])
    refused = Asked(ms=4500, ended=Ending.REFUSED, pool=Pool.EMPTY)
    failing = Lane(name="new-00", asked=[new.asked[0], many, refused])
    for lane in (never, failing):
        told = derive(s.recording([s.accepted()], s.cluster(), http(pooled, lane)))
        assert "drained for new" not in show(told)


def test_c18_105_of_456000_requests_are_counts_and_a_rate_and_no_zero() -> None:
    """3,800 requests a second on 100 lanes, for two minutes; some meet a proxy that exits."""
    count, lanes = 4_560, 100
    made = []
    for number in range(lanes):
        cut = 2 if number < 5 else 1
        asked = [
            Asked(ms=10, count=1900, period_ms=1000 / 38),
            *(
                Asked(ms=50_010 + n, ended=Ending.RST, period_ms=1000 / 38, took_ms=1)
                for n in range(cut)
            ),
            Asked(ms=50_100, count=count - cut - 1900, period_ms=1000 / 38, connection=2),
        ]
        made.append(Lane(name=f"keepalive-{number:02d}", asked=asked))
    seen = http(*made, end_ms=130_000, period_ms=1000 / 38)
    told = derive(s.recording([s.accepted()], s.cluster(), seen))
    found = told.trial.requests
    assert found is not None
    (kind,) = found.kinds
    assert (kind.attempts, kind.failed) == (456_000, 105)
    assert kind.failure_rate is not None
    assert 0.00018 < kind.failure_rate.low < 105 / 456_000 < kind.failure_rate.high < 0.00028
    text = show(told)
    assert "456,000" in text
    assert "0.018–0.028 %" in text
    assert "0.0 %" not in text
    assert "zero" not in text.lower()
    assert shown.cell(found) == "keepalive 105/456,000 failed"


def test_c19_the_generator_keeps_its_schedule_through_a_restart(rig: Rig) -> None:
    """kill -9 at 100 requests a second, and a new server two seconds later."""
    with stdlib() as first:
        asking = Asking(rig, first.port, keepalive=10, rate_hz=10, timeout_ns=10**9).ready()
        killed_ns = time.monotonic_ns()
        first.end(signal.SIGKILL)
    time.sleep(2)
    restarted_ns = time.monotonic_ns()
    with stdlib(first.port):
        asking.agent.await_status(lambda st: st["http"]["failing"] == 0, "all served again")
        time.sleep(0.3)
        part = asking.recorded()
    kind = of(judged(part.seen, killed_ns), LaneKind.KEEPALIVE)
    (summary,) = part.all(Event.HTTP_SUMMARY)
    # As many as were planned, but for those that the client itself missed, which it says.
    assert kind.missed_slots is not None
    assert kind.planned == kind.requests + kind.missed_slots
    assert abs(kind.planned - 100 * summary.at.width / 1e9) <= 10  # one slot for each lane
    assert kind.failed > 100
    failing = kind.failing
    assert failing is not None
    assert failing.served_before_ns is not None
    assert failing.recovered_ns is not None
    # The outage lies between what was served before it and after it.
    assert failing.served_before_ns[0] <= failing.first_ns[0]
    assert failing.recovered_ns[1] > restarted_ns - killed_ns
    assert failing.last_ns[0] - failing.first_ns[1] > 1.5e9


@pytest.mark.parametrize("way", ["goes on", "announces"])
def test_c20_requests_on_old_connections_after_the_server_was_told(rig: Rig, way: str) -> None:
    """With keep-alive they go on until the kill; with Connection: close each says one more."""
    ending = Ending20(way)
    with ending.server as server:
        asking = Asking(rig, server.port, keepalive=LANES, rate_hz=10)
        asking.ready()
        ending.told.set()
        told_ns = time.monotonic_ns()
        time.sleep(1.5)
        part = asking.recorded()
    found = judged(part.seen, told_ns)
    (old,) = found.old_connections
    assert old.connections == LANES
    if way == "goes on":
        assert old.served_after > 5 * LANES
        assert old.gone_ns is None
        assert old.outcomes == {"survived-observation-window": LANES}
    else:
        # At most one each: that which said Connection: close.
        assert 0 < old.served_after <= LANES
        assert old.gone_ns is not None
        assert old.last_served_ns is not None
        assert old.outcomes == {"drained-clean-close": LANES}
        assert {one.how for one in found.connections} == {How.CONNECTION_CLOSE}
    assert of(found, LaneKind.KEEPALIVE).failed == 0
