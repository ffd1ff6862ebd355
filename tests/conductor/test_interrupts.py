"""A signal may come at any instant: it stays an interrupt, and leaves no thread behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch import interrupts
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import Header, loads
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.recorder import Recorder
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.watch import Watch
from tests.conductor.api_server import Call, reply, serving


class Silent:
    def line(self, text: str) -> None: ...
    def phase(self, name: str, expected_ns: int | None = None) -> None: ...
    def status(self, text: str) -> None: ...
    def follow(self, trial: Stage) -> None: ...
    def rest(self) -> None: ...


def stage(folder: Path) -> Stage:
    header = Header(
        drainwatch_version="0",
        git_commit="0",
        trial_id="t",
        wall_clock_start="",
        clock="c",
        scenario={},
    )
    parts: dict[str, Any] = {"cluster": None, "api": None}
    return Stage(
        **parts,
        scenario=Scenario(),
        folder=folder,
        recorder=Recorder(folder / "recording.jsonl", header),
        image="",
        namespace="n",
        progress=Silent(),
    )


def validate_badly(sent: signal.Signals) -> None:
    try:
        os.kill(os.getpid(), sent)
        time.sleep(5)
    except KeyboardInterrupt as error:
        raise ValueError("a validator could not be built") from error


@pytest.mark.parametrize("sent", interrupts.SIGNALS)
def test_an_interrupt_that_somebody_turned_into_an_error_is_still_one(
    sent: signal.Signals, tmp_path: Path
) -> None:
    """pydantic's validators do so: the error says KeyboardInterrupt and is none."""
    trial = stage(tmp_path)
    with interrupts.raised():
        with pytest.raises(KeyboardInterrupt, match=sent.name), trial.phase("deploy"):
            validate_badly(sent)
        assert interrupts.received() == sent.name
    last = loads((tmp_path / "recording.jsonl").read_text()).observations[-1]
    assert last.event is Event.INTERRUPTED
    assert last.data == {"phase": "deploy", "signal": sent.name}


def test_an_error_without_a_signal_is_no_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = stage(tmp_path)
    monkeypatch.setattr("pytest_drainwatch.workload.probe.evidence", lambda *_: iter(()))
    with interrupts.raised(), pytest.raises(ValueError, match="odd"), trial.phase("deploy"):
        raise ValueError("odd")
    last = loads((tmp_path / "recording.jsonl").read_text()).observations[-1]
    assert last.event is Event.VOID


def test_the_handlers_of_before_come_back() -> None:
    before = [signal.getsignal(number) for number in interrupts.SIGNALS]
    with interrupts.raised():
        assert [signal.getsignal(number) for number in interrupts.SIGNALS] != before
    assert [signal.getsignal(number) for number in interrupts.SIGNALS] == before


def test_watches_that_are_interrupted_while_they_start_leave_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was left in a TLS handshake took the interpreter down at its end."""
    start, started = threading.Thread.start, list[threading.Thread]()

    def interrupted(thread: threading.Thread) -> None:
        if thread.name == "readyz":
            raise KeyboardInterrupt("SIGTERM")
        if thread.name.startswith("watch-"):
            started.append(thread)
        start(thread)

    def refuse(handler: BaseHTTPRequestHandler, _: Call) -> None:
        reply(handler, {}, status=500)

    with serving(refuse, tmp_path) as (api, _):
        watch = Watch(api, "n", pods="", slices="", record=lambda _: None)
        monkeypatch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt), watch:
            pass
        monkeypatch.undo()
    assert len(started) == 2
    assert not [thread for thread in started if thread.is_alive()]
