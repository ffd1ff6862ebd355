"""One-way flows: the probe answers nothing, and tells what it received."""

from __future__ import annotations

import signal
import socket
import time
from typing import Any

from tests.loopback.rig import LOOPBACK, Probe, Rig


def send(probe: Probe, *notes: tuple[int, str]) -> list[int]:
    """Send each note (seq, flow); returns their stamps."""
    stamps = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for seq, flow in notes:
            stamps.append(time.monotonic_ns())
            line = f"note {seq} {stamps[-1]} {flow}\n".encode()
            sock.sendto(line, (LOOPBACK, probe.udp_port))
        sock.settimeout(0.2)
        try:
            raise AssertionError(f"a note was answered: {sock.recv(2048)!r}")
        except TimeoutError:
            pass
    return stamps


def told(probe: Probe, flow: str, **wanted: object) -> dict[str, Any]:
    """The first row about ``flow`` that has these values."""

    def row(line: dict[str, Any]) -> dict[str, Any] | None:
        rows = line.get("flows", []) if line["event"] == "udp_received" else []
        return next((r for r in rows if r["flow"] == flow and wanted.items() <= r.items()), None)

    found = row(probe.await_line(lambda line: row(line) is not None, f"a line about {flow}"))
    assert found is not None
    return found


def test_what_came_is_counted_per_flow_and_not_by_address(rig: Rig) -> None:
    """One socket, two flows: behind masquerade they would look the same (FACTS K13)."""
    probe = rig.probe()
    before = time.monotonic_ns()
    stamps = send(probe, *((seq, flow) for seq in (1, 2, 3) for flow in ("one", "two")))
    for flow in ("one", "two"):
        row = told(probe, flow, count=3)
        assert (row["first_seq"], row["last_seq"], row["duplicates"]) == (1, 3, 0)
        assert before <= row["first_ns"] <= row["last_ns"] <= time.monotonic_ns()
        assert row["first_sent_ns"] in stamps
        assert row["last_sent_ns"] in stamps
        assert 0 <= row["passage_min_ns"] <= row["passage_max_ns"]


def test_lost_doubled_and_reordered_are_three_things(rig: Rig) -> None:
    probe = rig.probe()
    send(probe, *((seq, "f") for seq in (2, 3, 3, 7, 5, 5, 9, 1, 9)))
    row = told(probe, "f", count=6)  # 1 2 3 5 7 9
    assert (row["first_seq"], row["last_seq"]) == (1, 9)
    assert (row["reordered"], row["duplicates"]) == (2, 3)


def test_those_that_a_later_one_overtook_at_the_start_are_no_duplicates(rig: Rig) -> None:
    """5 came first, then 3: from there on 4 is known to be missing."""
    probe = rig.probe()
    send(probe, *((seq, "f") for seq in (5, 3, 4, 4)))
    row = told(probe, "f", count=3)
    assert (row["first_seq"], row["last_seq"]) == (3, 5)
    assert (row["reordered"], row["duplicates"]) == (2, 1)


def test_what_is_no_note_is_neither_counted_nor_answered(rig: Rig) -> None:
    probe = rig.probe()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for junk in (b"note 1 x\n", b"note 1 5 a b\n", b"note 1 5 a", b"note -1 5 a\n", b"\n"):
            sock.sendto(junk, (LOOPBACK, probe.udp_port))
        sock.settimeout(0.3)
        try:
            raise AssertionError(f"answered {sock.recv(2048)!r}")
        except TimeoutError:
            pass
    send(probe, (1, "a"))
    assert told(probe, "a", count=1)["first_seq"] == 1
    probe.signal(signal.SIGTERM)
    assert [row["flow"] for line in probe.lines for row in line.get("flows", [])] == ["a"]


def test_the_last_word_tells_of_every_flow(rig: Rig) -> None:
    """Also of those that nothing came for since they were told."""
    probe = rig.probe(DRAIN_BEHAVIOR="exit-now")
    send(probe, *((1, f"flow-{n}") for n in range(70)))
    told(probe, "flow-69", count=1)
    probe.signal(signal.SIGTERM)
    assert probe.wait() == 0
    last = [line for line in probe.lines if line.get("final")]
    assert sorted(row["flow"] for line in last for row in line["flows"]) == sorted(
        f"flow-{n}" for n in range(70)
    )
    assert probe.events()[-1] == "exiting"
    assert all(len(str(line)) < 16 * 1024 for line in last), "a follower drops longer lines"


def test_a_killed_probe_has_told_what_it_had_a_second_before(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="ignore")
    send(probe, (1, "f"), (2, "f"))
    told(probe, "f", count=2)
    send(probe, (3, "f"))
    told(probe, "f", count=3)
    probe.process.kill()
    probe.wait()
    assert not any(line.get("final") for line in probe.lines)
    assert len([line for line in probe.lines if line["event"] == "udp_received"]) == 2


def test_flows_beyond_the_limit_are_said_to_be_uncounted(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="exit-now")
    for first in range(0, 1024, 64):
        send(probe, *((1, f"f{n}") for n in range(first, first + 64)))
    send(probe, (1, "one-too-many"), (2, "one-too-many"))
    probe.signal(signal.SIGTERM)
    probe.wait()
    last = [line for line in probe.lines if line.get("final")]
    assert sum(len(line["flows"]) for line in last) == 1024
    assert last[-1]["untold"] == 2
