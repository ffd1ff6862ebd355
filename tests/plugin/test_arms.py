"""Arms and clusters as a suite asks for them: the fixtures trials, drainwatch and dw_cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_drainwatch import explain
from pytest_drainwatch.cluster.embedded import machine
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.scenario import Scenario, arms
from pytest_drainwatch.planning.asked import arm_names
from pytest_drainwatch.trial import Trial
from tests.core.trials import recording_of

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
    return SimpleNamespace(name="mine", provider="embedded", facts=lambda: facts)
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
    # The arm that was measured before it has its row all the same.
    result.stdout.fnmatch_lines(
        ["*TrialVoid: not measured", "*SCENARIO*", "*readiness-fails*1/1 announced-fin*"]
    )
    result.stdout.no_fnmatch_line("*readiness-keeps*announced-fin*")


def test_a_failing_comparison_shows_each_arm_in_few_lines(suite: pytest.Pytester) -> None:
    suite.makepyfile(COMPARED + "    assert False\n")
    result = suite.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- drainwatch: readiness-fails -*",
            "tcp: 1/1 announced-fin, * after the trigger",
            "all of it: drainwatch show *readiness-fails*",
            "*- drainwatch: readiness-keeps -*",
            "tcp: 1/1 announced-fin, * after the trigger",
            "all of it: drainwatch show *readiness-keeps*",
        ]
    )


@pytest.mark.parametrize("number", [1, 2, 3, 5, 6, 30])
def test_however_many_trials_a_test_has_its_sections_are_short(number: int) -> None:
    measured = [
        Trial(
            scenario=Scenario(name=f"s{n}"),
            report=derive(recording_of(Scenario())),
            folder=Path(f"r{n}"),
        )
        for n in range(number)
    ]
    found = list(explain.failure_sections(measured))
    last = [f"s{n}" for n in range(number)][-5:]
    assert [name for name, _ in found] == last
    assert sum(len(text.splitlines()) for _, text in found) <= explain.SECTION_LINES
    for name, text in found:
        assert text.startswith("tcp: 1/1 announced-fin, 5.04 s after the trigger\n")
        assert text.endswith(f"drainwatch show {name.replace('s', 'r')}/report.json")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("arms(BASE, 'trigger', {'d': 'delete', 's': 'scale'})", "'arms' is the scenario drain-d"),
        ("[[]]", "'arms' is [], "),
        ("[None]", "'arms' is None"),
        ("['delete']", "'arms' is 'delete'"),
        ("[['delete', 'scale']]", "'arms' is ['delete', 'scale'], "),
        ("[[BASE, 'scale']]", "not a list of scenarios"),
    ],
)
def test_arms_that_are_none_name_the_brackets(
    suite: pytest.Pytester, given: str, said: str
) -> None:
    suite.makepyfile(
        f"""
        import pytest
        from pytest_drainwatch import Scenario, arms

        BASE = Scenario()

        @pytest.mark.parametrize("arms", {given})
        def test_it(trials): pass
        """
    )
    result = suite.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *test_it*with brackets around the arms*"])
    assert said in result.stderr.str()


FROM_A_FIXTURE = """
import pytest
from pytest_drainwatch import Scenario, arms as of

@pytest.fixture{params}
def arms(request):
    return of(Scenario(), "trigger", {{name: name for name in request.param.split()}})

{mark}
def test_it(trials):
    assert list(trials) == ["delete", "scale"]
"""


@pytest.mark.parametrize(
    ("params", "mark"),
    [
        ('(params=["delete scale"])', ""),
        ("", '@pytest.mark.parametrize("arms", ["delete scale"], indirect=True)'),
        ("", '@pytest.mark.parametrize("arms,x", [("delete scale", 1)], indirect=["arms"])'),
    ],
)
def test_what_a_fixture_makes_arms_of_is_its_own_affair(
    suite: pytest.Pytester, params: str, mark: str
) -> None:
    program = FROM_A_FIXTURE.format(params=params, mark=mark)
    suite.makepyfile(
        program.replace("it(trials)", "it(trials, x)") if "arms,x" in mark else program
    )
    suite.runpytest().assert_outcomes(passed=1)


def test_a_fixture_that_gives_no_arms_is_told_so(suite: pytest.Pytester) -> None:
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write("\n@pytest.fixture\ndef arms(): return 3\n")
    suite.makepyfile("def test_it(trials): pass")
    result = suite.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ScenarioError: 'arms' is 3, not a list of scenarios; *"])


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


EXISTING = """
import pytest
from types import SimpleNamespace
from pathlib import Path
import pytest_drainwatch.pool as pool  # not one that an earlier run left in the package
from pytest_drainwatch import Scenario, arms
from pytest_drainwatch.cluster import ClusterFacts
from pytest_drainwatch.fixtures import dw_cluster

@pytest.fixture(autouse=True)
def reached(monkeypatch):
    facts = ClusterFacts(provider="existing", proxy_mode="iptables", min_sync_period_ms=1000)
    found = SimpleNamespace(
        name="theirs", provider="existing", facts=lambda: facts, check=lambda: None,
        close=lambda: None,
        kubeconfig=Path("missing"), context=None,
    )
    monkeypatch.setattr(pool, "open_cluster", lambda *_, **__: found)

MODES = {"iptables": "iptables", "nftables": "nftables"}
"""


@pytest.mark.parametrize(
    "given",
    [
        '@pytest.mark.parametrize("arms", [arms(Scenario(), "cluster.proxy_mode", MODES)])\n',
        "_arms = arms\n\n@pytest.fixture\ndef arms():\n"
        '    return _arms(Scenario(), "cluster.proxy_mode", MODES)\n\n',
    ],
    ids=["parametrized", "fixture"],
)
def test_an_existing_cluster_is_none_of_the_arms_needs_before_any_is_measured(
    suite: pytest.Pytester, given: str
) -> None:
    suite.makepyfile(EXISTING + given + "def test_arms(trials): pass\n")
    result = suite.runpytest("--dw-cluster=existing")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ClusterError: asked for kube-proxy mode nftables, *theirs*"])
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
            assert vars(dw_cluster) == {"provider": "embedded"}
            assert not dw_clusters.holds(dw_cluster)
        """
    )
    suite.runpytest().assert_outcomes(passed=1)
