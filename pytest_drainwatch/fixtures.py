"""What a test asks for: a cluster, a probe, held flows, a measured trial.

Each fixture holds one phase of :mod:`pytest_drainwatch.trial` open. Measuring
happens in setup, so a harness that cannot measure is pytest's ERROR, and what the
test body asserts is the workload's own promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch import interrupts, session
from pytest_drainwatch.planning import repeating
from pytest_drainwatch.planning.asked import EXPECTED_ARMS, arms_of, named_arms

if TYPE_CHECKING:
    from pytest_drainwatch.cluster import Cluster
    from pytest_drainwatch.cluster.kind.cluster import Given
    from pytest_drainwatch.core.scenario import Scenario
    from pytest_drainwatch.pool import ClusterPool
    from pytest_drainwatch.showing.progress import PytestProgress
    from pytest_drainwatch.stage import Stage
    from pytest_drainwatch.standing import Standing
    from pytest_drainwatch.trial import Held, Trial


@pytest.fixture(scope="session")
def dw_interrupts() -> Iterator[None]:
    """SIGTERM ends the run as Ctrl-C does, whoever brought the cluster."""
    with interrupts.raised():
        yield


@pytest.fixture(scope="session")
def dw_clusters(request: pytest.FixtureRequest, dw_interrupts: None) -> Iterator[ClusterPool]:
    """The clusters of the session, each started when a trial first needs it."""
    from pytest_drainwatch.pool import ClusterPool

    run = request.config.stash[session.RUN]
    log = _progress(request.config).line
    logs = run.folder / "cluster"

    def keep() -> bool:
        return run.settings.keeps(failed=request.session.testsfailed > 0)

    @cache
    def bring() -> Given:
        from pytest_drainwatch.borrowing import borrow
        from pytest_drainwatch.cluster.kind.shape import Shape

        told = run.settings
        shape = Shape(
            image=told.kind_image,
            nodes=told.nodes,
            proxy_mode=told.proxy_mode,
            min_sync_period_ms=told.min_sync_period,
        )
        return borrow(request, shape, log=log, keep=keep)

    with ClusterPool(run.settings, logs, log, keep=keep, bring=bring) as pool:
        yield pool


@pytest.fixture
def dw_cluster(
    request: pytest.FixtureRequest, dw_clusters: ClusterPool, scenario: Scenario
) -> Iterator[Cluster]:
    """A running cluster as the test's scenario needs it, or the first of its arms.

    Override it, in any scope, to bring your own.
    """
    asked = [_applied(request, each) for each in arms_of(request.node) or (scenario,)]
    measures_it = repeating.DESCRIBED.intersection(request.node.fixturenames)
    with _skipping_what_no_kernel_here_can():
        for each in asked:  # before the first arm has cost a minute
            dw_clusters.check(each.cluster)
        # Else it is held for what the test measures in its body, or arm by arm.
        named = asked[0].id if measures_it else ""
        with dw_clusters.lease(asked[0].cluster, named) as cluster:
            yield cluster


@pytest.fixture
def scenario() -> Scenario:
    """What the trial is about; parametrize it, or override it, to ask something else."""
    from pytest_drainwatch.core.scenario import Scenario

    return Scenario()


@pytest.fixture
def dw_repeat(request: pytest.FixtureRequest) -> int:
    """Which repeat of its test this is, from 0 on; 0 if it has none."""
    node = request.node
    if repeating.measures_unannounced(node) and repeating.wanted(request.config, node) > 1:
        _progress(request.config).line(
            f"note: {node.nodeid} is measured once: repeats are for tests that name what measures "
            "among their arguments, and this one asks for it while it runs"
        )
    return getattr(request, "param", 0)


@pytest.fixture
def dw_namespace(
    request: pytest.FixtureRequest,
    dw_interrupts: None,
    dw_cluster: Cluster,
    scenario: Scenario,
    dw_repeat: int,
) -> Iterator[Stage]:
    """A namespace of its own and an open recording, for one trial."""
    with _stage(request, dw_cluster, scenario) as stage:
        yield stage


@pytest.fixture
def dw_probe(dw_namespace: Stage) -> Iterator[Standing]:
    """The probe, deployed, ready, and stable behind its Service."""
    from pytest_drainwatch.trial import deploy

    with deploy(dw_namespace) as probe:
        yield probe


@pytest.fixture
def dw_flows(dw_probe: Standing) -> Iterator[Held]:
    """Flows that all work, held open against the probe."""
    from pytest_drainwatch.trial import hold

    with hold(dw_probe) as held:
        yield held


@pytest.fixture
def trial(request: pytest.FixtureRequest, dw_flows: Held) -> Trial:
    """A measured trial of ``scenario``: judge it in the test's body."""
    from pytest_drainwatch.telling.told import announce
    from pytest_drainwatch.trial import measure

    return announce(request, measure(dw_flows))


@pytest.fixture
def drainwatch(
    request: pytest.FixtureRequest, dw_clusters: ClusterPool, dw_cluster: Cluster, dw_repeat: int
) -> Callable[[Scenario], Trial]:
    """Measure scenarios one after the other: ``drainwatch(Scenario(...)) -> Trial``.

    Each gets a cluster as it needs it.
    """

    def run(asked: Scenario) -> Trial:
        with _cluster_for(request, dw_clusters, dw_cluster, asked) as cluster:
            return _measured(request, cluster, asked)

    return run


@pytest.fixture
def arms() -> Sequence[Scenario]:
    """Scenarios that differ in one field; parametrize it, or override it."""
    raise pytest.UsageError(
        f"the fixture 'trials' measures arms, and this test names none; {EXPECTED_ARMS}"
    )


@pytest.fixture
def trials(
    request: pytest.FixtureRequest,
    arms: Sequence[Scenario],
    dw_clusters: ClusterPool,
    dw_cluster: Cluster,
    dw_repeat: int,
) -> dict[str, Trial]:
    """Measured trials of ``arms``, by the arms' own names: compare them in the test's body."""
    from pytest_drainwatch.suiting import refuse

    named = named_arms(request.config, arms)
    for asked in named.values():  # before the first has cost a minute
        if not dw_clusters.holds(dw_cluster):
            refuse(dw_cluster, asked.cluster)
            continue
        with _skipping_what_no_kernel_here_can():
            dw_clusters.check(asked.cluster)
    found = {}
    for name, asked in named.items():
        with _cluster_for(request, dw_clusters, dw_cluster, asked) as cluster:
            found[name] = _measured(request, cluster, asked)
    return found


@contextmanager
def _cluster_for(
    request: pytest.FixtureRequest, pool: ClusterPool, given: Cluster, asked: Scenario
) -> Iterator[Cluster]:
    """The cluster that a scenario needs; of what the user brought there is but one."""
    applied = _applied(request, asked)
    # An attached workload is in the cluster that the test put it into.
    if not pool.holds(given) or applied.workload is not None:
        yield given
        return
    with (
        _skipping_what_no_kernel_here_can(),
        pool.lease(applied.cluster, applied.id) as cluster,
    ):
        yield cluster


@contextmanager
def _skipping_what_no_kernel_here_can() -> Iterator[None]:
    from pytest_drainwatch.cluster import NotOnThisMachine

    try:
        yield
    except NotOnThisMachine as error:
        pytest.skip(str(error))


def _applied(request: pytest.FixtureRequest, asked: Scenario) -> Scenario:
    """A scenario with the options given put over its own values."""
    return request.config.stash[session.RUN].settings.apply(asked)


def _measured(request: pytest.FixtureRequest, cluster: Cluster, asked: Scenario) -> Trial:
    from pytest_drainwatch.telling.told import announce
    from pytest_drainwatch.trial import deploy, hold, measure

    with (
        _stage(request, cluster, asked) as stage,
        deploy(stage) as probe,
        hold(probe) as held,
    ):
        return announce(request, measure(held))


@contextmanager
def _stage(request: pytest.FixtureRequest, cluster: Cluster, asked: Scenario) -> Iterator[Stage]:
    from pytest_drainwatch.suiting import refuse
    from pytest_drainwatch.telling.told import FAILED
    from pytest_drainwatch.trial import prepare

    run = request.config.stash[session.RUN]
    asked = _applied(request, asked)
    refuse(cluster, asked.cluster)
    repeat = repeating.repeat_of(request.node)
    progress = _progress(request.config, f"{asked.id}[{repeating.label(repeat)}]")
    with (
        _turn(cluster, progress, request.node.nodeid),
        prepare(
            cluster,
            asked,
            folder=_folder(run, asked, repeat),
            keep=run.settings.keeps,
            progress=progress,
            test=request.node.nodeid,
            repeat=repeat,
            placement=run.settings.placement,
        ) as stage,
    ):
        yield stage
        stage.failed = stage.failed or request.node.stash.get(FAILED, False)


@contextmanager
def _turn(cluster: Cluster, progress: PytestProgress, test: str) -> Iterator[None]:
    from pytest_drainwatch.trial import TrialVoid
    from pytest_drainwatch.turns import TurnError, turn

    with ExitStack() as stack:
        try:
            stack.enter_context(
                turn(cluster, waiting=progress.phase, line=progress.line, test=test)
            )
        except TurnError as error:
            raise TrialVoid(str(error)) from error
        finally:
            progress.rest()  # its wait is over
        yield


def _folder(run: session.Run, asked: Scenario, repeat: int) -> Path:
    from pytest_drainwatch.results import claim_folder
    from pytest_drainwatch.trial import TrialVoid

    try:
        return claim_folder(run.settings.out, run.run_id, asked.id, repeat)
    except OSError as error:
        raise TrialVoid(
            f"cannot create a results folder in {run.settings.out}: {error.strerror}; expected a "
            f"writable folder. Look at: ls -ld {run.settings.out}; or choose another --dw-out"
        ) from error


def _progress(config: pytest.Config, trial: str = "") -> PytestProgress:
    from pytest_drainwatch.showing.progress import PytestProgress

    return PytestProgress(config, trial)
