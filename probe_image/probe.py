#!/usr/bin/env python3
"""The probe: a TCP, UDP and HTTP server that terminates in a chosen way, and says so.

It is the workload of a trial. Configured by environment, standard library only,
Python 3.9 or newer; it is meant to be PID 1 of its container.

    POD_UID             identity, required            TCP_PORT    7001
    POD_NAME            default: the host name        UDP_PORT    7002
    DRAIN_BEHAVIOR      drain | exit-now | ignore     HTTP_PORT   7003 (/readyz, /healthz)
    READINESS_ON_DRAIN  fail | keep                   BIND        default: every address
    ACCEPT_ON_DRAIN     close | keep                  EXIT_NOW_RESET  true | false
    DRAIN_SECONDS       25, 2.5, 500ms, 25s, 1m
    RESPONSE_DELAY      0; each TCP request is answered that much later, in order

GET /prestop?ms=N is answered N milliseconds later: for a preStop hook of type httpGet.

Wire: ASCII lines of at most 512 bytes, the same over TCP and UDP.

    ping SEQ    ->  pong SEQ RECV_NS SEND_NS POD_UID/NONCE
    hello SEQ   ->  the same, and " clock=CLOCK_ID"
    (UDP) note SEQ SENT_NS FLOW  ->  nothing: counted, and told in the log (udp_received)
    (TCP, before a graceful close)  bye LAST_SEQ drain-deadline

Stamps are this process's CLOCK_MONOTONIC; NONCE is drawn at start, so that a
restarted process is never taken for the one before it. The lifecycle log on stdout
is one JSON line per event, one write each, and nothing per request: a log line
between two closes would spread in time what is to be measured. Only what came in
one-way flows is told as it grows, once a second and at the end: a SIGKILL leaves no
time for last words, so what is known is then up to a second old.
"""

from __future__ import annotations

import signal
import time

_sigterms: list[int] = []


def _note_sigterm(signum: int, frame: object) -> None:
    _sigterms.append(time.monotonic_ns())


if __name__ == "__main__":
    # First of all: the kernel drops a SIGTERM that PID 1 has no handler for.
    signal.signal(signal.SIGTERM, _note_sigterm)

import asyncio  # noqa: E402
import contextlib  # noqa: E402
import errno  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import resource  # noqa: E402
import socket  # noqa: E402
import struct  # noqa: E402
import sys  # noqa: E402
from collections import deque  # noqa: E402
from collections.abc import Mapping  # noqa: E402
from dataclasses import asdict, dataclass  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, NoReturn, Optional  # noqa: E402

LINE_LIMIT = 512
OUT_LIMIT = 64 * 1024  # unsent replies of a client that does not read
PENDING_LIMIT = 4096  # requests of one client that wait for RESPONSE_DELAY
LINGER_NS = 1_000_000_000
READS_AT_END = 64  # a client that floods us cannot keep us from closing
ACCEPT_PAUSE_S = 0.1
UDP_HEARD_NS = 5_000_000_000
NOTED_FLOWS = 1024  # one-way flows that are counted apart
NOTES_A_LINE = 32
NOTES_EVERY_S = 1.0  # a line; with more flows than fit into one, their turns take longer
NOTES_MISSING = 256  # gaps of a flow that are remembered: filled later, they were reordered
EXIT_BAD_SETTING = 64
EXIT_CANNOT_LISTEN = 69
RESET_ON_CLOSE = struct.pack("ii", 1, 0)

_REQUEST = re.compile(rb"(ping|hello) (\d{1,18})")
_NOTE = re.compile(rb"note (\d{1,18}) (\d{1,19}) ([A-Za-z0-9._-]{1,64})")
_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|m|)")
_UNIT_NS = {"ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "": 1_000_000_000}
_PRESTOP = re.compile(rb"/prestop(?:\?ms=(\d{1,7}))?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


class BadSetting(ValueError):
    """A setting that cannot be used: which, what it holds, what it accepts."""


class CannotListen(OSError):
    """A port that cannot be had."""


@dataclass(frozen=True)
class Settings:
    """What the environment asks for."""

    pod_uid: str
    pod_name: str
    behavior: str
    readiness_on_drain: str
    accept_on_drain: str
    drain_ns: int
    exit_now_reset: bool
    response_delay_ns: int
    bind: str
    tcp_port: int
    udp_port: int
    http_port: int


def read_settings(env: Mapping[str, str]) -> Settings:
    """The settings in ``env``. Raises :class:`BadSetting`."""

    def one_of(name: str, default: str, *accepted: str) -> str:
        value = env.get(name, default)
        if value not in accepted:
            raise BadSetting(f"{name} is {value!r}; expected one of: {', '.join(accepted)}")
        return value

    def port(name: str, default: int) -> int:
        value = env.get(name, str(default))
        if not re.fullmatch(r"[0-9]{1,5}", value) or int(value) > 65535:
            raise BadSetting(
                f"{name} is {value!r}; expected a port 1..65535, or 0 for any free one"
            )
        return int(value)

    def name(variable: str, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise BadSetting(
                f"{variable} is {value!r}; expected 1..100 letters, digits or any of . _ -"
            )
        return value

    if "POD_UID" not in env:
        raise BadSetting(
            "POD_UID is not set; expected the pod's UID (fieldRef metadata.uid), "
            "or any unique name when run by hand"
        )

    def duration(variable: str, default: str) -> int:
        value = env.get(variable, default)
        match = _DURATION.fullmatch(value.strip())
        found_ns = round(float(match[1]) * _UNIT_NS[match[2]]) if match else -1
        if not 0 <= found_ns <= 3600 * 10**9:
            raise BadSetting(
                f"{variable} is {value!r}; expected 0 to 3600 seconds, "
                "such as 25, 2.5, 500ms, 25s or 1m"
            )
        return found_ns

    bind = env.get("BIND", "")
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    try:
        if bind:
            socket.inet_pton(family, bind)
    except OSError:
        raise BadSetting(
            f"BIND is {bind!r}; expected an IPv4 or IPv6 address, or nothing for all"
        ) from None
    return Settings(
        pod_uid=name("POD_UID", env["POD_UID"]),
        pod_name=name("POD_NAME", env.get("POD_NAME", socket.gethostname())),
        behavior=one_of("DRAIN_BEHAVIOR", "drain", "drain", "exit-now", "ignore"),
        readiness_on_drain=one_of("READINESS_ON_DRAIN", "fail", "fail", "keep"),
        accept_on_drain=one_of("ACCEPT_ON_DRAIN", "close", "close", "keep"),
        drain_ns=duration("DRAIN_SECONDS", "25"),
        exit_now_reset=one_of("EXIT_NOW_RESET", "true", "true", "false") == "true",
        response_delay_ns=duration("RESPONSE_DELAY", "0"),
        bind=bind,
        tcp_port=port("TCP_PORT", 7001),
        udp_port=port("UDP_PORT", 7002),
        http_port=port("HTTP_PORT", 7003),
    )


def clock_id() -> str:
    """Boot id and time namespace: who shares both reads the same CLOCK_MONOTONIC."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    try:
        namespace = str(Path("/proc/self/ns/time").readlink())
    except OSError:
        namespace = ""
    return f"{boot}/{''.join(filter(str.isdigit, namespace)) or 'none'}"


def listen(kind: socket.SocketKind, bind: str, port: int, setting: str) -> socket.socket:
    """A bound, non-blocking socket; dual stack where the host has IPv6."""
    hosts = [bind] if bind else ["::", "0.0.0.0"]
    for host in hosts:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            sock = socket.socket(family, kind)
        except OSError:
            continue
        try:
            sock.setblocking(False)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1 if bind else 0)
            if kind == socket.SOCK_STREAM:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            if kind == socket.SOCK_STREAM:
                sock.listen(4096)
            return sock
        except OSError as error:
            sock.close()
            if error.errno == errno.EADDRNOTAVAIL and host != hosts[-1]:
                continue
            raise CannotListen(
                f"{setting}: cannot listen on {host} port {port}: {error.strerror}; "
                f"expected a free port of this host: set {setting} or stop what holds it"
            ) from error
    raise CannotListen(f"{setting}: this host has neither IPv6 nor IPv4")


class Connection:
    """One TCP client."""

    __slots__ = (
        "answered", "buffer", "closing", "last_seq", "out", "peer", "peer_ended", "pending",
        "said_bye", "sock",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, peer: str) -> None:
        self.sock = sock
        self.peer = peer
        self.buffer = b""
        self.out = b""
        self.answered = False
        self.last_seq = 0
        self.pending: deque[tuple[int, bytes]] = deque()  # receipt and line, not yet answered
        self.peer_ended = False  # it sends no more, and may still read
        self.closing = False
        self.said_bye = False


class Received:
    """What came of a one-way flow. ``*_sent_ns`` are stamps of the sender's clock.

    ``passage_*_ns`` is receipt on this clock minus send on the other: the time on the
    way, and whatever the two clocks are apart.
    """

    __slots__ = (
        "count", "duplicates", "first_ns", "first_sent_ns", "first_seq", "last_ns",
        "last_sent_ns", "last_seq", "missing", "passage_max_ns", "passage_min_ns",
        "reordered",
    )  # fmt: skip

    def __init__(self, seq: int, sent_ns: int, recv_ns: int) -> None:
        self.first_seq = self.last_seq = seq
        self.first_sent_ns = self.last_sent_ns = sent_ns
        self.first_ns = self.last_ns = recv_ns
        self.passage_min_ns = self.passage_max_ns = recv_ns - sent_ns
        self.count = 1
        self.duplicates = self.reordered = 0
        self.missing: dict[int, None] = {}

    def add(self, seq: int, sent_ns: int, recv_ns: int) -> None:
        if seq > self.last_seq:
            self.miss(range(max(self.last_seq + 1, seq - NOTES_MISSING), seq))
            self.last_seq, self.last_sent_ns = seq, sent_ns
        elif seq < self.first_seq:
            self.miss(range(max(seq + 1, self.first_seq - NOTES_MISSING), self.first_seq))
            self.first_seq, self.first_sent_ns = seq, sent_ns
            self.reordered += 1
        elif seq in self.missing:
            del self.missing[seq]
            self.reordered += 1
        else:
            self.duplicates += 1
            return
        self.count += 1
        self.last_ns = recv_ns
        passage_ns = recv_ns - sent_ns
        self.passage_min_ns = min(self.passage_min_ns, passage_ns)
        self.passage_max_ns = max(self.passage_max_ns, passage_ns)

    def miss(self, seqs: range) -> None:
        self.missing.update(dict.fromkeys(seqs))
        while len(self.missing) > NOTES_MISSING:
            del self.missing[next(iter(self.missing))]

    def told(self, flow: str) -> dict[str, object]:
        numbers = {name: getattr(self, name) for name in self.__slots__ if name != "missing"}
        return {"flow": flow, **numbers}


class Notes:
    """All one-way flows; ``changed`` are those that grew since they were last told."""

    def __init__(self) -> None:
        self.flows: dict[bytes, Received] = {}
        self.changed: dict[bytes, None] = {}
        self.untold = 0  # datagrams of flows beyond the limit

    def take(self, line: bytes, recv_ns: int) -> bool:
        match = _NOTE.fullmatch(line)
        if match is None:
            return False
        seq, sent_ns, flow = int(match[1]), int(match[2]), match[3]
        known = self.flows.get(flow)
        if known is not None:
            known.add(seq, sent_ns, recv_ns)
        elif len(self.flows) < NOTED_FLOWS:
            self.flows[flow] = Received(seq, sent_ns, recv_ns)
        else:
            self.untold += 1
            return True
        self.changed[flow] = None
        return True

    def told(self, flows: list[bytes]) -> dict[str, Any]:
        rows = [self.flows[flow].told(flow.decode()) for flow in flows]
        return {"flows": rows, **({"untold": self.untold} if self.untold else {})}


class Probe:
    """The servers, and what SIGTERM does to them."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = settings
        self.loop = loop
        self.nonce = os.urandom(8).hex()
        self.clock = clock_id()
        self.responder = f"{settings.pod_uid}/{self.nonce}".encode()
        self.ready = True
        self.draining = False
        self.terms_seen = 0
        self.udp_heard_ns = 0
        self.looking_again = False
        self.notes = Notes()
        self.telling = False
        self.connections: set[Connection] = set()
        self.tcp: Optional[socket.socket] = None
        self.udp: Optional[socket.socket] = None

    def log(self, event: str, mono_ns: Optional[int] = None, **data: object) -> None:
        line = {
            "event": event,
            "mono_ns": time.monotonic_ns() if mono_ns is None else mono_ns,
            "clock": self.clock,
            "pod_uid": self.settings.pod_uid,
            "nonce": self.nonce,
            **data,
        }
        write_line(line)

    async def start(self) -> None:
        s = self.settings
        config = {k: v for k, v in asdict(s).items() if k != "pod_uid"}
        self.log("probe_started", pid=os.getpid(), python=sys.version.split()[0], **config)
        self.tcp = listen(socket.SOCK_STREAM, s.bind, s.tcp_port, "TCP_PORT")
        self.udp = listen(socket.SOCK_DGRAM, s.bind, s.udp_port, "UDP_PORT")
        http = listen(socket.SOCK_STREAM, s.bind, s.http_port, "HTTP_PORT")
        self.loop.add_reader(self.tcp, self.accept)
        self.loop.add_reader(self.udp, self.serve_udp)
        await asyncio.start_server(self.serve_http, sock=http)
        self.log(
            "listening",
            tcp_port=self.tcp.getsockname()[1],
            udp_port=self.udp.getsockname()[1],
            http_port=http.getsockname()[1],
        )

    # --- serving -----------------------------------------------------------------------

    def answer(self, line: bytes, recv_ns: int) -> Optional[tuple[int, bytes]]:
        match = _REQUEST.fullmatch(line)
        if match is None:
            return None
        seq = int(match[2])
        tail = b"\n" if match[1] == b"ping" else f" clock={self.clock}\n".encode()
        return seq, b"pong %d %d %d %s%s" % (
            seq, recv_ns, time.monotonic_ns(), self.responder, tail,
        )  # fmt: skip

    def accept(self) -> int:
        """Take every connection that is established; returns how many."""
        taken = 0
        while self.tcp is not None:
            try:
                sock, address = self.tcp.accept()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in (errno.ECONNABORTED, errno.EPROTO):
                    continue
                # Out of descriptors or memory: the connection waits, so do we.
                self.log("accept_failed", errno=errno.errorcode.get(error.errno or 0, "unknown"))
                self.loop.remove_reader(self.tcp)
                self.loop.call_later(ACCEPT_PAUSE_S, self.accept_again)
                break
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(sock, f"{address[0]} {address[1]}")
            self.connections.add(connection)
            self.loop.add_reader(sock, self.serve_tcp, connection)
            taken += 1
        return taken

    def accept_again(self) -> None:
        if self.tcp is not None:
            self.loop.add_reader(self.tcp, self.accept)

    def serve_tcp(self, connection: Connection) -> bool:
        """Answer what has arrived; returns whether there may be more."""
        try:
            data = connection.sock.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            self.drop(connection)
            return False
        recv_ns = time.monotonic_ns()
        if not data:
            if connection.pending or connection.out:
                connection.peer_ended = True
                self.loop.remove_reader(connection.sock)
            else:
                self.drop(connection)
            return False
        if connection.closing:  # said bye already: read on only so that no RST follows
            return True
        *lines, connection.buffer = (connection.buffer + data).split(b"\n")
        for line in lines:
            if self.settings.response_delay_ns and _REQUEST.fullmatch(line):
                self.put_off(connection, recv_ns, line)
                continue
            answered = self.answer(line, recv_ns)
            if answered is None:
                self.refuse(connection, "malformed", len(line))
                return False
            connection.answered = True
            connection.last_seq = answered[0]
            connection.out += answered[1]
        if len(connection.buffer) >= LINE_LIMIT:
            self.refuse(connection, "over-long", len(connection.buffer))
            return False
        self.flush(connection)
        return connection in self.connections

    def put_off(self, connection: Connection, recv_ns: int, line: bytes) -> None:
        """Answer it RESPONSE_DELAY after its receipt, and after those before it."""
        connection.pending.append((recv_ns, line))
        if len(connection.pending) == 1:
            self.wake_for(connection)
        if len(connection.pending) > PENDING_LIMIT:
            self.loop.remove_reader(connection.sock)

    def wake_for(self, connection: Connection) -> None:
        due_ns = connection.pending[0][0] + self.settings.response_delay_ns
        wait_s = max(0.0, (due_ns - time.monotonic_ns()) / 1e9)
        self.loop.call_later(wait_s, self.answer_due, connection)

    def answer_due(self, connection: Connection) -> None:
        if connection not in self.connections:
            return
        until_ns = time.monotonic_ns() - self.settings.response_delay_ns
        held_back = len(connection.pending) > PENDING_LIMIT
        while connection.pending and connection.pending[0][0] <= until_ns:
            recv_ns, line = connection.pending.popleft()
            answered = self.answer(line, recv_ns)
            assert answered is not None
            connection.answered = True
            connection.last_seq = answered[0]
            connection.out += answered[1]
        if connection.pending:
            self.wake_for(connection)
        if held_back and len(connection.pending) <= PENDING_LIMIT and not connection.peer_ended:
            self.loop.add_reader(connection.sock, self.serve_tcp, connection)
        self.flush_or_end(connection)

    def flush_or_end(self, connection: Connection) -> None:
        """Send what is due; a client that we take leave of hears so after its last answer."""
        if connection.closing and not connection.pending and not connection.said_bye:
            connection.said_bye = True
            connection.out += b"bye %d drain-deadline\n" % connection.last_seq
        self.flush(connection)

    def in_flight(self, at_ns: int) -> dict[str, Optional[int]]:
        """The TCP requests that were read by then and not answered, and how many of them are
        on connections that were never answered before, such as those of a prober.

        What had arrived and was not read is not among them: nobody can say when it came.
        """
        came = [
            (recv_ns, c) for c in self.connections for recv_ns, _ in c.pending if recv_ns <= at_ns
        ]
        oldest = at_ns - min(recv_ns for recv_ns, _ in came) if came else None
        new = sum(1 for _, c in came if not c.answered)
        return {"in_flight": len(came), "in_flight_new": new, "oldest_in_flight_ns": oldest}

    def refuse(self, connection: Connection, reason: str, length: int) -> None:
        self.log("tcp_line_refused", peer=connection.peer, reason=reason, length=length)
        self.drop(connection)

    def flush(self, connection: Connection) -> None:
        """Send what is due, then wait for room, go on reading, or end the stream."""
        sock, loop = connection.sock, self.loop
        try:
            while connection.out:
                connection.out = connection.out[sock.send(connection.out) :]
        except BlockingIOError:
            loop.add_writer(sock, self.flush, connection)
            if len(connection.out) > OUT_LIMIT:
                loop.remove_reader(sock)
            return
        except OSError:
            self.drop(connection)
            return
        if connection.peer_ended and not connection.pending:
            self.drop(connection)
            return
        if loop.remove_writer(sock) and not connection.peer_ended:
            loop.add_reader(sock, self.serve_tcp, connection)
        if connection.said_bye:
            try:
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                self.drop(connection)

    def drop(self, connection: Connection) -> None:
        self.loop.remove_reader(connection.sock)
        self.loop.remove_writer(connection.sock)
        connection.sock.close()
        self.connections.discard(connection)
        self.finish_if_left()

    def serve_udp(self) -> None:
        assert self.udp is not None
        for _ in range(256):  # then let others have a turn
            try:
                data, peer = self.udp.recvfrom(2048)
            except BlockingIOError:
                return
            except OSError:  # the ICMP error of an earlier reply
                continue
            recv_ns = self.udp_heard_ns = time.monotonic_ns()
            if len(data) > LINE_LIMIT or not data.endswith(b"\n"):
                continue
            answered = self.answer(data[:-1], recv_ns)
            if answered is not None:
                try:
                    self.udp.sendto(answered[1], peer)
                except OSError:
                    continue
            elif self.notes.take(data[:-1], recv_ns) and not self.telling:
                self.telling = True
                self.loop.call_later(NOTES_EVERY_S, self.tell_notes)

    def tell_notes(self) -> None:
        changed = self.notes.changed
        turn = list(changed)[:NOTES_A_LINE]
        for flow in turn:
            del changed[flow]
        if turn:
            self.log("udp_received", **self.notes.told(turn))
        self.telling = bool(turn)
        if turn:
            self.loop.call_later(NOTES_EVERY_S, self.tell_notes)

    def tell_all_notes(self) -> None:
        flows = list(self.notes.flows)
        for first in range(0, len(flows), NOTES_A_LINE):
            told = self.notes.told(flows[first : first + NOTES_A_LINE])
            self.log("udp_received", final=True, **told)

    async def serve_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), timeout=5)
            method, _, rest = head.partition(b" ")
            target = rest.split(b" ", 1)[0]
            path = target.split(b"?", 1)[0]
            status, body = "404 Not Found", "not found\n"
            if path == b"/healthz":
                status, body = "200 OK", "ok\n"
            elif path == b"/readyz" and self.ready:
                status, body = "200 OK", "ready\n"
            elif asked := _PRESTOP.fullmatch(target):
                status, body = "200 OK", "now SIGTERM\n"
                delay_ns = int(asked[1] or 0) * 1_000_000
                self.log("prestop_called", delay_ns=delay_ns)
                await asyncio.sleep(delay_ns / 1e9)
                self.log("prestop_answered")
            elif path == b"/readyz":
                status, body = "503 Service Unavailable", "draining\n"
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
                f"Connection: close\r\n\r\n{'' if method == b'HEAD' else body}".encode()
            )
            await writer.drain()
        except (OSError, ValueError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    # --- terminating -------------------------------------------------------------------

    def heed_signals(self, wakes: socket.socket) -> None:
        """Act on SIGTERM from now on, and on those that came before."""

        def wake() -> None:
            wakes.recv(4096)
            self.sigterms()

        self.loop.add_reader(wakes, wake)
        self.sigterms()

    def sigterms(self) -> None:
        """Act on the signals that have come since the last call."""
        while self.terms_seen < len(_sigterms):
            at_ns = _sigterms[self.terms_seen]
            self.terms_seen += 1
            if self.terms_seen > 1:
                self.log("sigterm_repeated", at_ns, count=self.terms_seen)
            elif self.settings.behavior == "exit-now":
                self.exit_now(at_ns)
            else:
                self.log(
                    "sigterm_received",
                    at_ns,
                    connections=len(self.connections),
                    **self.in_flight(at_ns),
                )
                if self.settings.behavior == "drain":
                    self.drain()
                else:
                    self.log("sigterm_ignored")

    def exit_now(self, at_ns: int) -> NoReturn:
        count, how = len(self.connections), "exit"
        if self.settings.exit_now_reset:
            how = "reset"
            for connection in self.connections:
                connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                connection.sock.close()
        self.log("sigterm_received", at_ns, connections=count, **self.in_flight(at_ns))
        self.log("tcp_flows_closed", count=count, how=how)
        self.exit()

    def drain(self) -> None:
        if self.settings.readiness_on_drain == "fail":
            self.ready = False
            self.log("readyz_now_503")
        if self.settings.accept_on_drain == "close":
            self.stop_accepting()
        self.log("drain_started", drain_ns=self.settings.drain_ns)
        self.loop.call_later(self.settings.drain_ns / 1e9, self.drain_deadline)
        self.draining = True
        self.finish_if_left()

    def stop_accepting(self) -> None:
        # Whoever is in the backlog believes to be connected: closing now would reset them.
        backlog = self.accept()
        if self.tcp is not None:
            self.loop.remove_reader(self.tcp)
            self.tcp.close()
            self.tcp = None
        self.log("stopped_accepting", backlog=backlog, connections=len(self.connections))

    def finish_if_left(self) -> None:
        """End a drain that has nobody to wait for."""
        if not self.draining or self.connections or self.tcp is not None:
            return
        # UDP peers cannot leave: while they are heard they alone keep the window.
        left_ns = self.udp_heard_ns + UDP_HEARD_NS - time.monotonic_ns()
        if not self.udp_heard_ns or left_ns < 0:
            self.finish_drain()
        if not self.looking_again:
            self.looking_again = True
            self.loop.call_later((left_ns + 1) / 1e9, self.look_again)

    def look_again(self) -> None:
        """Nobody says that UDP peers have fallen silent: it is time to see whether they have."""
        self.looking_again = False
        self.finish_if_left()

    def read_pending(self, connection: Connection) -> None:
        for _ in range(READS_AT_END):
            held_back = len(connection.out) > OUT_LIMIT or len(connection.pending) > PENDING_LIMIT
            if held_back and not connection.closing:
                return  # it does not read: to answer more would only keep others waiting
            if not self.serve_tcp(connection):
                return

    def drain_deadline(self) -> None:
        at_ns = time.monotonic_ns()
        self.draining = False  # from here on the last client to leave is not an early end
        if self.tcp is not None:
            self.stop_accepting()
        served = list(self.connections)
        for connection in served:
            self.read_pending(connection)
        closing = list(self.connections)
        for connection in closing:
            connection.closing = True
            self.flush_or_end(connection)
        self.log("drain_deadline_reached", at_ns, connections=len(served))
        last_answer_ns = time.monotonic_ns() + self.settings.response_delay_ns
        self.linger(len(closing), last_answer_ns + LINGER_NS)

    def linger(self, count: int, until_ns: int) -> None:
        """Wait for the peers to close: unread data would turn our close into an RST."""
        if self.connections and time.monotonic_ns() < until_ns:
            self.loop.call_later(0.005, self.linger, count, until_ns)
            return
        open_still = len(self.connections)
        for connection in list(self.connections):
            self.read_pending(connection)
            self.drop(connection)
        self.log("tcp_flows_closed", count=count, how="fin", open_at_exit=open_still)
        self.exit()

    def finish_drain(self) -> NoReturn:
        self.log("drain_complete")
        self.exit()

    def exit(self) -> NoReturn:
        if self.settings.behavior == "drain":
            self.serve_udp()  # what came before the end is answered
        self.tell_all_notes()
        self.log("exiting", code=0)
        os._exit(0)  # the interpreter's own shutdown would only add milliseconds


def write_line(line: Mapping[str, object]) -> None:
    with contextlib.suppress(OSError):  # nobody reads the log: still terminate as asked
        os.write(1, (json.dumps(line, separators=(",", ":")) + "\n").encode())


def fatal(message: str, code: int) -> int:
    write_line(
        {
            "event": "fatal",
            "mono_ns": time.monotonic_ns(),
            "clock": clock_id(),
            "pod_uid": os.environ.get("POD_UID", ""),
            "nonce": "",
            "message": message,
            "code": code,
        }
    )
    return code


def wakeup() -> tuple[socket.socket, socket.socket]:
    """A socket that is readable after any signal, and the end that must be kept for it.

    A handler in Python runs between bytecodes only: one that is due as the loop goes to
    sleep would sleep with it. This is written to by the interpreter's own handler.
    """
    wakes, woken = socket.socketpair()
    for end in (wakes, woken):
        end.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    return wakes, woken


def main() -> int:
    try:
        settings = read_settings(os.environ)
    except BadSetting as error:
        return fatal(str(error), EXIT_BAD_SETTING)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    loop = asyncio.new_event_loop()
    probe = Probe(settings, loop)
    try:
        wakes, _woken = wakeup()
        loop.run_until_complete(probe.start())
        probe.heed_signals(wakes)
        loop.run_forever()
    except CannotListen as error:
        return fatal(str(error), EXIT_CANNOT_LISTEN)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
