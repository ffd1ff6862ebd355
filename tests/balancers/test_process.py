"""HAProxy's process: whose it is, where it can be started, and what is told when it cannot."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch.balancers import Asked, BalancerFailed, Server
from pytest_drainwatch.balancers.config import room
from pytest_drainwatch.balancers.process import Haproxy
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.scenario import Flows, LoadBalancer
from tests.loopback.haproxy import HAPROXY, NOT_HAD
from tests.loopback.rig import LOOPBACK

needs_haproxy = pytest.mark.skipif(HAPROXY is None, reason=NOT_HAD)
SERVER = Server(node="one", address=LOOPBACK, port=9)
ASKED = Asked(balancer=LoadBalancer(), servers=[SERVER], clients=321)


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Makes this the folder in which temporary ones are made."""

    def put(folder: Path) -> None:
        folder.mkdir(parents=True)
        monkeypatch.setattr(tempfile, "tempdir", str(folder))

    return put


@needs_haproxy
@pytest.mark.parametrize("name", ["a b", 'quo"te', "per%c $HOME"])
def test_it_starts_in_a_folder_of_any_name_that_nobody_may_enter(
    name: str, temporary: Callable[[Path], None]
) -> None:
    # Not pytest's own folder, whose path may be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="dw-") as short:
        temporary(Path(short, name))
        running = Haproxy(ASKED, LOOPBACK)
        assert running.version() != "unknown"
        running.close()
        assert list(Path(short, name).iterdir()) == []


@needs_haproxy
def test_a_path_that_is_too_long_for_a_socket_is_told(
    tmp_path: Path, temporary: Callable[[Path], None]
) -> None:
    temporary(tmp_path / ("x" * 110))
    with pytest.raises(BalancerFailed, match=r"api\.sock: .*too long.*TMPDIR=/tmp"):
        Haproxy(ASKED, LOOPBACK)


@needs_haproxy
def test_why_it_ended_is_told_in_its_own_words() -> None:
    with pytest.raises(BalancerFailed, match=r"\[ALERT\].*'no-such-host\.invalid'") as raised:
        Haproxy(replace(ASKED, servers=[replace(SERVER, address="no-such-host.invalid")]), LOOPBACK)
    assert "exit code 1" in str(raised.value)


@needs_haproxy
def test_it_has_room_for_what_is_asked_for_whatever_the_limit_of_descriptors() -> None:
    running = Haproxy(ASKED, LOOPBACK)
    try:
        assert f"Maxconn: {ASKED.clients}\n" in running.ask("show info")
    finally:
        running.close()


@needs_haproxy
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give away")
def test_it_has_no_rights_of_roots() -> None:
    running = Haproxy(ASKED, LOOPBACK)
    try:
        (child,) = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        status = Path(f"/proc/{child}/status").read_text()
    finally:
        running.close()
    told = dict(line.split(":\t", 1) for line in status.splitlines())
    for name in ("Uid", "Gid"):
        assert 0 not in map(int, told[name].split())
    assert told["Groups"].strip() == ""
    assert int(told["CapEff"], 16) == 0


def test_there_is_room_for_every_flow_and_for_new_connections_that_nobody_serves() -> None:
    often = Flows(tcp=20, udp=0, probe_interval_ns=NS_PER_MS)
    rarely = replace(often, probe_interval_ns=100 * NS_PER_MS)
    assert room(often) >= 20 + 3000, "a thousand a second, each for three"
    assert room(often) > room(rarely) > room(replace(rarely, probe_interval_ns=None)) > 20
    assert room(replace(rarely, tcp=9000)) > 9000
