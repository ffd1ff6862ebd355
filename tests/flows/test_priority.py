"""The agent takes real-time priority where it may, and says what it got."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_drainwatch.flows import limits

CORES = len(os.sched_getaffinity(0))
LITTLE = limits.REALTIME_SENDS_PER_S_AND_CORE * CORES
MUCH = limits.SHARED_SENDS_PER_S_AND_CORE * CORES
TAKE = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
ASK = (
    "import os, sys; from pytest_drainwatch.flows import limits;"
    "stands = [limits.stand(int(sends)) for sends in sys.argv[1:]];"
    "print(*(s.scheduler for s in stands), *(s.session_nice for s in stands));"
    "print(*(s.nice for s in stands), os.getpriority(os.PRIO_PROCESS, 0))"
)
FORBIDDEN = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--")
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


def python(
    program: str, *arguments: int, prefix: tuple[str, ...] = (), leads: bool = True
) -> subprocess.CompletedProcess[str]:
    """A process of its own: priorities stick."""
    argv = [*prefix, sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, start_new_session=leads
    )


def stands(*sends: int, prefix: tuple[str, ...] = (), leads: bool = True) -> tuple[object, object]:
    """The policies and the session's nice values, one after the other, in one process."""
    told = python(ASK, *sends, prefix=prefix, leads=leads).stdout.splitlines()[0].split()
    return told[: len(sends)], told[len(sends) :]


def test_real_time_where_it_may() -> None:
    if python(TAKE).returncode != 0:
        pytest.skip("this user, container or cgroup may not take a real-time priority")
    # What needs much of a core must not take it from what it measures: its delays would look
    # like the workload's own, and no stall would tell. And back, as stretches of a plan come.
    policies, _ = stands(800, LITTLE, LITTLE + 1, LITTLE)
    assert policies == ["rr", "rr", "other", "rr"]


@pytest.mark.skipif(
    os.geteuid() != 0 or not AUTOGROUP.exists() or AUTOGROUP.read_text() != "1\n",
    reason="needs root, and a kernel that groups tasks by session",
)
def test_a_larger_share_for_its_own_session_unless_it_needs_too_much() -> None:
    mine = Path("/proc/self/autogroup").read_text()
    raised, fair = str(limits.NICE), "0"
    assert stands(800, MUCH, MUCH + 1, MUCH)[1] == [raised, raised, fair, raised]
    # A session that began before grouping was switched on is in no group.
    ours = mine.rpartition("nice ")[2].strip() or "None"
    assert stands(800, MUCH + 1, leads=False)[1] == [ours, ours], "somebody else's session"
    assert Path("/proc/self/autogroup").read_text() == mine


def nice(*sends: int, prefix: tuple[str, ...] = (), leads: bool = True) -> list[int]:
    """The process's own nice values, one after the other, and the last one as the kernel has it."""
    told = python(ASK, *sends, prefix=prefix, leads=leads).stdout.splitlines()[1]
    return [int(value) for value in told.split()]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("leads", [True, False])
def test_who_needs_too_much_has_a_fair_share_whether_or_not_sessions_count(leads: bool) -> None:
    """Without groups by session, or in somebody else's, the process's value is all there is."""
    raised = limits.NICE
    assert nice(MUCH, MUCH + 1, leads=leads) == [raised, 0, 0]
    assert nice(MUCH + 1, MUCH, leads=leads) == [0, raised, raised], "and back"
    polite = ("nice", "-n", "7")
    assert nice(MUCH + 1, leads=leads, prefix=polite) == [7, 7], "asked for less than a fair one"


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv"
)
def test_an_ordinary_process_where_it_may_not() -> None:
    assert python(TAKE, prefix=FORBIDDEN).returncode != 0
    assert stands(800, prefix=FORBIDDEN)[0] == ["other"]
