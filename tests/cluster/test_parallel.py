"""Several workers at once: one that is killed loses its own trial, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_drainwatch.cluster.embedded import records
from tests.cluster.runs import ROOT, left_behind
from tests.embedded.live import host

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

SUITE = """
import os
from pathlib import Path
import pytest
from pytest_drainwatch import App, Behavior, Flows, Scenario
from pytest_drainwatch.core.interval import NS_PER_S

SHORT = [
    Scenario(
        name=name,
        app=App(behavior=Behavior.EXIT_NOW, grace_period_s=5),
        flows=Flows(tcp=2, udp=2),
        settle_ns=3 * NS_PER_S,
    )
    for name in ("one", "two")
]

@pytest.fixture(autouse=True, scope="session")
def found(worker_id):
    Path(worker_id).write_text(str(os.getpid()))

@pytest.mark.parametrize("scenario", SHORT)
def test_it(trial): pass
"""


@pytest.fixture
def parallel(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run of four trials on two workers, each with a cluster of its own."""
    (tmp_path / "test_short.py").write_text(SUITE)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "-v", "-n2", "--dist=worksteal", "--dw-repeat=2"),
            *("--dw-cluster=embedded", "-p", "no:cacheprovider"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    yield process
    process.kill()
    process.wait()
    assert process.stdout
    process.stdout.close()


def settling(process: subprocess.Popen[str]) -> tuple[str, str, list[str]]:
    """The worker and the trial that are the first to settle, and what was said until then."""
    assert process.stdout
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("drainwatch: gw") and ": settle, about" in line:
            _, worker, trial, *_ = line.replace(":", "").split()
            return worker, trial, said
    raise AssertionError("nobody settled: " + "".join(said))


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What there is on this machine of one running cluster."""

    name: str
    node: int
    link: str

    @classmethod
    def of_owner(cls, pid: int) -> Traces:
        """Those of the cluster that a process holds."""
        for path in records.clusters_dir().glob("*/record.json"):
            record = json.loads(path.read_text())
            if record["owner"] == pid:
                name, node = record["name"], int((path.parent / "node.pid").read_text())
                route = said_by("ip", "-o", "route", "get", record["node_address"])
                device = route.partition(" dev ")[2].split()[0]
                return cls(name=name, node=node, link=link_lines(device)[0])
        raise AssertionError(f"no cluster of process {pid}")

    def left(self) -> list[str]:
        """What is still there."""
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        return [
            *([f"node {self.node}"] if Path(f"/proc/{self.node}").exists() else []),
            *host.processes_naming(self.name),
            *map(str, Path("/sys/fs/cgroup").glob(f"*/drainwatch/{self.name}")),
            *map(str, Path("/sys/fs/cgroup").glob(f"drainwatch/{self.name}")),
            *(line for line in mounts if self.name in line),
            *(line for line in link_lines() if line == self.link),
            *map(str, records.clusters_dir().glob(self.name)),
        ]


def link_lines(device: str = "") -> list[str]:
    """Number and name of each link: a number is never given twice."""
    lines = (line.partition("@")[0] for line in said_by("ip", "-o", "link").splitlines())
    return [line for line in lines if line.endswith(f": {device}" if device else "")]


def said_by(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_worker_that_is_killed_loses_its_trial_and_nothing_else(
    parallel: subprocess.Popen[str], tmp_path: Path
) -> None:
    worker, trial, said = settling(parallel)
    pid = int((tmp_path / worker).read_text())
    traces = Traces.of_owner(pid)
    assert len(traces.left()) > 10, "while it lives there is much of it"
    os.kill(pid, signal.SIGKILL)
    killed_at = time.monotonic()
    assert host.eventually(lambda: not traces.left(), within_s=30), traces.left()
    assert parallel.poll() is None, "the run goes on"
    print(f"nothing left of {traces} after {time.monotonic() - killed_at:.1f} s")

    rest, _ = parallel.communicate(timeout=240)
    output = "".join(said) + rest
    print(output)
    assert parallel.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"replacing crashed worker {worker}" in output
    scenario, number = trial.removesuffix("]").split("[")
    (run,) = (path for path in tmp_path.glob("results/2*") if not path.is_symlink())
    summary = json.loads((run / "summary.json").read_text())
    states = {(t["scenario"], f"r{t['repeat']:02d}"): t["state"] for t in summary["trials"]}
    assert states.pop((scenario, number)) == "unfinished"
    assert list(states.values()) == ["measured"] * 3
    assert summary["complete"] is False
    (why,) = summary["incomplete_because"]
    assert f"{scenario}/{number}" in why
    assert f"{scenario}/{number} is unfinished" in output
    assert not (run / scenario / number / "report.json").exists()
    assert (run / scenario / number / "recording.jsonl").exists()
    assert not list(run.glob(".*")), "nor is the plan left"
    assert not left_behind(tmp_path)


def test_a_controller_that_is_terminated_sums_up_and_leaves_nothing(
    parallel: subprocess.Popen[str], tmp_path: Path
) -> None:
    """As CI systems end a job: a SIGTERM to the process that was started, and to no worker."""
    _, _, said = settling(parallel)
    pids = [int(path.read_text()) for path in tmp_path.glob("gw*")]
    traces = [Traces.of_owner(pid) for pid in pids]
    assert len(traces) == 2
    parallel.send_signal(signal.SIGTERM)
    rest, _ = parallel.communicate(timeout=60)
    output = "".join(said) + rest
    print(output)
    assert parallel.returncode == pytest.ExitCode.INTERRUPTED

    def left() -> list[str]:
        return [trace for each in traces for trace in each.left()]

    assert host.eventually(lambda: not left(), within_s=30), left()
    (run,) = (path for path in tmp_path.glob("results/2*") if not path.is_symlink())
    summary = json.loads((run / "summary.json").read_text())
    assert summary["complete"] is False
    assert len(summary["trials"]) == 4
    assert "incomplete: " in output
    assert not list(run.glob(".*")), "nor is the plan left"
    assert not left_behind(tmp_path)
