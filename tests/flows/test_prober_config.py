"""What a prober may be told, and what this machine must have for it."""

from __future__ import annotations

import errno
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch import preflight
from pytest_drainwatch.flows import limits
from pytest_drainwatch.flows.config import AgentConfig, parse_config
from pytest_drainwatch.flows.errors import ClientLimit
from pytest_drainwatch.flows.fields import ConfigError
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.probing.ports import MOST_TRIES, SourcePorts

TCP = {"proto": "tcp", "address": "127.0.0.1", "port": 7001, "interval_ns": 5_000_000}


def parse(folder: Path, probers: Any, **others: object) -> AgentConfig:
    return parse_config(json.dumps({"record": str(folder / "part"), "probers": probers, **others}))


def test_probers_need_no_flows_beside_them(tmp_path: Path) -> None:
    udp = {**TCP, "proto": "udp", "source_address": None, "patience_ns": 300_000_000}
    tcp, other = parse(tmp_path, [TCP, udp]).probers
    assert (tcp.subject, tcp.patience_ns, tcp.open_at_once) == ("tcp-new", 1_000_000_000, 201)
    assert (other.subject, other.patience_ns, other.open_at_once) == ("udp-new", 300_000_000, 61)


def test_probers_of_one_protocol_are_told_apart_by_number(tmp_path: Path) -> None:
    further = {**TCP, "address": "127.0.0.2", "number": 2, "node": "b"}
    first, second = parse(tmp_path, [{**TCP, "node": "a"}, further]).probers
    assert (first.subject, first.node) == ("tcp-new", "a")
    assert (second.subject, second.node) == ("tcp-new-2", "b")


@pytest.mark.parametrize(
    ("probers", "named"),
    [
        ({}, "probers is {}"),
        ([7], r"probers\[0\] is 7; expected an object"),
        ([{**TCP, "proto": "sctp"}], r"probers\[0\].proto is 'sctp'; expected tcp or udp"),
        ([TCP, TCP], "tcp-new, tcp-new; expected one per proto and number"),
        ([{**TCP, "address": "localhost"}], r"probers\[0\].address is 'localhost'"),
        ([{**TCP, "port": 0}], r"probers\[0\].port is 0"),
        ([{**TCP, "interval_ns": 999_999}], "interval_ns is 999999"),
        ([{**TCP, "interval_ns": 5e6}], "expected a whole number"),
        ([{**TCP, "patience_ns": True}], "patience_ns is True"),
        ([{**TCP, "source_address": "::1"}], "both IPv4 or both IPv6"),
        ([{**TCP, "address": "fe80::1%nosuch0"}], r"'fe80::1%nosuch0'; expected .*one host"),
        ([{**TCP, "address": "::1%lo"}], "without a scope"),
        ([{**TCP, "address": "fe80::1"}], "not link-local"),
        ([{**TCP, "address": "0.0.0.0"}], "unspecified"),
        ([{**TCP, "address": "255.255.255.255"}], "one host"),
        ([{**TCP, "address": "ff02::1"}], "multicast"),
        ([{**TCP, "address": "224.0.0.1"}], "multicast"),
        ([{**TCP, "address": "::ffff:10.0.0.1"}], "IPv4 in IPv6"),
        ([{**TCP, "address": "::1", "source_address": "::2%lo"}], "source_address is '::2%lo'"),
        ([{**TCP, "number": 0}], r"probers\[0\].number is 0"),
        ([{**TCP, "node": ""}], r"probers\[0\].node is ''; expected a text or null"),
        ([{**TCP, "pace": 1}], "unknown field 'pace'"),
        ([{"proto": "tcp"}], "lacks address, interval_ns, port"),
        ([], "neither tcp nor udp nor a prober"),
    ],
)
def test_a_bad_prober_is_refused_by_name(probers: Any, named: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=named):
        parse(tmp_path, probers)


def test_no_flows_and_no_prober_is_nothing_to_do(tmp_path: Path) -> None:
    nothing = {"address": "127.0.0.1", "port": 1, "flows": 0}
    with pytest.raises(ConfigError, match="0 flows and no prober"):
        parse(tmp_path, [], tcp=nothing)


def test_an_attempt_counts_as_a_send(tmp_path: Path) -> None:
    flows = {"address": "127.0.0.1", "port": 1, "flows": 10}
    config = parse(tmp_path, [TCP], tcp=flows, tcp_rate_hz=20)
    assert config.sends_per_s(dense=True) == 10 * 20 + 200


def test_an_address_is_named_as_sockets_name_it(tmp_path: Path) -> None:
    odd = {**TCP, "address": "0:0::1", "source_address": "::0:0:1"}
    (prober,) = parse(tmp_path, [odd]).probers
    assert (prober.address, prober.source_address) == ("::1", "::1")


def agent(proto: str, interval_ns: int, patience_ns: int) -> AgentConfig:
    prober = ProberConfig(
        proto=proto, address="10.0.0.1", port=1, interval_ns=interval_ns, patience_ns=patience_ns
    )
    return AgentConfig(record="part", probers=(prober,))


def test_what_waits_at_once_must_have_descriptors() -> None:
    config = agent("tcp", 5_000_000, 1_000_000_000)
    limits.check(config, 201 + limits.RESERVED_DESCRIPTORS)
    with pytest.raises(ClientLimit, match="0 flows and 201 attempts at a time need 233"):
        limits.check(config, 200 + limits.RESERVED_DESCRIPTORS)


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_what_waits_at_once_must_have_source_ports(
    proto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "port_range", lambda: (40_000, 40_200))
    limits.check(agent(proto, 5_000_000, 1_000_000_000), 10_000)
    with pytest.raises(ClientLimit, match=r"202 connections .* this host has 201"):
        limits.check(agent(proto, 5_000_000, 1_005_000_000), 10_000)


KINDS = pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])


def test_the_check_beforehand_counts_attempts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    config = agent("tcp", 5_000_000, 1_000_000_000)
    assert config.open_attempts == 201
    needed = 10 + 201 + preflight.flows.DESCRIPTOR_RESERVE
    monkeypatch.setattr("resource.getrlimit", lambda _: (needed, needed))
    assert preflight.limits_suffice(10, 201).passed
    short = preflight.limits_suffice(10, 202)
    assert (short.passed, short.hopeless) == (False, True)
    monkeypatch.setattr("pytest_drainwatch.preflight.flows.port_range", lambda: (40_000, 40_210))
    assert preflight.limits_suffice(10, 201).passed
    monkeypatch.setattr("pytest_drainwatch.preflight.flows.port_range", lambda: (40_000, 40_209))
    assert "210 source ports" in preflight.limits_suffice(10, 201).observed


@KINDS
def test_source_ports_go_around_the_whole_range(kind: socket.SocketKind) -> None:
    """No port comes again before all others were used."""
    ports, seen = SourcePorts(), []
    for _ in range(500):
        with socket.socket(socket.AF_INET, kind) as sock:
            ports.bind(sock, "127.0.0.1")
            seen.append(sock.getsockname()[1])
    low, high = limits.port_range() or (0, 0)
    assert len(set(seen)) == 500
    assert all(low <= port <= high for port in seen)


PORT_RANGE = "pytest_drainwatch.flows.probing.ports.port_range"


@KINDS
def test_a_port_that_is_held_is_passed_over_or_named(
    kind: socket.SocketKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_INET, kind) as held:
        held.bind(("127.0.0.1", 0))
        taken = held.getsockname()[1]
        monkeypatch.setattr(PORT_RANGE, lambda: (taken, taken))
        ports = SourcePorts()
        with (
            socket.socket(socket.AF_INET, kind) as sock,
            pytest.raises(OSError, match="in use"),
        ):
            ports.bind(sock, "127.0.0.1")
        assert ports.round_ns(1) is None, "it never had one"
        monkeypatch.setattr(PORT_RANGE, lambda: (taken, taken + MOST_TRIES))
        with socket.socket(socket.AF_INET, kind) as sock:
            ports = SourcePorts()
            ports._next = 0
            ports.bind(sock, "127.0.0.1")
            assert sock.getsockname()[1] != taken


class Held:
    """A socket for which only some ports are free."""

    def __init__(self, free: Callable[[int], bool]) -> None:
        self.free, self.port = free, 0

    def bind(self, address: tuple[str, int]) -> None:
        if not self.free(address[1]):
            raise OSError(errno.EADDRINUSE, "in use")
        self.port = address[1]


@pytest.mark.parametrize("block", [1, 63, 64, 65, 2000, 18_000])
def test_a_block_of_held_ports_is_leapt_over(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the trial before this one left in TIME_WAIT."""
    monkeypatch.setattr(PORT_RANGE, lambda: (30_000, 59_999))
    ports, sock = SourcePorts(), Held(lambda port: port >= 40_000 + block)
    ports._next = 10_000
    ports.bind(sock, "127.0.0.1")  # type: ignore[arg-type]
    assert sock.port >= 40_000 + block
    assert sock.port - 40_000 < max(2 * block + 1, 64 * 3)
    ports.bind(sock, "127.0.0.1")  # type: ignore[arg-type]
    skipped = sock.port - 1 - 40_000
    assert ports.round_ns(1000) == (30_000 - skipped) * 1000, "held or skipped: it is shorter"


def test_where_none_is_free_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PORT_RANGE, lambda: (30_000, 59_999))
    with pytest.raises(OSError, match="in use"):
        SourcePorts().bind(Held(lambda port: False), "127.0.0.1")  # type: ignore[arg-type]


def test_how_long_until_a_port_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of four is held, so it comes after three."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        taken = held.getsockname()[1]
        monkeypatch.setattr(PORT_RANGE, lambda: (taken, taken + 3))
        ports, seen = SourcePorts(), []
        ports._next = 0
        for _ in range(6):
            with socket.socket() as sock:
                ports.bind(sock, "127.0.0.1")
                seen.append(sock.getsockname()[1])
    if len(set(seen)) < 3:
        pytest.skip("somebody else has one of the ports next to ours")
    assert ports.round_ns(1000) == 3000
    assert seen[0] == seen[3]


def test_who_does_not_know_the_ports_does_not_know_when_they_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PORT_RANGE, lambda: None)
    ports = SourcePorts()
    with socket.socket() as sock:
        ports.bind(sock, "127.0.0.1")
        assert sock.getsockname()[1] != 0
    assert ports.round_ns(1000) is None
