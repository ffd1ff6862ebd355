"""Whose process is killed: the first one of that very container, held on to until then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import kill

UID, CONTAINER = "1a8fc32f-5685-42c5-bc81-49b2481bee38", "c0ffee" * 8


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as running:
        yield running
        running.kill()


def test_a_process_is_killed_once_and_by_sigkill(process: subprocess.Popen[bytes]) -> None:
    killer = kill.Killer(os.pidfd_open(process.pid), "container c")
    killer()
    assert process.wait(10) == -signal.SIGKILL


def test_one_that_ended_meanwhile_is_no_kill(process: subprocess.Popen[bytes]) -> None:
    """Its number may be another process's by then, which must not be hit."""
    killer = kill.Killer(os.pidfd_open(process.pid), "container c")
    process.kill()
    process.wait()
    with pytest.raises(ClusterError, match="container c had ended before it was to be killed"):
        killer()


def test_one_that_is_never_called_lets_go_of_its_process(process: subprocess.Popen[bytes]) -> None:
    descriptor = os.pidfd_open(process.pid)
    killer = kill.Killer(descriptor, "container c")
    del killer
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_container_that_does_not_run_cannot_be_killed() -> None:
    with pytest.raises(ClusterError, match=f"no process of container c0ffee.* of pod {UID}"):
        kill.find(UID, CONTAINER, cluster="dw-x")
