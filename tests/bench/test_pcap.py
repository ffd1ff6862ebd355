"""The capture reader and the clock translation, on bytes and pairs made by hand."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from bench.pcap import RST, Kind, Packet, PcapError, read
from bench.tcpdump import CaptureError, Tcpdump, fault, find_tcpdump
from bench.wallclock import ClockStepped, Pair, Translation, WallClock
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval

TOP = Path(__file__).resolve().parents[2]
CLIENT, NODE = ("198.18.0.1", 40000), ("198.18.0.8", 31000)
ETHERNET, SLL2 = 1, 276


def ip(protocol: int, source: str, destination: str, body: bytes, ident: int = 7) -> bytes:
    length = 20 + len(body)
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    return struct.pack("!BBHHHBBH", 0x45, 0, length, ident, 0x4000, 64, protocol, 0) + (
        addresses + body
    )


def udp(source: tuple[str, int], destination: tuple[str, int], payload: bytes) -> bytes:
    header = struct.pack("!HHHH", source[1], destination[1], 8 + len(payload), 0)
    return ip(17, source[0], destination[0], header + payload)


def tcp(source: tuple[str, int], destination: tuple[str, int], flags: int) -> bytes:
    body = struct.pack("!HHIIBBHHH", source[1], destination[1], 0, 0, 0x50, flags, 0, 0, 0)
    return ip(6, source[0], destination[0], body)


def icmp(quoted: bytes, kind: int = 3) -> bytes:
    return ip(1, NODE[0], CLIENT[0], struct.pack("!BBHI", kind, 3, 0, 0) + quoted)


def pcap(link: int, *packets: tuple[int, bytes], order: str = "<") -> bytes:
    whole = struct.pack(f"{order}IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 320, link)
    for at_ns, data in packets:
        frame = b"\0" * 12 + b"\x08\x00" + data
        if link == SLL2:
            frame = b"\x08\x00" + b"\0" * 18 + data
        seconds, nanos = divmod(at_ns, NS_PER_S)
        whole += struct.pack(f"{order}IIII", seconds, nanos, len(frame), len(frame)) + frame
    return whole


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("link", [ETHERNET, SLL2])
def test_every_kind_of_packet(tmp_path: Path, link: int, order: str) -> None:
    request = udp(CLIENT, NODE, b"ping 3\n")
    at_ns = 1_700_000_000_123_456_789
    file = tmp_path / "x.pcap"
    data = [(at_ns, request), (at_ns + 1, tcp(NODE, CLIENT, RST)), (at_ns + 2, icmp(request[:28]))]
    file.write_bytes(pcap(link, *data, order=order))
    assert list(read(file)) == [
        Packet(
            at_ns=at_ns,
            kind=Kind.UDP,
            source=CLIENT,
            destination=NODE,
            ident=7,
            payload=b"ping 3\n",
        ),
        Packet(at_ns=at_ns + 1, kind=Kind.TCP, source=NODE, destination=CLIENT, ident=7, flags=RST),
        Packet(at_ns=at_ns + 2, kind=Kind.ICMP, source=CLIENT, destination=NODE, ident=7),
    ]


def test_what_is_of_no_concern_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "x.pcap"
    echo = icmp(udp(CLIENT, NODE, b""), kind=8)
    fragment = bytearray(udp(CLIENT, NODE, b"rest"))
    fragment[6:8] = b"\x00\x10"
    file.write_bytes(pcap(ETHERNET, (1, echo), (2, bytes(fragment)), (3, b"\x60" + b"\0" * 60)))
    assert list(read(file)) == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "starts with nothing"),
        (struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 320, 1), "nanosecond"),
        (pcap(ETHERNET, (1, tcp(NODE, CLIENT, RST)))[:-1], "torn"),
        (pcap(ETHERNET, (1, b""))[:-20], "torn"),
        (pcap(147, (1, b"")), "link type 147"),
    ],
)
def test_what_is_no_such_capture_is_an_error(tmp_path: Path, data: bytes, says: str) -> None:
    file = tmp_path / "x.pcap"
    file.write_bytes(data)
    with pytest.raises(PcapError, match=says):
        list(read(file))


def test_a_stamp_between_two_pairs_takes_the_bounds_of_both() -> None:
    place = Translation((Pair(1000, Interval(100, 110)), Pair(2000, Interval(90, 95))))
    assert place(1500) == Interval(1390, 1410)
    assert place(2500) == Interval(2405, 2410)  # after the last one, only that is known
    assert place(500) == Interval(390, 400)


@pytest.mark.parametrize("step_ns", [-20 * NS_PER_MS, 20 * NS_PER_MS])
def test_a_stepped_wall_clock_is_refused(step_ns: int) -> None:
    pairs = (Pair(NS_PER_S, Interval(0, 9)), Pair(2 * NS_PER_S, Interval(step_ns, step_ns + 9)))
    with pytest.raises(ClockStepped, match=r"20\.000 ms"):
        Translation(pairs)


def test_real_pairs_translate_to_now() -> None:
    import time

    clock = WallClock()
    before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    at = Translation(clock.close())(real)
    assert at.lo <= after
    assert at.hi >= before


def test_without_tcpdump_there_is_no_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(CaptureError, match="not installed"), Tcpdump("lo", "icmp", tmp_path / "x"):
        pass


@pytest.mark.skipif(find_tcpdump() is None, reason="tcpdump is not installed")
def test_a_tcpdump_that_does_not_start_says_why(tmp_path: Path) -> None:
    capture = Tcpdump("no-such-link", "icmp", tmp_path / "x")
    with pytest.raises(CaptureError, match=r"did not start: .*no-such-link"), capture:
        pass


class Interrupted(BaseException):
    """As a Ctrl-C: no Exception."""


def test_one_that_is_interrupted_while_it_starts_is_ended(tmp_path: Path) -> None:
    """The prefix stands for a tcpdump that takes long to start."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    capture = Tcpdump("lo", "icmp", tmp_path / "x", prefix=("sh", "-c", "exec sleep 60"))
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        with pytest.raises(Interrupted), capture:
            pass
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert capture.running is False


@pytest.mark.skipif(find_tcpdump() is None, reason="tcpdump is not installed")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_it_ends_with_a_process_that_is_terminated(tmp_path: Path) -> None:
    code = textwrap.dedent(f"""
        import time
        from pathlib import Path
        from bench.tcpdump import CaptureError, Tcpdump
        try:
            with Tcpdump("lo", "udp and port 9", Path({str(tmp_path / "x")!r})) as capture:
                print(capture.pid, flush=True)
                time.sleep(60)
        except CaptureError as error:
            print(error, flush=True)
    """)
    running = subprocess.Popen(
        [sys.executable, "-c", code], cwd=TOP, stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        said = running.stdout.readline().strip()
        if "permission" in said.lower():
            pytest.skip("needs the right to capture packets (CAP_NET_RAW)")
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == -signal.SIGTERM
    finally:
        running.kill()
        running.wait()
        assert running.stdout is not None
        running.stdout.close()  # what outlives it would keep it open
    deadline = time.monotonic() + 10
    while _runs(int(said)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if _runs(int(said)):
        os.kill(int(said), signal.SIGTERM)
        pytest.fail("tcpdump outlives who started it")


def _runs(pid: int) -> bool:
    try:
        return b"tcpdump" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


COUNTS = ("listening on lo", "20 packets captured", "21 packets received by filter")


@pytest.mark.parametrize(
    ("code", "said", "why"),
    [
        (0, (*COUNTS, "0 packets dropped by kernel"), None),
        (0, (*COUNTS, "1 packet dropped by kernel"), "holes"),
        (0, (*COUNTS, "0 packets dropped by kernel", "2 packets dropped by interface"), "holes"),
        (0, COUNTS, "does not say"),
        (1, (*COUNTS, "0 packets dropped by kernel"), "ended with 1"),
    ],
)
def test_a_hole_in_a_capture_is_told(code: int, said: tuple[str, ...], why: str | None) -> None:
    found = fault(code, said)
    assert (found is None) if why is None else (found is not None and why in found)


@pytest.mark.skipif(find_tcpdump() is None, reason="tcpdump is not installed")
def test_tcpdump_sees_a_datagram_on_loopback(tmp_path: Path) -> None:
    capture = Tcpdump("lo", "udp and port 9", tmp_path / "lo.pcap")
    try:
        with capture, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"here", ("127.0.0.1", 9))
    except CaptureError as error:
        if "permission" not in str(error).lower():
            raise
        pytest.skip("needs the right to capture packets (CAP_NET_RAW)")
    assert b"here" in {packet.payload for packet in read(capture.file)}
