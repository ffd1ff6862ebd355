"""Throttled or suspended: what the kernel's books say, and what they cannot say."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.flows.cpustat import CpuStat, Throttled, cpu_stats, parse
from pytest_drainwatch.flows.health import Suspension, Throttling

MS = 1_000_000
V1 = "nr_periods 40\nnr_throttled 7\nthrottled_time 5000123\nnr_bursts 0\nburst_time 0\n"
V2 = (
    "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 40\nnr_throttled 7\n"
    "throttled_usec 5000\nnr_bursts 0\nburst_usec 0\n"
)
V2_ROOT = "usage_usec 9\nuser_usec 5\nsystem_usec 4\n"


# --- cpu.stat -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (V1, Throttled(5_000_123, 7)),
        (V2, Throttled(5_000_000, 7)),
        (V2_ROOT, None),  # the root of v2 has no quota
        ("", None),
        ("nr_throttled 7\n", None),
        ("nr_throttled many\nthrottled_time 1\n", None),
    ],
)
def test_both_dialects_are_read(text: str, found: Throttled | None) -> None:
    assert parse(text) == found


class Tree:
    """A made-up /proc/self and /sys/fs/cgroup."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.top = folder / "cgroup"
        self.proc.mkdir()

    def process(self, cgroup: str, *mounts: str) -> None:
        (self.proc / "cgroup").write_text(cgroup)
        (self.proc / "mountinfo").write_text("".join(f"{line}\n" for line in mounts))

    def stat(self, path: str, text: str) -> Path:
        folder = self.top / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpu.stat").write_text(text)
        return folder / "cpu.stat"

    def found(self) -> list[tuple[str, int]]:
        """Version and throttled time of each."""
        stats = cpu_stats(self.proc)
        try:
            return [(s.version, read.throttled_ns) for s in stats if (read := s.read())]
        finally:
            for stat in stats:
                stat.close()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_v2_own_cgroup_and_those_above(tree: Tree) -> None:
    tree.process("0::/pods/box\n", f"30 1 0:26 / {tree.top} rw shared:9 - cgroup2 cgroup2 rw")
    tree.stat("pods/box", V2)
    tree.stat("pods", V2.replace("throttled_usec 5000", "throttled_usec 6000"))
    tree.stat("", V2_ROOT)
    assert tree.found() == [("v2", 5_000_000), ("v2", 6_000_000)]


def test_v1_is_the_hierarchy_with_the_cpu_controller(tree: Tree) -> None:
    tree.process(
        "9:memory:/elsewhere\n3:cpu,cpuacct:/box\n1:name=systemd:/x\n0::/unified\n",
        "29 1 0:25 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755",
        f"30 1 0:26 / {tree.top}/memory rw - cgroup cgroup rw,memory",
        f"31 1 0:27 / {tree.top}/cpu rw - cgroup cgroup rw,cpu,cpuacct",
        f"32 1 0:28 / {tree.top}/unified rw - cgroup2 cgroup2 rw",
    )
    tree.stat("cpu/box", V1)
    tree.stat("memory/elsewhere", V1.replace("5000123", "1"))
    tree.stat("unified/unified", V2.replace("5000", "2"))
    assert tree.found() == [("v1", 5_000_123)]


def test_a_mount_of_a_part_of_the_tree(tree: Tree) -> None:
    """As in a container: what is mounted is its own cgroup, not the tree's root."""
    mounted = tree.top / "in a box"
    escaped = str(mounted).replace(" ", "\\040")
    tree.process("0::/pods/box/inner\n", f"30 1 0:26 /pods/box {escaped} rw - cgroup2 c rw")
    tree.stat("in a box/inner", V2)
    assert tree.found() == [("v2", 5_000_000)]
    tree.process("0::/other\n", f"30 1 0:26 /pods/box {escaped} rw - cgroup2 c rw")
    assert tree.found() == []


@pytest.mark.parametrize("cgroup", ["", "1:name=systemd:/x\n", "0::/gone\n"])
def test_where_nothing_can_be_read_there_is_nothing(cgroup: str, tree: Tree) -> None:
    tree.process(cgroup, f"30 1 0:26 / {tree.top} rw - cgroup2 cgroup2 rw")
    assert tree.found() == []
    throttling = Throttling(cpu_stats(tree.proc))
    assert throttling.version is None
    assert list(throttling.check()) == []


def test_a_mount_without_a_source_is_read_like_any_other(tree: Tree) -> None:
    """``mount -t tmpfs "" …``: two blanks, and nothing between them."""
    tree.process(
        "0::/box\n",
        "29 1 0:25 / /mnt rw - tmpfs  rw",
        f"30 1 0:26 / {tree.top} rw - cgroup2  rw",
    )
    tree.stat("box", V2)
    assert tree.found() == [("v2", 5_000_000)]


def test_a_mount_point_that_is_no_text_is_passed_over(tree: Tree) -> None:
    tree.process("0::/box\n", f"30 1 0:26 / {tree.top} rw - cgroup2 c rw")
    mounts = tree.proc / "mountinfo"
    mounts.write_bytes(b"29 1 0:25 / /mnt/\xff rw - tmpfs t rw\n" + mounts.read_bytes())
    tree.stat("box", V2)
    assert tree.found() == [("v2", 5_000_000)]


@pytest.mark.parametrize(
    ("cgroup", "mount"),
    [
        ("0::/box\n", "30 1 0:26"),
        ("0::/box\n", "30 1 0:26 / /mnt rw cgroup2 c rw"),
        ("0:/box\n", "30 1 0:26 / /mnt rw - cgroup2 c rw"),
    ],
)
def test_files_in_another_format_are_no_failure(cgroup: str, mount: str, tree: Tree) -> None:
    tree.process(cgroup, mount)
    assert Throttling(cpu_stats(tree.proc)).version is None


def test_without_proc_there_is_nothing(tmp_path: Path) -> None:
    assert cpu_stats(tmp_path / "missing") == ()


# --- throttling -----------------------------------------------------------------------


@pytest.fixture
def stat(tree: Tree) -> Iterator[tuple[Path, Throttling]]:
    """A cpu.stat and who looks at it, with a clock that ticks at every look."""
    path = tree.stat("", V1)
    clock = iter(range(1000, 10**6))
    opened = CpuStat(path, "v1")
    yield path, Throttling((opened,), lambda: next(clock))
    opened.close()


def test_only_what_grew_since_the_last_look(stat: tuple[Path, Throttling]) -> None:
    path, throttling = stat
    assert list(throttling.check()) == []
    path.write_text(V1.replace("5000123", "9000123").replace("throttled 7", "throttled 9"))
    assert list(throttling.check()) == [(Interval(1001, 1004), 4_000_000, 2)]
    assert list(throttling.check()) == []


def test_a_period_counted_before_its_time_is_not_lost(stat: tuple[Path, Throttling]) -> None:
    """nr_throttled and throttled_time do not grow at the same moment."""
    path, throttling = stat
    path.write_text(V1.replace("throttled 7", "throttled 9"))
    assert list(throttling.check()) == []
    path.write_text(V1.replace("5000123", "9000123").replace("throttled 7", "throttled 9"))
    assert [(ns, periods) for _, ns, periods in throttling.check()] == [(4_000_000, 2)]


def test_a_file_that_stops_telling_is_no_throttling(stat: tuple[Path, Throttling]) -> None:
    path, throttling = stat
    path.write_text("")
    assert list(throttling.check()) == []
    path.write_text(V1.replace("5000123", "9000123"))
    assert list(throttling.check()) == [], "since when is not known"


# --- suspension -----------------------------------------------------------------------


class Clocks:
    """Two clocks that go alike, but for what a test does to them."""

    def __init__(self) -> None:
        self.monotonic_ns, self.ahead_ns, self.lag_ns = 10 * NS_PER_S, 5 * NS_PER_S, 0

    def monotonic(self) -> int:
        self.monotonic_ns += 100
        return self.monotonic_ns

    def boottime(self) -> int:
        self.monotonic_ns += self.lag_ns  # interrupted before this clock was read
        return self.monotonic_ns + self.ahead_ns


def test_a_suspension_is_the_growth_of_the_difference() -> None:
    clocks = Clocks()
    suspension = Suspension(clocks.monotonic, clocks.boottime)
    assert suspension.check() is None
    before_ns = clocks.monotonic_ns
    clocks.ahead_ns += 3 * NS_PER_S
    found = suspension.check()
    assert found is not None
    at, slept_ns = found
    assert at.lo <= before_ns < at.hi
    assert 3 * NS_PER_S - 1000 <= slept_ns <= 3 * NS_PER_S
    assert suspension.check() is None


def test_being_interrupted_between_the_clocks_is_no_suspension() -> None:
    clocks = Clocks()
    suspension = Suspension(clocks.monotonic, clocks.boottime)
    for lag_ns in (500 * MS, 0, 900 * MS, 0, 0):
        clocks.lag_ns = lag_ns
        assert suspension.check() is None


def test_clocks_of_a_machine_that_was_awake() -> None:
    suspension = Suspension()
    assert [suspension.check() for _ in range(100)] == [None] * 100


def test_a_jump_of_the_real_boot_clock_is_seen() -> None:
    """A process that enters a time namespace sees CLOCK_BOOTTIME jump and CLOCK_MONOTONIC go
    on, as after a suspension of the machine.
    """
    program = textwrap.dedent(
        """
        import ctypes, os, subprocess, sys
        from pathlib import Path
        from pytest_drainwatch.flows.health import Suspension

        there = subprocess.Popen(
            ["unshare", "--time", "--boottime", "3600", "--fork", "--kill-child",
             sys.executable, "-c", "print(flush=True); input()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        try:
            if not there.stdout.readline():
                sys.exit(77)
            pid = int(Path(f"/proc/{there.pid}/task/{there.pid}/children").read_text().split()[0])
            suspension = Suspension()
            assert suspension.check() is None
            entered = os.open(f"/proc/{pid}/ns/time", os.O_RDONLY)
            if ctypes.CDLL(None, use_errno=True).setns(entered, 0x80):
                sys.exit(77)
            at, slept_ns = suspension.check()
            assert suspension.check() is None
            print(slept_ns)
        finally:
            there.stdin.close()
            there.wait()
        """
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
    )
    if ran.returncode == 77:
        pytest.skip(f"no time namespace can be entered here: {ran.stderr.strip()[-200:]}")
    assert ran.returncode == 0, ran.stderr
    assert 3599 * NS_PER_S < int(ran.stdout) <= 3600 * NS_PER_S
