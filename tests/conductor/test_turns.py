"""Turns on a cluster that is not ours: exclusive, visible, interruptible, and gone with us."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.turns import TurnError, turn

ROOT = Path(__file__).resolve().parents[2]
CONFIG = (
    "{{apiVersion: v1, kind: Config, current-context: c, users: [{{name: u, user: {{}}}}],"
    " contexts: [{{name: c, context: {{cluster: c, user: u}}}}],"
    " clusters: [{{name: c, cluster: {{server: '{server}'}}}}]}}"
)
HOLDER = """
import sys, time
from tests.conductor.test_turns import there
from pytest_drainwatch.turns import turn
with turn(there(sys.argv[1]), waiting=lambda text: print(text, flush=True)):
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


def there(kubeconfig: str, provider: str = "existing") -> Cluster:
    return cast("Cluster", There(Path(kubeconfig), provider))


def config(folder: Path, server: str, name: str = "config") -> str:
    path = folder / name
    path.write_text(CONFIG.format(server=server))
    return str(path)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DW_STATE", str(tmp_path / "state"))


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has its turn."""
    with _taking_turns(config(tmp_path, "https://there:1")) as process:
        assert _says(process) == "has it"
        yield process
        process.kill()


def _taking_turns(kubeconfig: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, kubeconfig], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


def _says(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_who_waits_says_so_and_goes_on_when_the_other_is_gone(
    holder: subprocess.Popen[str], tmp_path: Path, sent: signal.Signals
) -> None:
    # Another kubeconfig and another way to write it, and the same API server.
    with _taking_turns(config(tmp_path, "https://THERE:1/", "another")) as second:
        assert _says(second) == "wait for a turn on cluster theirs"
        holder.send_signal(sent)
        assert _says(second) == "has it"
        second.kill()


def test_another_cluster_has_turns_of_its_own(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    said: list[str] = []
    with turn(there(config(tmp_path, "https://there:2", "second")), waiting=said.append):
        assert not said


def test_a_cluster_of_our_own_has_none(tmp_path: Path) -> None:
    with turn(there(str(tmp_path / "none"), "embedded"), waiting=pytest.fail):
        assert not (tmp_path / "state").exists()


def test_an_interrupt_ends_the_wait(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    with _taking_turns(config(tmp_path, "https://there:1", "mine")) as second:
        assert _says(second) == "wait for a turn on cluster theirs"
        second.send_signal(signal.SIGINT)
        assert second.wait(timeout=10) != 0
    assert holder.poll() is None


def test_a_process_does_not_wait_for_itself(tmp_path: Path) -> None:
    """A test may hold a trial's namespace while its body measures another scenario."""
    mine: Any = there(config(tmp_path, "https://there:3"))
    with turn(mine, waiting=pytest.fail):
        with turn(mine, waiting=pytest.fail):
            pass
        # And what it held is still held.
        with _taking_turns(str(mine.kubeconfig)) as other:
            assert _says(other) == "wait for a turn on cluster theirs"
            time.sleep(0.1)
            other.kill()
    with _taking_turns(str(mine.kubeconfig)) as other:
        assert _says(other) == "has it"
        other.kill()


def test_a_cluster_that_cannot_be_reached_is_the_trials_own_matter(tmp_path: Path) -> None:
    with turn(there(str(tmp_path / "missing")), waiting=pytest.fail):
        pass


def test_a_lock_that_cannot_be_made_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with (
        pytest.raises(TurnError, match="DW_STATE=FOLDER"),
        turn(there(config(tmp_path, "https://there:4")), waiting=pytest.fail),
    ):
        pass
