"""A real HAProxy of ours on loopback: held, noticed, let go, and ended with us."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from pytest_drainwatch.balancers import Asked, BalancerFailed, Front, Server
from pytest_drainwatch.balancers import process as haproxy
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.scenario import LoadBalancer
from tests.loopback.haproxy import HAPROXY, NOT_HAD, Held, Named
from tests.loopback.rig import LOOPBACK, PATIENCE_S

needs_haproxy = pytest.mark.skipif(HAPROXY is None, reason=NOT_HAD)
QUICK = LoadBalancer(
    check_interval_ns=100 * NS_PER_MS, fall=2, rise=1, deregistration_ns=300 * NS_PER_MS
)


def until(true: Callable[[], bool]) -> None:
    """Wait for it; a guard against hanging."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)


@contextmanager
def fronted(
    seen: list[Observation], balancer: LoadBalancer = QUICK
) -> Iterator[tuple[Front, dict[str, Named]]]:
    """A balancer in front of two servers that say who they are."""
    with ExitStack() as stack:
        named = {name: Named(name) for name in ("one", "two")}
        for each in named.values():
            stack.callback(each.close)
        servers = [Server(node=n, address=LOOPBACK, port=named[n].port) for n in named]
        front = Front(
            Asked(balancer=balancer, servers=servers, clients=100),
            listen=LOOPBACK,
            record=seen.append,
        )
        stack.callback(front.close)
        until(lambda: len(front.servers()) == 2 and all(s.passed for s in front.servers().values()))
        yield front, named


def of(seen: list[Observation], event: Event, node: str) -> list[Observation]:
    return [o for o in seen if o.event is event and o.subject == node]


def answering(front: Front) -> str | None:
    """Who answers a new connection; None: it is accepted and not served."""
    held = Held((front.address, front.port))
    held.close()
    return held.name


@needs_haproxy
def test_a_node_that_fails_its_checks_gets_no_more_and_is_let_go_when_the_delay_is_over() -> None:
    seen: list[Observation] = []
    with fronted(seen) as (front, named):
        held = {each.name: each for each in (Held((front.address, front.port)) for _ in range(2))}
        assert set(held) == {"one", "two"}
        named["one"].close()  # it listens no more, and serves whom it has
        assert None in {answering(front) for _ in range(4)}, "it is not yet known to be down"
        until(lambda: not front.servers()["one"].up)
        assert held["one"].echoes(), "the old connection stays for now"
        assert {answering(front) for _ in range(6)} == {"two"}
        until(lambda: bool(of(seen, Event.BALANCER_DEREGISTERED, "one")))
        assert held["one"].ended()
        assert held["two"].echoes()
        for each in held.values():
            each.close()
    (down,) = [o for o in of(seen, Event.BALANCER_SERVER, "one") if not o.data["up"]]
    (let_go,) = of(seen, Event.BALANCER_DEREGISTERED, "one")
    assert let_go.data == {"sessions": 1}
    assert let_go.at.hi - down.at.lo >= QUICK.deregistration_ns
    assert not of(seen, Event.BALANCER_DEREGISTERED, "two")
    assert all(o.data["up"] for o in of(seen, Event.BALANCER_SERVER, "two"))


@needs_haproxy
def test_before_the_delay_is_over_nobody_is_let_go() -> None:
    seen: list[Observation] = []
    patient = LoadBalancer(
        check_interval_ns=100 * NS_PER_MS, fall=1, rise=1, deregistration_ns=3600 * NS_PER_S
    )
    with fronted(seen, patient) as (front, named):
        held = [Held((front.address, front.port)) for _ in range(2)]
        named["one"].close()
        until(lambda: not front.servers()["one"].up)
        time.sleep(0.5)
        assert all(each.echoes() for each in held)
        for each in held:
            each.close()
    assert not of(seen, Event.BALANCER_DEREGISTERED, "one")


@needs_haproxy
def test_one_that_ends_by_itself_is_noticed() -> None:
    with fronted([]) as (front, _):
        front.check()
        child = _child_of(front.pid)
        os.kill(child, signal.SIGKILL)

        def noticed() -> bool:
            try:
                front.check()
            except BalancerFailed as error:
                return "HAProxy" in str(error)
            return False

        until(noticed)


@needs_haproxy
def test_it_ends_with_whoever_started_it() -> None:
    """By SIGKILL, of which nobody can take care."""
    program = (
        "import time\n"
        "from pytest_drainwatch.balancers.config import Asked, Server\n"
        "from pytest_drainwatch.balancers.process import Haproxy\n"
        "from pytest_drainwatch.core.scenario import LoadBalancer\n"
        "one = Server(node='one', address='127.0.0.1', port=9)\n"
        "asked = Asked(balancer=LoadBalancer(), servers=[one], clients=100)\n"
        "running = Haproxy(asked, '127.0.0.1')\n"
        "print(running.pid, running.folder, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().decode().split()
        parent, child = int(pid), _child_of(int(pid))
        assert Path(folder).is_dir()
        owner.kill()
    until(lambda: not _runs(child) and not _runs(parent))
    assert not Path(folder).exists()


def test_a_machine_without_it_is_told_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(BalancerFailed, match="apt-get install haproxy"):
        haproxy.program()


@needs_haproxy
def test_an_address_that_is_not_ours_is_an_error() -> None:
    asked = Asked(
        balancer=QUICK, servers=[Server(node="one", address=LOOPBACK, port=9)], clients=100
    )
    with pytest.raises(BalancerFailed, match=r"192\.0\.2\.1"):
        haproxy.Haproxy(asked, "192.0.2.1")


def _child_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    until(lambda: bool(children.read_text().split()))
    return int(children.read_text().split()[0])


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
