"""Arms and clusters as a suite asks for them: the fixtures trials, drainwatch and dw_cluster."""

from __future__ import annotations

import pytest

from pytest_drainwatch.asked import arm_names
from pytest_drainwatch.cluster.embedded import machine
from pytest_drainwatch.core.scenario import Scenario, arms

COMPARED = """
import pytest
from pytest_drainwatch import Scenario, arms

BASE = Scenario(name="readiness")

@pytest.mark.trial
@pytest.mark.parametrize(
    "arms", [arms(BASE, "app.readiness_on_drain", {"fails": "fail", "keeps": "keep"})],
    ids=["readiness"],
)
def test_compared(trials):
    assert list(trials) == ["fails", "keeps"]
    for name, trial in trials.items():
        assert trial.scenario.app.readiness_on_drain == name.removesuffix("s")
        assert trial.folder.parent.name == f"readiness-{name}"
"""

# Brings a cluster of which something is known.
BROUGHT = """
import pytest
from types import SimpleNamespace
from pytest_drainwatch import ClusterNeeds, Scenario, arms
from pytest_drainwatch.cluster import ClusterFacts

@pytest.fixture(scope="session")
def dw_cluster():
    facts = ClusterFacts(provider="existing", proxy_mode="iptables", min_sync_period_ms=1000)
    return SimpleNamespace(name="mine", facts=lambda: facts)
"""


def test_arms_are_measured_and_come_by_their_names(suite: pytest.Pytester) -> None:
    suite.makepyfile(COMPARED)
    result = suite.runpytest("-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["drainwatch: 2 trial(s), about *", "*readiness-fails*", "*readiness-keeps*"]
    )


def test_arms_that_the_options_make_one_are_refused_before_anything_starts(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile(COMPARED)
    result = suite.runpytest("--dw-readiness-on-drain=keep")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: *test_compared*readiness-fails and readiness-keeps differ in nothing*"]
    )
    assert not (suite.path / "results").exists()


def test_arms_that_differ_in_more_than_one_field_are_refused(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from pytest_drainwatch import App, Scenario

        @pytest.mark.parametrize(
            "arms", [[Scenario(), Scenario(app=App(replicas=2), trigger="scale")]], ids=["x"]
        )
        def test_it(trials): pass
        """
    )
    result = suite.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *differ in app.replicas, trigger*"])


def test_arms_without_names_of_their_own_are_refused(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from pytest_drainwatch import App, Scenario

        ARMS = [Scenario(app=App(replicas=n)) for n in (1, 2)]

        @pytest.mark.parametrize("arms", [ARMS], ids=["x"])
        def test_it(trials): pass
        """
    )
    result = suite.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *called drain-delete, drain-delete; expected a name*"])


def test_arms_of_an_overridden_fixture_must_compare_too(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from pytest_drainwatch import Scenario

        @pytest.fixture
        def arms(): return [Scenario()]

        def test_it(trials): pass
        """
    )
    result = suite.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ScenarioError: 1 arm(s) compare nothing*"])


def test_a_void_arm_is_an_error_of_the_test(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        COMPARED
        + """
@pytest.fixture(autouse=True)
def void(measured, monkeypatch):
    import pytest_drainwatch.trial as conductor
    whole = conductor.measure
    def measure(held):
        if held[0].id == "readiness-keeps":
            raise conductor.TrialVoid("not measured")
        return whole(held)
    monkeypatch.setattr(conductor, "measure", measure)
"""
    )
    result = suite.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TrialVoid: not measured"])


def test_trials_without_arms_say_what_is_missing(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(trials): pass")
    result = suite.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*@pytest.mark.parametrize("arms", *'])


@pytest.mark.parametrize(
    ("base", "names"),
    [
        (Scenario(), ["fails", "keeps"]),
        (Scenario(name="some-name"), ["fails", "keeps"]),
        (Scenario(name="x"), ["none", "sleep-2", "sleep-5"]),
        (Scenario(), ["1", "2", "3"]),
        (Scenario(), ["short", "short-long"]),
    ],
)
def test_an_arm_is_called_what_tells_it_apart(base: Scenario, names: list[str]) -> None:
    periods = {name: 1000 + number for number, name in enumerate(names)}
    asked = arms(base, "cluster.min_sync_period_ms", periods)
    assert arm_names(asked) == names


def test_a_brought_cluster_that_is_not_what_is_needed_is_refused(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        BROUGHT
        + """
NFTABLES = Scenario(cluster=ClusterNeeds(proxy_mode="nftables"))
IPTABLES = Scenario(cluster=ClusterNeeds(proxy_mode="iptables"))

def test_is_not(drainwatch):
    with pytest.raises(Exception, match="asked for kube-proxy mode nftables, .* has iptables"):
        drainwatch(NFTABLES)

def test_is(drainwatch):
    assert drainwatch(IPTABLES).tcp.total == 1

@pytest.mark.parametrize("arms", [arms(Scenario(), "cluster.proxy_mode", {
    "iptables": "iptables", "nftables": "nftables"})], ids=["x"])
def test_arms(trials): pass
"""
    )
    result = suite.runpytest()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ClusterError: asked for kube-proxy mode nftables, *"])
    # The arms were refused before the first of them was measured.
    assert not list(suite.path.glob("results/2*/*-iptables"))


def test_what_is_needed_is_said_before_the_wait(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from pytest_drainwatch import ClusterNeeds, Scenario

        @pytest.mark.parametrize("scenario", [Scenario(cluster=ClusterNeeds(kube_version="1.34"))])
        def test_it(trial): pass
        """
    )
    suite.runpytest("--dw-min-sync-period=10s").stdout.fnmatch_lines(
        ["drainwatch: 1 of them on Kubernetes 1.34, minSyncPeriod 10000 ms"]
    )
    suite.runpytest("--dw-kube-version=1.37").stdout.fnmatch_lines(
        ["drainwatch: 1 of them on Kubernetes 1.37"]
    )


@pytest.mark.skipif(machine.lacks_ipvs() is None, reason="the kernel has ip_vs")
@pytest.mark.parametrize("fixture", ["trial", "trials"])
def test_ipvs_is_skipped_with_the_reason_where_the_kernel_lacks_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, fixture: str
) -> None:
    """No cluster is started for it, nor for the arm that could be measured."""
    monkeypatch.setenv("DW_CLUSTER", "embedded")
    monkeypatch.setenv("DW_STATE", str(pytester.path / "state"))
    pytester.makepyfile(
        f"""
        import pytest
        from pytest_drainwatch import ClusterNeeds, Scenario, arms as of

        ARMS = of(Scenario(), "cluster.proxy_mode", {{"nft": "nftables", "ipvs": "ipvs"}})

        @pytest.mark.parametrize("scenario", ARMS[1:])
        @pytest.mark.parametrize("arms", [ARMS], ids=["modes"])
        def test_it({fixture}, arms, scenario): pass
        """
    )
    result = pytester.runpytest("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        ["SKIPPED*ip_vs*off by default in Kubernetes 1.40, removed in 1.43*"]
    )
    assert not (pytester.path / "results").exists()


def test_the_pool_and_ones_own_cluster_do_not_meet(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        def test_it(dw_cluster, dw_clusters):
            assert dw_cluster is None
            assert not dw_clusters.holds(dw_cluster)
        """
    )
    suite.runpytest().assert_outcomes(passed=1)
