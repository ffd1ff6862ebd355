"""What workers say while they measure, and how the controller's terminal shows it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from queue import Empty, Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.showing.relay import Kind, Message, Receiver, Sender, read

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sockets with names alone")


def test_messages_arrive_in_their_order_and_nothing_is_left() -> None:
    got: Queue[Message] = Queue()
    receiver = Receiver(got.put)
    sender = Sender(receiver.name, "gw3")
    for number in range(100):
        sender(Kind.LINE, f"line {number}")
    assert [got.get(timeout=5).text for _ in range(100)] == [f"line {n}" for n in range(100)]
    receiver.close()
    assert not [t for t in threading.enumerate() if t.name == "drainwatch-relay"]
    sender(Kind.LINE, "to nobody")
    sender.close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as again, pytest.raises(OSError):  # noqa: PT011
        again.connect("\0" + receiver.name)


def test_a_controller_that_does_not_read_holds_nobody_up() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind("\0drainwatch-test-deaf")
        sender = Sender("drainwatch-test-deaf", "gw0")
        for _ in range(15):  # beyond what the kernel keeps for it
            sender(Kind.STATUS, "x" * 10_000)
        sender.close()


HOSTILE = (
    *(b"", b"{", b"[]", b"\xff", b'{"worker": 1}', b'{"worker":"a","kind":"b"}'),
    *(b"[" * 4000, b'{"a":' * 800, b"9" * 4090),
)


def test_what_is_no_message_is_not_shown() -> None:
    got: Queue[Message] = Queue()
    receiver = Receiver(got.put)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        for raw in HOSTILE:
            stranger.sendto(raw, "\0" + receiver.name)
        stranger.sendto(json.dumps(_told("gw0", "line", "last")).encode(), "\0" + receiver.name)
    assert got.get(timeout=5).text == "last"
    with pytest.raises(Empty):
        got.get(timeout=0.05)
    receiver.close()


@given(st.binary(max_size=200) | st.builds(lambda t: json.dumps(_told(t, "line", t)), st.text()))
def test_no_bytes_reach_the_terminal_as_a_command(raw: bytes | str) -> None:
    message = read(raw if isinstance(raw, bytes) else raw.encode(errors="replace"))
    if message is not None:
        assert message.text.isprintable()
        assert message.worker.isprintable()


def _told(worker: str, kind: str, text: str) -> dict[str, str]:
    return {"worker": worker, "kind": kind, "text": text}


SAYING = """
from pytest_drainwatch.showing.progress import PytestProgress
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(request, number):
    print("captured")
    progress = PytestProgress(request.config, f"trial-{number}[r00]")
    progress.line("kept: export KUBECONFIG=x")
    progress.phase("settle", 3_000_000_000)
    progress.status("10 of 10 flows")
    progress.rest()
"""


@pytest.mark.parametrize("more", [[], ["-s"], ["--dist=worksteal"]], ids=str)
def test_under_xdist_phases_come_to_the_terminal(suite: pytest.Pytester, more: list[str]) -> None:
    suite.makepyfile(SAYING)
    result = suite.runpytest_subprocess("-n2", "-v", *more)
    result.assert_outcomes(passed=4)
    lines = [line for line in result.outlines if ": settle" in line]
    assert sorted(line.partition(" trial-")[2] for line in lines) == [
        f"{number}[r00]: settle, about 3 s" for number in range(4)
    ]
    assert all(line.startswith("drainwatch: gw") for line in lines), "no line is torn"
    result.stdout.no_fnmatch_line("*10 of 10*")  # that is for a terminal


def test_under_xdist_q_is_quiet_and_without_v_there_is_what_one_must_know(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile(SAYING)
    plain = suite.runpytest_subprocess("-n2")
    plain.stdout.fnmatch_lines(["drainwatch: gw? trial-?[[]r00]: kept: export KUBECONFIG=x"])
    plain.stdout.no_fnmatch_line("*settle*")
    suite.runpytest_subprocess("-n2", "-q").stdout.no_fnmatch_line("*kept*")


@pytest.mark.parametrize("number", ["-x", "--maxfail=2"])
def test_a_run_that_stops_early_ends_and_names_what_never_ran(
    drain_suite: pytest.Pytester, number: str
) -> None:
    result = drain_suite.runpytest_subprocess(
        *("-n2", "--dist=worksteal", "-v", number, "--dw-repeat=8"), timeout=60
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    (written,) = drain_suite.path.glob("results/2*/summary.json")
    states = [t["state"] for t in json.loads(written.read_text())["trials"]]
    assert len(states) == 24
    assert states.count("not-run") > 0
    assert not list(written.parent.glob(".*"))


CRASHING = """
import os
import pytest

@pytest.mark.parametrize("number", range(6))
def test_it(number, trial):
    if number == 2:
        os.kill(os.getpid(), 9)
"""


def test_a_worker_that_crashes_does_not_hang_the_run(suite: pytest.Pytester) -> None:
    suite.makepyfile(CRASHING)
    result = suite.runpytest_subprocess("-n2", "-v", timeout=60)
    result.assert_outcomes(passed=5, failed=1)


def test_where_there_can_be_no_relay_there_are_results_all_the_same(
    suite: pytest.Pytester,
) -> None:
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\nfrom pytest_drainwatch.showing import relay\n"
            "def refuse(self, deliver): raise OSError('no such sockets')\n"
            "relay.Receiver.__init__ = refuse\n"
        )
    suite.makepyfile(SAYING + "\ndef test_trial(trial): pass\n")
    result = suite.runpytest_subprocess("-n2", "-v")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["drainwatch: 1 trial(s), *", "*drain-delete*1/1 announced-fin*"])
    result.stdout.no_fnmatch_line("*settle*")


SLOW = """
import time
import pytest
from pytest_drainwatch import Scenario

@pytest.mark.parametrize("scenario", [Scenario(name=f"s{number}") for number in range(6)])
def test_it(scenario, trial):
    if scenario.id != "s0":
        time.sleep(30)
"""


def everybody(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does


def the_controller(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)  # as CI systems do


@pytest.mark.parametrize(
    ("workers", "interrupt"),
    [([], everybody), (["-n2"], everybody), (["-n2"], the_controller)],
    ids=["alone", "sigint", "sigterm"],
)
def test_a_run_that_is_interrupted_is_summed_up(
    suite: pytest.Pytester,
    workers: list[str],
    interrupt: Callable[[subprocess.Popen[str]], None],
) -> None:
    suite.makepyfile(SLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-v", "-s", "-p", "no:cacheprovider", *workers],
        cwd=suite.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    for line in process.stdout:
        if " PASSED" in line or line.startswith("PASSED"):
            break
    interrupt(process)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, rest
    (written,) = suite.path.glob("results/2*/summary.json")
    summary = json.loads(written.read_text())
    states = [trial["state"] for trial in summary["trials"]]
    assert len(states) == 6
    assert {"measured", "not-run"} <= set(states) <= {"measured", "not-run", "unfinished"}
    assert summary["complete"] is False
    assert "incomplete: " in rest
    assert not list(written.parent.glob(".*"))


def test_an_xdist_run_without_trials_keeps_its_signals(suite: pytest.Pytester) -> None:
    suite.makepyfile("import time\n\ndef test_it(): pass\n\ndef test_long(): time.sleep(30)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-v", "-n1", "-p", "no:cacheprovider"],
        cwd=suite.path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    for line in process.stdout:
        if " PASSED" in line:
            break
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == -signal.SIGTERM
    process.stdout.close()
