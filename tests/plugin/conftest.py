"""A suite of a user's, run by pytester against trials that were measured beforehand.

What is replaced is the cluster and the measuring; recording, judging, reporting
and everything that pytest does around them is the real thing.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = """
import sys
from contextlib import contextmanager
from types import SimpleNamespace
sys.path.insert(0, {root!r})
import pytest
from pytest_drainwatch import report
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.recorder import write_atomic
from tests.core import story, trials

@pytest.fixture(scope="session")
def dw_cluster():
    return None

@pytest.fixture
def dw_flows(request, scenario):
    from pytest_drainwatch import session, results
    run = request.config.stash[session.RUN]
    asked = run.settings.apply(scenario)
    return asked, results.claim_folder(run.settings.out, run.run_id, asked.id)

@pytest.fixture(autouse=True)
def measured(monkeypatch):
    import pytest_drainwatch.trial as conductor
    def measure(held):
        asked, folder = held
        judged = derive(trials.recording_of(asked))
        write_atomic(folder / "report.json", report.dumps(judged))
        return conductor.Trial(scenario=asked, report=judged, folder=folder)
    @contextmanager
    def prepare(cluster, asked, *, folder, keep, progress):
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
    pytester.makeconftest(CONFTEST.format(root=str(ROOT)))
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    return pytester


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
