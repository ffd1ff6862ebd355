"""The agent takes real-time priority where it may, and says what it got."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from pytest_drainwatch.flows import limits

TAKE = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
ASK = (
    "from pytest_drainwatch.flows import limits; limits.raise_priority(800);"
    "print(limits.scheduler())"
)
FORBIDDEN = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--")


def python(program: str, *prefix: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: priorities stick."""
    argv = [*prefix, sys.executable, "-c", program]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_real_time_where_it_may() -> None:
    if python(TAKE).returncode != 0:
        pytest.skip("this user, container or cgroup may not take a real-time priority")
    assert python(ASK).stdout == "rr\n"
    # What needs much of a core must not take it from what it measures: its delays would look
    # like the workload's own, and no stall would tell.
    enough = limits.REALTIME_SENDS_PER_S_AND_CORE * len(os.sched_getaffinity(0))
    assert python(ASK.replace("800", str(enough))).stdout == "rr\n"
    assert python(ASK.replace("800", str(enough + 1))).stdout == "other\n"


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv"
)
def test_an_ordinary_process_where_it_may_not() -> None:
    assert python(TAKE, *FORBIDDEN).returncode != 0
    assert python(ASK, *FORBIDDEN).stdout == "other\n"
