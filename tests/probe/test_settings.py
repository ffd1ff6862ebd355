"""The probe refuses what it cannot mean, by name, before it listens."""

from __future__ import annotations

import socket

import pytest

from tests.loopback.rig import Probe, Rig


def refused(**settings: str) -> tuple[int, str]:
    """Exit code and message of a probe that must not start."""
    probe = Probe(**settings)
    try:
        code = probe.wait()
        last = probe.lines[-1]
    finally:
        probe.close()
    assert last["event"] == "fatal"
    assert "listening" not in probe.events()
    return code, str(last["message"])


@pytest.mark.parametrize(
    ("setting", "value", "accepts"),
    [
        ("POD_UID", "", "letters, digits"),
        ("POD_UID", "a b", "letters, digits"),
        ("POD_UID", "a/b", "letters, digits"),
        ("POD_UID", "x" * 101, "1..100"),
        ("POD_NAME", "a\nb", "letters, digits"),
        ("DRAIN_BEHAVIOR", "drian", "drain, exit-now, ignore"),
        ("DRAIN_BEHAVIOR", "", "drain, exit-now, ignore"),
        ("READINESS_ON_DRAIN", "maybe", "fail, keep"),
        ("ACCEPT_ON_DRAIN", "no", "close, keep"),
        ("EXIT_NOW_RESET", "yes", "true, false"),
        ("DRAIN_SECONDS", "-1", "0 to 3600 seconds"),
        ("DRAIN_SECONDS", "1e3", "0 to 3600 seconds"),
        ("DRAIN_SECONDS", "nan", "0 to 3600 seconds"),
        ("DRAIN_SECONDS", "61m", "0 to 3600 seconds"),
        ("DRAIN_SECONDS", "", "0 to 3600 seconds"),
        ("RESPONSE_DELAY", "soon", "0 to 3600 seconds"),
        ("TCP_PORT", "65536", "a port 1..65535"),
        ("UDP_PORT", "-1", "a port 1..65535"),
        ("HTTP_PORT", "http", "a port 1..65535"),
        ("TCP_PORT", "٣", "a port 1..65535"),
        ("BIND", "localhost", "an IPv4 or IPv6 address"),
    ],
)
def test_a_bad_setting_is_named(setting: str, value: str, accepts: str) -> None:
    uid = {} if setting == "POD_UID" else {"POD_UID": "pod-a"}
    code, message = refused(**{**uid, setting: value})
    assert code == 64
    assert message.startswith(f"{setting} is {value!r}; expected ")
    assert accepts in message


def test_an_identity_is_required() -> None:
    probe = Probe(None)
    try:
        assert probe.wait() == 64
        assert probe.lines[-1]["message"].startswith("POD_UID is not set; expected the pod's UID")
    finally:
        probe.close()


@pytest.mark.parametrize("setting", ["TCP_PORT", "UDP_PORT", "HTTP_PORT"])
def test_a_port_in_use_is_named(setting: str) -> None:
    kind = socket.SOCK_DGRAM if setting == "UDP_PORT" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as holder:
        holder.bind(("127.0.0.1", 0))
        if kind is socket.SOCK_STREAM:
            holder.listen()
        port = holder.getsockname()[1]
        code, message = refused(**{setting: str(port)})
    assert code == 69
    assert message.startswith(f"{setting}: cannot listen on 127.0.0.1 port {port}")
    assert "expected a free port" in message


@pytest.mark.parametrize(
    ("text", "drain_ns"),
    [
        ("25", 25_000_000_000),
        ("2.5", 2_500_000_000),
        (".5", 500_000_000),
        ("500ms", 500_000_000),
        ("25s", 25_000_000_000),
        ("1m", 60_000_000_000),
        ("0", 0),
    ],
)
def test_durations(rig: Rig, text: str, drain_ns: int) -> None:
    assert rig.probe(DRAIN_SECONDS=text).event("probe_started")["drain_ns"] == drain_ns


def test_the_log_opens_with_the_whole_configuration(rig: Rig) -> None:
    probe = rig.probe("uid-1", POD_NAME="probe-0", EXIT_NOW_RESET="false")
    started = probe.event("probe_started")
    expected = {
        "pod_uid": "uid-1",
        "pod_name": "probe-0",
        "behavior": "drain",
        "readiness_on_drain": "fail",
        "accept_on_drain": "close",
        "drain_ns": 25_000_000_000,
        "exit_now_reset": False,
        "bind": "127.0.0.1",
        "tcp_port": 0,
        "udp_port": 0,
        "http_port": 0,
    }
    assert expected.items() <= started.items()
    assert len(started["nonce"]) == 16
    assert rig.probe("uid-1").nonce != probe.nonce


def test_every_address_of_both_families_by_default(rig: Rig) -> None:
    probe = rig.probe(BIND="")
    for address in ("127.0.0.1", "::1"):
        try:
            with socket.create_connection((address, probe.tcp_port), timeout=5) as sock:
                sock.sendall(b"ping 1\n")
                assert sock.recv(200).startswith(b"pong 1 ")
        except OSError:
            if address != "::1":
                raise
            pytest.skip("this host has no IPv6 loopback")
