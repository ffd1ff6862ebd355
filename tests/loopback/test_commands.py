"""``drainwatch probe`` and ``drainwatch client`` as a person uses them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import loads
from tests.loopback.rig import TOP, Probe, Rig

DRAINWATCH = [sys.executable, "-m", "pytest_drainwatch"]
ENV = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(TOP)}


@pytest.fixture
def by_hand(rig: Rig) -> Iterator[Probe]:
    """A probe started by the command instead of directly."""
    program = [*DRAINWATCH, "probe", "--bind", "127.0.0.1", "--drain", "300ms"]
    ports = ["--tcp-port", "0", "--udp-port", "0", "--http-port", "0"]
    probe = Probe.__new__(Probe)
    super(Probe, probe).__init__([*program, *ports], ENV, subprocess.DEVNULL)
    try:
        yield probe.listening()
    finally:
        probe.close()


def client(folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DRAINWATCH, "client", *options, "--recording", str(folder / "seen.jsonl")],
        env=ENV,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_both_ends_by_hand(by_hand: Probe, tmp_path: Path) -> None:
    started = by_hand.event("probe_started")
    assert (started["pod_uid"], started["drain_ns"]) == ("local", 300_000_000)
    ports = ["--tcp-port", str(by_hand.tcp_port), "--udp-port", str(by_hand.udp_port)]
    running = client(tmp_path, "127.0.0.1", *ports, "--tcp-flows", "2", "--udp-flows", "1")
    assert running.stdout is not None
    for line in running.stdout:
        if "tcp 2/2 alive" in line and "udp 1/1 alive" in line:
            break
    by_hand.signal(signal.SIGTERM)
    for line in running.stdout:
        if "2 ended" in line:
            break
    time.sleep(0.2)
    os.killpg(running.pid, signal.SIGINT)  # Ctrl-C reaches the agent as well
    shown, errors = running.communicate(timeout=20)
    assert running.returncode == 0, errors
    assert shown.count("drained-clean-close announced-fin") == 2
    assert "udp-0001  severed refused" in shown
    recording = loads((tmp_path / "seen.jsonl").read_text())
    assert recording.damage is None
    assert [o.event for o in recording.observations].count(Event.FLOW_FIN) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["seen.jsonl"]


def test_it_stops_by_itself(by_hand: Probe, tmp_path: Path) -> None:
    ports = ["--tcp-port", str(by_hand.tcp_port), "--udp-flows", "0"]
    running = client(tmp_path, "127.0.0.1", *ports, "--seconds", "0.5")
    shown, errors = running.communicate(timeout=20)
    assert running.returncode == 0, errors
    assert sum(line.startswith("tcp-00") for line in shown.splitlines()) == 10
    assert "udp-0001" not in shown


def test_new_connections_by_hand(by_hand: Probe, tmp_path: Path) -> None:
    ports = ["--tcp-port", str(by_hand.tcp_port), "--udp-port", str(by_hand.udp_port)]
    none = ["--tcp-flows", "0", "--udp-flows", "0", "--probe-source", "127.0.0.7"]
    probers = ["--probe-interval", "5ms", "--udp-probe-interval", "50ms"]
    running = client(tmp_path, "127.0.0.1", *ports, *none, *probers, "--seconds", "0.5")
    shown, errors = running.communicate(timeout=20)
    assert running.returncode == 0, errors
    for subject in ("tcp-new", "udp-new"):
        (line,) = (one for one in shown.splitlines() if one.startswith(f"{subject}  "))
        assert " new connections, " in line
        assert f"(by local/{by_hand.nonce} " in line
    recording = loads((tmp_path / "seen.jsonl").read_text())
    summaries = [o.data for o in recording.observations if o.event is Event.PROBER_SUMMARY]
    assert [told["source"] for told in summaries] == ["127.0.0.7"] * 2


def test_no_new_connections_unless_asked_for(by_hand: Probe, tmp_path: Path) -> None:
    ports = ["--tcp-port", str(by_hand.tcp_port), "--udp-flows", "0"]
    running = client(tmp_path, "127.0.0.1", *ports, "--seconds", "0.2")
    shown, errors = running.communicate(timeout=20)
    assert running.returncode == 0, errors
    assert "tcp-new" not in shown


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["a..b"], 2, "expected an address or a name that resolves"),
        (["127.0.0.1", "--tcp-flows", "-1"], 3, "tcp.flows is -1"),
        (["127.0.0.1", "--source", "::1"], 3, "both IPv4 or both IPv6"),
        (["127.0.0.1", "--probe-interval", "5us"], 2, "'5us': expected a duration such as"),
        (["127.0.0.1", "--probe-interval", "0"], 3, "probers[0].interval_ns is 0"),
    ],
)
def test_what_the_client_cannot_do(
    options: list[str], code: int, says: str, tmp_path: Path
) -> None:
    running = client(tmp_path, *options)
    _, errors = running.communicate(timeout=20)
    assert running.returncode == code
    assert says in errors
    assert list(tmp_path.iterdir()) == []
