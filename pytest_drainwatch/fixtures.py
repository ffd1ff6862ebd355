"""What a test asks for: a cluster, a probe, held flows, a measured trial.

Each fixture holds one phase of :mod:`pytest_drainwatch.trial` open. Measuring
happens in setup, so a harness that cannot measure is pytest's ERROR, and what the
test body asserts is the workload's own promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch import interrupts, session

if TYPE_CHECKING:
    from pytest_drainwatch.cluster import Cluster
    from pytest_drainwatch.core.scenario import Scenario
    from pytest_drainwatch.progress import PytestProgress
    from pytest_drainwatch.stage import Stage
    from pytest_drainwatch.trial import Held, Probe, Trial


@pytest.fixture(scope="session")
def dw_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A running cluster, for the whole session. Override it to bring your own."""
    from pytest_drainwatch.pool import opened_cluster

    run = request.config.stash[session.RUN]
    log = _progress(request.config).line
    logs = run.settings.out / run.run_id / "cluster"

    def keep() -> bool:
        return run.settings.keeps(failed=request.session.testsfailed > 0)

    with (
        interrupts.raised(),
        opened_cluster(run.settings, logs, log, keep=keep) as cluster,
    ):
        yield cluster


@pytest.fixture
def scenario() -> Scenario:
    """What the trial is about; parametrize it, or override it, to ask something else."""
    from pytest_drainwatch.core.scenario import Scenario

    return Scenario()


@pytest.fixture
def dw_namespace(
    request: pytest.FixtureRequest, dw_cluster: Cluster, scenario: Scenario
) -> Iterator[Stage]:
    """A namespace of its own and an open recording, for one trial."""
    with _stage(request, dw_cluster, scenario) as stage:
        yield stage


@pytest.fixture
def dw_probe(dw_namespace: Stage) -> Iterator[Probe]:
    """The probe, deployed, ready, and stable behind its Service."""
    from pytest_drainwatch.trial import deploy

    with deploy(dw_namespace) as probe:
        yield probe


@pytest.fixture
def dw_flows(dw_probe: Probe) -> Iterator[Held]:
    """Flows that all work, held open against the probe."""
    from pytest_drainwatch.trial import hold

    with hold(dw_probe) as held:
        yield held


@pytest.fixture
def trial(request: pytest.FixtureRequest, dw_flows: Held) -> Trial:
    """A measured trial of ``scenario``: judge it in the test's body."""
    from pytest_drainwatch.trial import measure

    return session.announce(request, measure(dw_flows))


@pytest.fixture
def drainwatch(request: pytest.FixtureRequest, dw_cluster: Cluster) -> Callable[[Scenario], Trial]:
    """Measure scenarios one after the other: ``drainwatch(Scenario(...)) -> Trial``."""

    def run(asked: Scenario) -> Trial:
        from pytest_drainwatch.trial import deploy, hold, measure

        with (
            _stage(request, dw_cluster, asked) as stage,
            deploy(stage) as probe,
            hold(probe) as held,
        ):
            return session.announce(request, measure(held))

    return run


@contextmanager
def _stage(request: pytest.FixtureRequest, cluster: Cluster, asked: Scenario) -> Iterator[Stage]:
    from pytest_drainwatch.results import claim_folder
    from pytest_drainwatch.trial import TrialVoid, prepare

    run = request.config.stash[session.RUN]
    asked = run.settings.apply(asked)
    try:
        folder = claim_folder(run.settings.out, run.run_id, asked.id)
    except OSError as error:
        raise TrialVoid(
            f"cannot create a results folder in {run.settings.out}: {error.strerror}; expected a "
            f"writable folder. Look at: ls -ld {run.settings.out}; or choose another --dw-out"
        ) from error
    with prepare(
        cluster,
        asked,
        folder=folder,
        keep=run.settings.keeps,
        progress=_progress(request.config),
    ) as stage:
        yield stage
        stage.failed = stage.failed or request.node.stash.get(session.FAILED, False)


def _progress(config: pytest.Config) -> PytestProgress:
    from pytest_drainwatch.progress import PytestProgress

    return PytestProgress(config)
