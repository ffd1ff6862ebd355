"""What HAProxy is told, and what is read of its answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch.balancers.config import Asked, Server, config
from pytest_drainwatch.balancers.stat import parse
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import LoadBalancer
from pytest_drainwatch.preflight import balancer_up

SERVERS = (
    Server(node="a.example", address="10.0.0.1", port=30001),
    Server(node="b", address="fd00::2", port=30001),
)
TCP = Asked(
    balancer=LoadBalancer(check_interval_ns=250 * NS_PER_MS, fall=3, rise=4),
    servers=SERVERS,
    clients=1234,
)
HEAD = "# pxname,svname,scur,stot,status,check_status,\n"


def text(asked: Asked) -> str:
    return config(asked, listening=7, api=8)


def test_the_servers_are_the_nodes_node_ports() -> None:
    lines = [line.strip() for line in text(TCP).splitlines()]
    assert "server node0 10.0.0.1:30001" in lines
    assert "server node1 [fd00::2]:30001" in lines
    assert "bind fd@7" in lines
    assert "stats socket fd@8 level admin" in lines
    assert "maxconn 1234" in lines


def test_checks_are_as_often_and_as_patient_as_asked_for() -> None:
    assert "default-server check inter 250ms fall 3 rise 4\n" in text(TCP)
    slower = replace(TCP, balancer=LoadBalancer(check_interval_ns=5 * NS_PER_S, fall=2, rise=1))
    assert "default-server check inter 5000ms fall 2 rise 1\n" in text(slower)


def test_only_a_service_with_a_health_check_node_port_is_asked_there() -> None:
    assert "httpchk" not in text(TCP)
    local = text(replace(TCP, health=31234))
    assert "option httpchk GET /healthz" in local
    assert "rise 4 port 31234\n" in local


def test_a_node_that_refuses_is_not_asked_again() -> None:
    assert "retries 0" in text(TCP)


@pytest.mark.parametrize(
    ("status", "up"), [("UP", True), ("UP 1/2", True), ("DOWN", False), ("DOWN 1/2", False)]
)
def test_a_server_gets_new_connections_until_its_last_check_failed(status: str, up: bool) -> None:
    (stat,) = parse(f"{HEAD}nodes,node0,3,17,{status},L7OK,\n").values()
    assert (stat.up, stat.sessions, stat.given) == (up, 3, 17)


@pytest.mark.parametrize(
    ("word", "passed"), [("L7OK", True), ("* L4OK", True), ("L7STS", False), ("INI", False)]
)
def test_a_check_that_is_under_way_keeps_the_word_of_the_last(word: str, passed: bool) -> None:
    (stat,) = parse(f"{HEAD}nodes,node0,0,0,UP,{word},\n").values()
    assert stat.passed is passed


@pytest.mark.parametrize("answer", ["Unknown command", "# svname,scur\nnode0,1\n"])
def test_an_odd_answer_is_an_error(answer: str) -> None:
    if answer.startswith("#"):
        with pytest.raises(ValueError, match="odd answer"):
            parse(answer)
    else:
        assert parse(answer) == {}


def test_every_node_must_be_up_by_a_check_that_went_well() -> None:
    def stats(*rows: str) -> str:
        return HEAD + "".join(f"nodes,{row},\n" for row in rows)

    up, initial = "node0,0,0,UP,L7OK", "node1,0,0,UP,INI"
    down, other = "node1,0,0,DOWN,L7STS", "node1,0,0,UP,L7OK"
    assert balancer_up(parse(stats(up, other)), 2, "asked").passed
    for bad in (stats(up), stats(up, initial), stats(up, down)):
        found = balancer_up(parse(bad), 2, "asked")
        assert not found.passed
        assert "spread_over_nodes" in found.look_at
