"""An agent in a cgroup with a real quota says that it was throttled."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.flows.cpustat import parse
from tests.loopback.rig import PATIENCE_S, Rig

ENOUGH_NS = 900_000_000  # several looks at cpu.stat
ROOTS = {"v1": Path("/sys/fs/cgroup/cpu"), "v2": Path("/sys/fs/cgroup")}


class Group:
    """A cgroup of our own."""

    def __init__(self) -> None:
        """Raises OSError where none can be made."""
        self.version = "v1" if (ROOTS["v1"] / "cpu.stat").exists() else "v2"
        self.folder = ROOTS[self.version] / f"drainwatch-test-{os.getpid()}"
        self.folder.mkdir()
        try:
            self.limit(None)
        except OSError:
            self.remove()
            raise

    def limit(self, percent: int | None) -> None:
        """Let it have so much of one CPU; None: all it wants."""
        quota = None if percent is None else percent * 1000
        if self.version == "v1":
            (self.folder / "cpu.cfs_period_us").write_text("100000")
            (self.folder / "cpu.cfs_quota_us").write_text(str(quota or -1))
        else:
            (self.folder / "cpu.max").write_text(f"{quota or 'max'} 100000")

    def throttled_ns(self) -> int:
        found = parse((self.folder / "cpu.stat").read_text())
        assert found is not None
        return found.throttled_ns

    @property
    def enter(self) -> list[str]:
        """Prefix of a command that is to run in it."""
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh"]

    def remove(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.05)


@pytest.fixture
def group(rig: Rig) -> Iterator[Group]:
    """Empty of processes before it is removed."""
    try:
        made = Group()
    except OSError as error:
        pytest.skip(f"no cgroup with a CPU quota can be made here: {error}")
    yield made
    rig.close()
    made.remove()
    assert not made.folder.exists()


def test_a_quota_that_bites_is_recorded(rig: Rig, group: Group) -> None:
    probe = rig.probe()
    agent = rig.agent(udp=(probe.udp_port, 20), udp_rate_hz=400, prefix=group.enter)
    agent.holding()
    if os.sched_getscheduler(agent.process.pid) != os.SCHED_OTHER:
        pytest.skip("the agent runs in real time here, which this quota does not hold")
    before_ns = time.monotonic_ns()
    group.limit(10)
    until = time.monotonic() + PATIENCE_S
    while group.throttled_ns() < ENOUGH_NS:
        assert time.monotonic() < until, "the quota does not bite"
        time.sleep(0.05)
    group.limit(None)
    after_ns = time.monotonic_ns()
    part = rig.recorded(agent)
    told = part.all(Event.AGENT_THROTTLED)
    assert part.all(Event.AGENT_STARTED)[0].data["cpu_stat"] == group.version
    assert len(told) >= 2, "as it goes, not at the end"
    assert sum(int(str(o.data["throttled_ns"])) for o in told) >= ENOUGH_NS
    assert sum(int(str(o.data["throttled_ns"])) for o in told) <= group.throttled_ns()
    assert any(before_ns < o.at.hi and o.at.lo < after_ns for o in told)
    assert sum(int(str(o.data["periods"])) for o in told) >= 1


def test_without_a_quota_nothing_is_recorded(rig: Rig, group: Group) -> None:
    probe = rig.probe()
    agent = rig.agent(udp=(probe.udp_port, 20), udp_rate_hz=400, prefix=group.enter)
    agent.holding(100)
    part = rig.recorded(agent)
    assert group.throttled_ns() == 0
    assert part.all(Event.AGENT_THROTTLED) == []
    assert part.all(Event.HOST_SUSPENDED) == []
