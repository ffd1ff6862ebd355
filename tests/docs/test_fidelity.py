"""The page about the simulator's fidelity says what the command says of the committed runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from pytest_drainwatch.core.fidelity.document import Fidelity
from pytest_drainwatch.core.fidelity.replay import compare
from pytest_drainwatch.core.fidelity.trial import Trial, measured
from pytest_drainwatch.core.recording import Recording, loads
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.trial import simulate_trial
from pytest_drainwatch.fidelity import compared
from pytest_drainwatch.given import paths_of, read
from tests.docs.conftest import Load

ROOT = Path(__file__).resolve().parents[2]
DOCS, SAMPLE = ROOT / "docs", ROOT / "results" / "sample"


@pytest.fixture(scope="module")
def generator(load: Load) -> ModuleType:
    return load("make_fidelity")


@pytest.fixture(scope="module")
def found(generator: ModuleType) -> Fidelity:
    return compared(generator.RUNS)


def test_the_page_is_generated_from_the_runs(generator: ModuleType, found: Fidelity) -> None:
    written = (DOCS / "fidelity.md").read_text(encoding="utf-8")
    assert written == generator.page(found), "docs/fidelity.md is out of date: make docs"
    assert "<!-- " not in written


def test_the_published_matrix_is_predicted(found: Fidelity) -> None:
    """Every flow outcome equal, every predicted median inside of what was measured."""
    assert found.broken == ()
    arms = [arm for cluster in found.clusters for arm in cluster.arms]
    assert [cluster.trials for cluster in found.clusters] == [25, 25]
    assert len(arms) == 10
    fates = [each for arm in arms for each in arm.fates]
    assert sum(each.flows for each in fates) == 1000
    assert sum(each.outcomes_equal for each in fates) == 1000
    # Resets at a kill are chance, which the model does not know.
    odd = {(arm.scenario, f.group): f.flows - f.mechanisms_equal for arm in arms for f in arm.fates}
    assert {where for where, count in odd.items() if count} <= {("C-ignore-delete", "target tcp")}


def test_the_medians_that_are_judged_were_measured_and_predicted(found: Fidelity) -> None:
    """Nothing holds because nothing was looked at."""
    for arm in (arm for cluster in found.clusters for arm in cluster.arms):
        assert len(arm.figures) == 14
        for figure in arm.figures:
            assert figure.inside is True, (arm.scenario, figure.metric)
            assert figure.measured.observed == figure.predicted.observed == 5


def test_what_the_page_says_of_its_largest_errors(found: Fidelity) -> None:
    arms = {
        (str(cluster.conditions["environment.kubernetes_version"])[:5], arm.scenario[0]): {
            each.metric: each for each in arm.figures
        }
        for cluster in found.clusters
        for arm in cluster.arms
    }
    jump = arms["v1.37", "B"]["trigger_to_first_udp_terminal_ms"]
    assert jump.error_ns is not None
    assert jump.replay_error_ns is not None
    assert abs(jump.error_ns) > 900_000_000
    assert jump.replay_error_ns < 2_500_000
    ended = arms["v1.37", "A"]["trigger_to_container_terminated_ms"]
    assert ended.measured.median is not None
    assert ended.from_others_ns is not None
    assert ended.from_others_ns < ended.measured.median - 90_000_000


FOUND_OUT = [
    "deletion_ns",
    "terminating_ns",
    "sigterm_ns",
    "sync_ns",
    "conntrack_ns",
    "status_ns",
    "unready_ns",
    "replacement_ns",
    "listening_ns",
    "ready_ns",
    "noticed_ns",
]
NOT_FOUND_OUT = [
    "endpoint_ns",
    "handling_ns",
    "farewell_ns",
    "lingering_ns",
    "kill_ns",
    "network_ns",
    "deleted_ns",
]


@pytest.fixture(scope="module")
def of_1_37() -> list[Trial]:
    return [
        measured(
            str(path),
            read(path),
            loads(beside.read_text(encoding="utf-8")) if beside.exists() else None,
        )
        for path in paths_of(SAMPLE / "kubernetes-1.37")
        for beside in [path.with_name("recording.jsonl")]
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "holds"), [*((n, False) for n in FOUND_OUT), *((n, True) for n in NOT_FOUND_OUT)]
)
def test_which_doubled_latency_is_found_out(of_1_37: list[Trial], name: str, holds: bool) -> None:
    """What the page says that its verdict can tell, and what it cannot."""

    def doubled(scenario: Scenario, took: Latencies) -> Recording:
        return simulate_trial(scenario, replace(took, **{name: 2 * getattr(took, name)}))

    assert compare(of_1_37, doubled, "x").holds is holds
