"""HTTP servers: Python's own as a process to be signalled, and sockets that do as told."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from pytest_drainwatch.core.http.document import KindRequests, Requests
from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.http.judge import requests
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.pieces import Surroundings
from pytest_drainwatch.core.stall import stalls_of
from tests.loopback.rig import LOOPBACK, PATIENCE_S, Agent, Part, Rig, RigError
from tests.loopback.servers import Peer

SECRET = "s3cret-of-the-workload"
# What ``http.server`` does for HTTP/1.1: threads, keep-alive, and it dies by SIGTERM at once.
STDLIB = f"""
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        if self.path.startswith("/slow"):
            time.sleep(float(self.path.partition("=")[2]))
        body = b"body {SECRET}"
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Pod-Name", sys.argv[2])
        self.send_header("Set-Cookie", "session={SECRET}")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_POST = do_HEAD = do_GET

    def log_message(self, *told):
        pass

class Server(ThreadingHTTPServer):
    request_queue_size = 128

Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


class Served:
    """A server process on a port of its own."""

    def __init__(self, argv: Callable[[int], Sequence[str]], port: int | None = None) -> None:
        self.port = port or free_port()
        self.process = subprocess.Popen(
            list(argv(self.port)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection((LOOPBACK, self.port), 1).close()
            except OSError:
                if time.monotonic() > until or self.process.poll() is not None:
                    self.__exit__(None, None, None)
                    raise RigError(f"no server on port {self.port}") from None
                time.sleep(0.02)
            else:
                return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signal it, and wait until it is gone."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def stdlib(port: int | None = None, name: str = "pod-a") -> Served:
    """Python's own server."""
    return Served(lambda at: [sys.executable, "-c", STDLIB, str(at), name], port)


def free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as held:
        return int(held.getsockname()[1])


def head(peer: Peer) -> bool:
    """Read one request; False at the end."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        more = peer.sock.recv(65536)
        if not more:
            return False
        data += more
    return True


def respond(peer: Peer, status: str = "200 OK", *headers: str, body: bytes = b"ok") -> None:
    """Answer one request."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    peer.send("\r\n".join(lines).encode() + body)


class Asking:
    """An agent that asks over HTTP, from its configuration to what it recorded."""

    def __init__(self, rig: Rig, port: int, **http: object) -> None:
        lanes = {"keepalive": 0, "idle": 0, "in_flight": 0, "new": 0}
        short = {"timeout_ns": 2 * 10**9, "idle_within_ns": 5 * 10**8}
        self.config = {"address": LOOPBACK, "port": port, **short, **lanes, **http}
        self.rig = rig
        self.agent: Agent = rig.agent(http=self.config)
        self.trigger_ns = 0

    @property
    def lanes(self) -> int:
        found = [self.config[name] for name in ("keepalive", "idle", "in_flight", "new")]
        return sum(number for number in found if isinstance(number, int))

    def ready(self) -> Self:
        """Wait until each lane was answered as expected."""
        self.agent.await_status(
            lambda status: bool(status["http"]) and status["http"]["ready"] == self.lanes,
            "status with all lanes ready",
        )
        return self

    def plan(self, in_s: float) -> Self:
        """The trigger will be sent in so many seconds."""
        self.trigger_ns = time.monotonic_ns() + round(in_s * 1e9)
        self.agent.say(f'{{"do": "plan", "dense": [], "trigger_ns": {self.trigger_ns}}}')
        return self

    def until_trigger(self, after_s: float = 0) -> int:
        """Sleep until then; returns when it is."""
        left_ns = self.trigger_ns + round(after_s * 1e9) - time.monotonic_ns()
        time.sleep(max(0, left_ns / 1e9))
        return time.monotonic_ns()

    def over(self) -> None:
        """Wait until what was planned has been asked and has ended."""
        self.agent.await_status(
            lambda status: status["http"]["due"] == 0 and status["http"]["waiting"] == 0,
            "status with nothing due or under way",
        )

    def recorded(self) -> Part:
        return self.rig.recorded(self.agent)


def judged(seen: Sequence[Observation], t0_ns: int) -> Requests:
    """What the core makes of it, with t = 0 then."""
    around = Surroundings(
        t0_ns=t0_ns,
        targets={},
        workload=frozenset(),
        names={},
        all_pods_known=True,
        stalls=stalls_of(seen),
    )
    found = requests(seen, around)
    assert found is not None
    return found


def of(found: Requests, kind: LaneKind) -> KindRequests:
    """The requests of that kind of lane."""
    (mine,) = [one for one in found.kinds if one.kind is kind]
    return mine


def runs(part: Part, lane: str, *, opening: bool = False) -> list[Observation]:
    """The runs of a lane."""
    return [
        o
        for o in part.of(lane)
        if o.event is Event.HTTP_REQUESTS and bool(o.data.get("opening")) is opening
    ]
