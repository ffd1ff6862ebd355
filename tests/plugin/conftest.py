"""A suite of a user's, run by pytester against trials that were measured beforehand.

What is replaced is the cluster and the measuring; recording, judging, reporting
and everything that pytest does around them is the real thing.
"""

from __future__ import annotations

import os
import pkgutil
from importlib import import_module
from itertools import count
from pathlib import Path

import pytest

import pytest_drainwatch
import pytest_drainwatch.results

# A run within this process forgets what it imported, but packages remember it: the next run
# would get half of its modules anew. These stay.
for module in pkgutil.walk_packages(pytest_drainwatch.__path__, "pytest_drainwatch."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
import_module("tests.core.trials")

ROOT = Path(__file__).resolve().parents[2]
# No process has such a number.
FIRST_PID = 9_000_000

CONFTEST = """
import sys
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
sys.path.insert(0, {root!r})
import pytest
from pytest_drainwatch import report
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.recorder import write_atomic
from tests.core import story, trials

@pytest.fixture(scope="session")
def dw_cluster():
    return SimpleNamespace(provider="embedded")

@pytest.fixture
def dw_flows(request, scenario, dw_repeat):
    from pytest_drainwatch import session, results
    run = request.config.stash[session.RUN]
    asked = run.settings.apply(scenario)
    return asked, results.claim_folder(run.settings.out, run.run_id, asked.id, dw_repeat)

@pytest.fixture(autouse=True)
def measured(request, monkeypatch):
    import pytest_drainwatch.trial as conductor
    from pytest_drainwatch.planning.repeating import repeat_of
    node = request.node
    def measure(held):
        asked, folder = held
        recording = trials.recording_of(asked)
        header = replace(
            recording.header,
            scenario={{**recording.header.scenario, "id": asked.id}},
            test=node.nodeid,
            repeat=repeat_of(node),
        )
        judged = derive(replace(recording, header=header))
        write_atomic(folder / "report.json", report.dumps(judged))
        return conductor.Trial(scenario=asked, report=judged, folder=folder)
    @contextmanager
    def prepare(cluster, asked, *, folder, keep, progress, test, repeat, placement):
        yield SimpleNamespace(asked=asked, folder=folder, failed=False)
    @contextmanager
    def as_it_is(given):
        yield given
    @contextmanager
    def hold(probe):
        yield probe.asked, probe.folder
    monkeypatch.setattr(conductor, "measure", measure)
    monkeypatch.setattr(conductor, "prepare", prepare)
    monkeypatch.setattr(conductor, "deploy", as_it_is)
    monkeypatch.setattr(conductor, "hold", hold)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty suite whose trials need no cluster."""
    for name in os.environ:
        if name.startswith("DW_") or name == "PYTEST_ADDOPTS":
            monkeypatch.delenv(name)
    # Two runs of one process may begin in one second.
    numbers, named = count(FIRST_PID), pytest_drainwatch.results.new_run_id
    monkeypatch.setattr(
        pytest_drainwatch.results,
        "new_run_id",
        lambda: f"{named().partition('-')[0]}-{next(numbers)}",
    )
    pytester.makeconftest(CONFTEST.format(root=str(ROOT)))
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """In this process, which is far quicker; workers of xdist need one of their own."""
    with_workers = any(each.startswith("-n") for each in arguments)
    return (suite.runpytest_subprocess if with_workers else suite.runpytest)(*arguments)


@pytest.fixture
def drain_suite(suite: pytest.Pytester) -> pytest.Pytester:
    """One test a behaviour, as in the README."""
    suite.makepyfile(
        test_termination="""
        import pytest
        from pytest_drainwatch import Mechanism, matrix

        @pytest.mark.trial
        @pytest.mark.parametrize("scenario", matrix(trigger=["delete"]))
        def test_connections_close_cleanly(trial):
            assert trial.tcp.drained == trial.tcp.total
        """
    )
    return suite
