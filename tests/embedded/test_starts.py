"""Starts take turns: who goes first, who counts no more, and how long anybody waits."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import starts

HOLDER = """
import sys, time
from pytest_drainwatch.cluster.embedded import starts
starts.STARTS.at_once = lambda: 1
with starts.STARTS.turn(lambda line: print(line, flush=True)):
    print("mine", flush=True)
    sys.stdin.read()
"""

QUIET = """
from pytest_drainwatch.cluster.embedded import starts
print("quiet" if starts.wait_quiet(print) else "not")
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DW_STATE", str(tmp_path))


@pytest.fixture
def one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts.STARTS, "at_once", lambda: 1)


@contextmanager
def another(first_words: str = "mine") -> Iterator[subprocess.Popen[str]]:
    """A process that has a turn, or waits for one, and lets go when its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(first_words)
            yield process
        finally:
            process.kill()


def let_go(process: subprocess.Popen[str], *, after_s: float) -> None:
    assert process.stdin is not None
    threading.Timer(after_s, process.stdin.close).start()


def refuse(line: str) -> None:
    raise AssertionError(line)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_so_many_at_once_and_no_more(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts.STARTS, "at_once", lambda: most)
    here, lock = [0], threading.Lock()
    seen: list[int] = []

    def change(by: int) -> None:
        with lock:
            here[0] += by
            seen.append(here[0])

    def start() -> None:
        with starts.STARTS.turn(lambda _: None):
            change(1)
            time.sleep(0.05)
            change(-1)

    threads = [threading.Thread(target=start) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(seen) == most
    assert starts.STARTS.tickets() == []


def test_first_come_first_served(one_at_once: None) -> None:
    order: list[int] = []

    def start(number: int) -> None:
        with starts.STARTS.turn(lambda _: None):
            order.append(number)

    with starts.STARTS.turn(refuse):
        threads = []
        for number in range(4):
            threads.append(threading.Thread(target=start, args=(number,)))
            threads[-1].start()
            while len(starts.STARTS.tickets()) < number + 2:
                time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3]


def test_another_process_is_waited_for_and_named(one_at_once: None) -> None:
    said: list[str] = []
    with another() as process:
        let_go(process, after_s=0.3)
        began = time.monotonic()
        with starts.STARTS.turn(said.append):
            assert time.monotonic() - began > 0.2
    assert said == [
        f"waiting for 1 cluster start(s) of this machine that came before (processes {process.pid})"
    ]


def test_a_short_wait_need_not_be_told(one_at_once: None) -> None:
    with another() as process:
        let_go(process, after_s=0.3)
        with starts.STARTS.turn(refuse, told_after_s=60.0):
            pass
    said: list[str] = []
    with another() as process:
        let_go(process, after_s=0.5)
        with starts.STARTS.turn(said.append, told_after_s=0.1):
            pass
    assert len(said) == 1


def test_a_dead_one_counts_no_more(one_at_once: None) -> None:
    with another() as process:
        assert len(starts.STARTS.tickets()) == 1
        process.kill()
        process.wait()
        with starts.STARTS.turn(refuse):
            assert [name.split("-")[1] for name in starts.STARTS.tickets()] == [str(os.getpid())]


def test_who_died_while_it_drew_leaves_nothing(one_at_once: None) -> None:
    with starts.STARTS.turn(refuse):
        folder = Path(os.environ["DW_STATE"]) / "starts"
        (folder / "0-1-1.new").touch()
    with starts.STARTS.turn(refuse):
        assert len(list(folder.iterdir())) == 1


def test_who_is_interrupted_while_waiting_leaves_the_row(one_at_once: None) -> None:
    with starts.STARTS.turn(refuse), another("waiting for 1") as process:
        assert len(starts.STARTS.tickets()) == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(5) != 0
        assert len(list((Path(os.environ["DW_STATE"]) / "starts").iterdir())) == 1


def test_one_that_hangs_is_passed_by_in_the_end(one_at_once: None) -> None:
    said: list[str] = []
    with another(), starts.STARTS.turn(said.append, patience_s=0.2) as beside:
        assert beside == 1
        assert len(starts.STARTS.tickets()) == 2
    assert len(said) == 2
    assert said[1].startswith("going on beside 1 cluster start(s) that did not end within")


def test_quiet_at_once_where_nothing_starts() -> None:
    assert starts.wait_quiet(refuse)


def test_a_trial_waits_for_starts_and_says_so() -> None:
    said: list[str] = []
    with another() as process:
        let_go(process, after_s=0.3)
        began = time.monotonic()
        assert starts.wait_quiet(said.append)
        assert time.monotonic() - began > 0.2
    assert said == ["waiting for 1 cluster start(s) on this machine to end"]


def test_a_trial_goes_on_beside_a_start_without_end() -> None:
    said: list[str] = []
    with another():
        assert not starts.wait_quiet(said.append, patience_s=0.2)
    assert said[1].startswith("going on beside 1 cluster start(s)")
    assert "stalls" in said[1]


def test_a_row_that_cannot_be_read_keeps_no_trial_waiting(tmp_path: Path) -> None:
    """A trial on another kind of cluster needs nothing of the embedded one's folders."""
    (tmp_path / "starts").touch()
    assert starts.wait_quiet(refuse)
    with pytest.raises(ClusterError, match="DW_STATE=FOLDER"), starts.STARTS.turn(refuse):
        pass


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root")
def test_what_root_made_keeps_no_trial_of_a_plain_user_waiting(tmp_path: Path) -> None:
    with starts.STARTS.turn(refuse):
        pass
    done = as_nobody(tmp_path, "DW_STATE")
    assert done.stdout == "quiet\n", done.stderr


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root")
def test_a_user_without_a_home_is_told_what_to_set(tmp_path: Path) -> None:
    done = as_nobody(tmp_path, "NOTHING")
    assert done.stdout == "quiet\n", done.stderr
    program = "from pytest_drainwatch.cluster.embedded.directories import state_dir; state_dir()"
    told = as_nobody(tmp_path, "NOTHING", program).stderr.splitlines()[-1]
    assert told.startswith("pytest_drainwatch.cluster.ClusterError: there is no place for files")
    assert told.endswith("Name a folder with DW_STATE=FOLDER")


def as_nobody(
    folder: Path, variable: str, program: str = QUIET
) -> subprocess.CompletedProcess[str]:
    """A process of a user that this machine does not know; ``variable`` names the folder."""
    for parent in (folder, *folder.parents[:3]):
        if parent != Path("/") and parent.stat().st_uid == os.geteuid() and parent.name != "tmp":
            parent.chmod(0o755)
    return subprocess.run(
        ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--", sys.executable, "-c",
         program],
        env={variable: str(folder), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_one_row_does_not_wait_for_another(one_at_once: None) -> None:
    with another(), starts.DEPLOYMENTS.turn(refuse) as beside:
        assert beside == 0
