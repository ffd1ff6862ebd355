"""Turns on a cluster that is not ours: exclusive, visible, interruptible, and gone with us."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_drainwatch import turns
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.turns import TurnError, turn
from tests.conductor.api_server import Call, reply, serving

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys, time
from tests.conductor.test_turns import there
from pytest_drainwatch import turns
turns.SAID_AFTER_S = float(sys.argv[2])
def waiting(text): print(text, flush=True)
with turns.turn(there(sys.argv[1]), waiting=waiting, test="test_" + sys.argv[3]):
    print("has it", flush=True)
    time.sleep(60)
"""


@dataclass(frozen=True, slots=True)
class There:
    """As much of a cluster as taking turns asks for."""

    kubeconfig: Path
    provider: str = "existing"
    name: str = "theirs"
    context: str | None = None


def there(kubeconfig: str | Path, provider: str = "existing") -> Cluster:
    return cast("Cluster", There(Path(kubeconfig), provider))


@dataclass(slots=True)
class Servers:
    """API servers on loopback, each with a kubeconfig: only that of kube-system is asked for."""

    folder: Path
    stack: ExitStack

    def start(self, name: str, uid: str = "", status: int = 200) -> Path:
        """The kubeconfig of one more."""

        def answer(handler: BaseHTTPRequestHandler, call: Call) -> None:
            assert call.path == "/api/v1/namespaces/kube-system"
            if status == 200:
                reply(handler, {"metadata": {"name": "kube-system", "uid": uid}})
            else:
                reply(handler, {"message": "no"}, status=status)

        folder = self.folder / name
        folder.mkdir()
        self.stack.enter_context(serving(answer, folder))
        (kubeconfig,) = folder.iterdir()
        return kubeconfig


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(tmp_path, stack)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DW_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def holder(servers: Servers) -> Iterator[subprocess.Popen[str]]:
    """Another process that has its turn."""
    with _taking_turns(servers.start("first", "uid-1")) as process:
        assert _says(process) == "has it"
        yield process
        process.kill()


def _taking_turns(kubeconfig: Path, said_after_s: float = 60) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(kubeconfig), str(said_after_s), kubeconfig.parent.name],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def _says(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_who_waits_says_so_and_goes_on_when_the_other_is_gone(
    holder: subprocess.Popen[str], servers: Servers, sent: signal.Signals
) -> None:
    # Another address and another kubeconfig, and the same cluster.
    with _taking_turns(servers.start("second", "uid-1")) as second:
        assert _says(second) == "wait for a turn on cluster theirs"
        holder.send_signal(sent)
        assert _says(second) == "has it"
        second.kill()


def test_a_wait_that_is_no_short_one_names_who_has_it(
    holder: subprocess.Popen[str], servers: Servers
) -> None:
    with _taking_turns(servers.start("second", "uid-1"), said_after_s=0.2) as second:
        assert _says(second) == "wait for a turn on cluster theirs"
        assert _says(second) == (
            "waiting for a turn on cluster theirs, 0 s so far: "
            f"process {holder.pid} (test_first) measures on it (ps -fp {holder.pid})"
        )
        holder.kill()
        assert _says(second) == "has it"
        # And now it is that one which is named.
        with _taking_turns(servers.start("third", "uid-1"), said_after_s=0.2) as third:
            _says(third)
            assert f"process {second.pid} (test_second)" in _says(third)
            third.kill()
        second.kill()


def test_a_holder_that_hangs_is_not_waited_for_for_ever(
    holder: subprocess.Popen[str], servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = there(servers.start("mine", "uid-1"))
    monkeypatch.setattr(turns, "SAID_AFTER_S", 0.1)
    monkeypatch.setattr(turns, "SAID_EVERY_S", 0.1)
    monkeypatch.setattr(turns, "LONGEST_S", 1.0)
    said: list[str] = []
    holder.send_signal(signal.SIGSTOP)
    with (
        pytest.raises(TurnError, match=rf"process {holder.pid} \(test_first\) has had it for \d s"),
        turn(mine, waiting=said.append, test="test_mine"),
    ):
        raise AssertionError("somebody else has it")
    # What stood in the queue for us lets go of it, if its turn comes after all.
    holder.kill()
    with turn(mine, waiting=said.append, test="test_mine"):
        pass


def test_a_turn_that_comes_too_late_is_given_back(
    holder: subprocess.Popen[str], servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt in the very moment in which the lock comes."""
    mine = there(servers.start("mine", "uid-1"))
    monkeypatch.setattr(turns, "SAID_AFTER_S", 0.1)

    def interrupted(_: str) -> None:
        holder.kill()
        holder.wait()
        time.sleep(0.5)  # it has come by then
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        turn(mine, waiting=lambda text: None, line=interrupted),
    ):
        pass
    with turn(mine, waiting=pytest.fail):
        pass


def test_a_lock_that_says_nothing_of_its_holder_is_waited_for_too(
    servers: Servers, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = servers.start("mine", "uid-1")
    monkeypatch.setattr(turns, "SAID_AFTER_S", 0.1)
    monkeypatch.setattr(turns, "LONGEST_S", 0.0)
    with _taking_turns(mine) as other:
        assert _says(other) == "has it"
        (lock,) = own_state.glob("turns/*.lock")
        assert json.loads(lock.read_text())["pid"] == other.pid
        for odd in ("", "[]", '{"pid": "x"}', "\0"):
            lock.write_text(odd)
            with (
                pytest.raises(TurnError, match=r"another process has had it .* fuser -v "),
                turn(there(mine), waiting=lambda text: None),
            ):
                pass
        other.kill()


def test_another_cluster_has_turns_of_its_own(
    holder: subprocess.Popen[str], servers: Servers
) -> None:
    with turn(there(servers.start("second", "uid-2")), waiting=pytest.fail):
        pass


def test_a_cluster_of_our_own_has_none(tmp_path: Path, own_state: Path) -> None:
    with turn(there(tmp_path / "none", "embedded"), waiting=pytest.fail):
        assert not own_state.exists()


def test_an_interrupt_ends_the_wait(holder: subprocess.Popen[str], servers: Servers) -> None:
    with _taking_turns(servers.start("mine", "uid-1")) as second:
        assert _says(second) == "wait for a turn on cluster theirs"
        second.send_signal(signal.SIGINT)
        assert second.wait(timeout=10) != 0
    assert holder.poll() is None


def test_a_process_does_not_wait_for_itself(servers: Servers, own_state: Path) -> None:
    """A test may hold a trial's namespace while its body measures another scenario."""
    kubeconfig = servers.start("mine", "uid-3")
    mine: Any = there(kubeconfig)
    with turn(mine, waiting=pytest.fail):
        with turn(mine, waiting=pytest.fail):
            pass
        # And what it held is still held.
        with _taking_turns(kubeconfig) as other:
            assert _says(other) == "wait for a turn on cluster theirs"
            time.sleep(0.1)
            other.kill()
    (lock,) = own_state.glob("turns/*.lock")
    assert not lock.read_text(), "nobody's name is left in it"
    with _taking_turns(kubeconfig) as other:
        assert _says(other) == "has it"
        other.kill()


@pytest.mark.parametrize("status", [401, 403, 404])
def test_where_the_cluster_may_not_be_asked_its_address_names_it(
    servers: Servers, status: int
) -> None:
    closed = servers.start("closed", status=status)
    with _taking_turns(closed) as other:
        assert _says(other) == "has it"
        with _taking_turns(closed) as second:
            assert _says(second) == "wait for a turn on cluster theirs"
            second.kill()
        with turn(there(servers.start("elsewhere", status=status)), waiting=pytest.fail):
            pass
        other.kill()


def test_a_cluster_without_a_kubeconfig_is_the_trials_own_matter(tmp_path: Path) -> None:
    with turn(there(tmp_path / "missing"), waiting=pytest.fail):
        pass


def test_a_cluster_that_does_not_answer_is_never_measured_without_a_turn(
    servers: Servers,
) -> None:
    with (
        pytest.raises(TurnError, match="cannot be asked which one it is: HTTP 500: no"),
        turn(there(servers.start("ill", status=500)), waiting=pytest.fail),
    ):
        raise AssertionError("nobody knows whose it is")


def test_a_lock_that_cannot_be_made_names_the_place(servers: Servers, own_state: Path) -> None:
    own_state.write_text("a file")
    with (
        pytest.raises(TurnError, match="DW_STATE=FOLDER"),
        turn(there(servers.start("mine", "uid-4")), waiting=pytest.fail),
    ):
        pass


def test_no_home_is_no_traceback(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("DW_STATE")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    mine = there(servers.start("mine", "uid-5"))
    before = len(list(Path("/proc/self/fd").iterdir()))
    with (
        pytest.raises(TurnError, match=r"home directory.* DW_STATE=FOLDER"),
        turn(mine, waiting=pytest.fail),
    ):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1, "the connection is closed"
