"""Whether anybody accepts connections at an address: asked before flows are dialled."""

from __future__ import annotations

import socket

import pytest

from pytest_drainwatch.flows import reach
from tests.loopback.tried import closed_port, full_listener


def test_a_listener_accepts(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert reach.problem("127.0.0.1", port, None) is None
        assert reach.main(["127.0.0.1", str(port), "127.0.0.2"]) == reach.ACCEPTED
    assert capsys.readouterr().err == ""


def test_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    assert reach.main(["127.0.0.1", str(closed_port())]) == reach.NOBODY
    assert "ECONNREFUSED" in capsys.readouterr().err


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "PATIENCE_S", 0.3)
    with full_listener() as port:
        told = reach.problem("127.0.0.1", port, None)
    assert told is not None
    assert "ETIMEDOUT" in told


def test_an_address_that_is_not_ours_cannot_be_asked_from() -> None:
    told = reach.problem("127.0.0.1", 1, "192.0.2.1")
    assert told is not None
    assert "EADDRNOTAVAIL" in told


@pytest.mark.parametrize("words", [[], ["127.0.0.1"], ["127.0.0.1", "x"], ["127.0.0.1", "0"]])
def test_asked_wrongly(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert reach.main(words) == reach.USAGE
    assert "expected ADDRESS PORT" in capsys.readouterr().err
