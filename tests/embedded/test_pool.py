"""The pool's book-keeping: what is shared, what is closed and when, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch import pool as pools
from pytest_drainwatch.cluster import Cluster, ClusterError, ClusterFacts, ClusterSettings
from pytest_drainwatch.core.scenario import ClusterNeeds, ProxyMode
from pytest_drainwatch.pool import MOST_ALIVE, ClusterPool
from pytest_drainwatch.settings import Settings
from pytest_drainwatch.suiting import cluster_settings, refuse

ANY = ClusterNeeds()
FOUR = [ANY, *(ClusterNeeds(min_sync_period_ms=ms) for ms in (10, 20, 30))]


@dataclass(eq=False)
class Fake:
    """A cluster that only remembers what became of it."""

    wanted: ClusterSettings
    ends: list[str] = field(default_factory=list)
    dead: bool = False
    name: str = "fake"
    kubeconfig: Path = Path("config")
    context: str | None = None

    @property
    def provider(self) -> str:
        return self.facts().provider

    def facts(self) -> ClusterFacts:
        wanted = self.wanted
        return ClusterFacts(
            provider=wanted.provider,
            kube_version=wanted.kube_version,
            proxy_mode=wanted.proxy_mode,
            min_sync_period_ms=wanted.min_sync_period_ms,
            nodes=wanted.nodes,
        )

    def check(self) -> None:
        if self.dead:
            raise ClusterError("cluster fake has died")

    def close(self) -> None:
        self.ends.append("closed")

    def detach(self) -> None:
        self.ends.append("detached")


@contextmanager
def pooled(
    *,
    keep: bool = False,
    settings: Settings | None = None,
    said: list[str] | None = None,
) -> Iterator[tuple[ClusterPool, list[Fake]]]:
    said = [] if said is None else said
    opened: list[Fake] = []

    def open_one(wanted: ClusterSettings, **_: Any) -> Fake:
        opened.append(Fake(wanted))
        return opened[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pools, "open_cluster", open_one)
        patch.setenv("DW_STATE", "/nowhere")  # no start of anybody else's is waited for
        settings = settings or Settings(cluster="embedded")
        with ClusterPool(settings, Path("logs"), said.append, keep=lambda: keep) as pool:
            yield pool, opened


def alive(opened: list[Fake]) -> int:
    return sum(not fake.ends for fake in opened)


def test_nothing_is_opened_before_it_is_needed_and_then_shared() -> None:
    with pooled() as (pool, opened):
        assert opened == []
        with pool.lease(ANY) as one, pool.lease(ClusterNeeds(kube_version="1.37")) as other:
            assert one is other
            assert pool.holds(one)
        with pool.lease(ANY) as again:
            assert again is one
        assert len(opened) == 1
    assert [fake.ends for fake in opened] == [["closed"]]


def test_the_least_recently_used_one_makes_room() -> None:
    with pooled() as (pool, opened):
        for needs in (FOUR[0], FOUR[1], FOUR[0], FOUR[2]):
            with pool.lease(needs):
                pass
        assert [bool(fake.ends) for fake in opened] == [False, True, False]


@given(st.lists(st.lists(st.sampled_from(FOUR), min_size=1, max_size=4), max_size=8))
def test_what_is_in_use_stays_and_idle_ones_are_few(rounds: list[list[ClusterNeeds]]) -> None:
    """In each round trials hold several clusters at once; then all let go."""
    with pooled() as (pool, opened):
        for asked in rounds:
            assert alive(opened) <= MOST_ALIVE
            with ExitStack() as held:
                used = [cast(Fake, held.enter_context(pool.lease(needs))) for needs in asked]
                assert all(not fake.ends for fake in used)
                assert alive(opened) <= max(MOST_ALIVE, len(set(asked)))
                for needs, fake in zip(asked, used, strict=True):
                    assert fake.wanted == cluster_settings(Settings(cluster="embedded"), needs)[0]
    assert all(fake.ends == ["closed"] for fake in opened)


def test_kept_clusters_are_let_go_and_not_closed() -> None:
    with pooled(keep=True) as (pool, opened), pool.lease(ANY):
        pass
    assert opened[0].ends == ["detached"]


@given(st.lists(st.sampled_from(FOUR), min_size=1, max_size=8))
def test_those_that_are_open_at_the_end_are_kept_and_they_are_few(
    asked: list[ClusterNeeds],
) -> None:
    said: list[str] = []
    settings = Settings(cluster="embedded", keep="always")
    with pooled(keep=True, settings=settings, said=said) as (pool, opened):
        for needs in asked:
            with pool.lease(needs):
                pass
        left = [fake for fake in opened if not fake.ends]
    assert [fake for fake in opened if fake.ends == ["detached"]] == left
    assert [fake for fake in opened if fake.ends == ["closed"]] == [
        fake for fake in opened if fake not in left
    ]
    assert len(left) == min(MOST_ALIVE, len(set(asked)))
    # Which one is which, and what became of the others.
    kept = [line for line in said if line.startswith("kept cluster fake (")]
    assert sorted(kept) == sorted(
        f"kept cluster fake (Kubernetes 1.37, kube-proxy iptables, minSyncPeriod "
        f"{fake.wanted.min_sync_period_ms} ms): export KUBECONFIG=config"
        for fake in left
    )
    assert len(said) - len(kept) == len(opened) - len(left)
    assert all("makes room" in line for line in said if line not in kept)


def test_room_is_made_without_words_where_nothing_is_kept() -> None:
    said: list[str] = []
    with pooled(said=said) as (pool, opened):
        for needs in FOUR:
            with pool.lease(needs):
                pass
    assert [fake.ends for fake in opened] == [["closed"]] * len(FOUR)
    assert said == []


def test_what_an_existing_cluster_is_not_is_told_before_it_is_used_again() -> None:
    settings = Settings(cluster="existing", context="there")
    nftables = ClusterNeeds(proxy_mode=ProxyMode.NFTABLES)
    with pooled(settings=settings) as (pool, opened):
        pool.check(nftables)  # nobody knows yet
        assert opened == []
        with pool.lease(ANY):
            pool.check(ANY)
            with pytest.raises(ClusterError, match="mode nftables, and cluster fake has iptables"):
                pool.check(nftables)
        assert len(opened) == 1


FRESH_TRIAL = Settings(cluster="embedded", fresh_cluster="trial")
FRESH_SCENARIO = Settings(cluster="embedded", fresh_cluster="scenario")


def test_a_session_shares_whatever_the_scenario_is() -> None:
    with pooled() as (pool, opened):
        for scenario in ("a", "b", "a"):
            with pool.lease(ANY, scenario):
                pass
        assert len(opened) == 1


def test_every_trial_gets_a_new_cluster_and_the_old_one_goes() -> None:
    with pooled(settings=FRESH_TRIAL) as (pool, opened):
        for number in range(3):
            with pool.lease(ANY, "a") as cluster:
                assert cast(Fake, cluster) is opened[number]
                assert alive(opened) == 1
        assert len(opened) == 3


def test_repeats_of_a_scenario_in_a_row_share_a_cluster() -> None:
    with pooled(settings=FRESH_SCENARIO) as (pool, opened):
        used = []
        for scenario in ("a", "a", "b", "b", "a"):
            with pool.lease(ANY, scenario) as cluster:
                used.append(opened.index(cast(Fake, cluster)))
        assert used == [0, 0, 1, 1, 2]
        assert alive(opened) == 1


@pytest.mark.parametrize("settings", [FRESH_TRIAL, FRESH_SCENARIO])
def test_one_that_was_only_held_is_fresh_for_the_first_trial_within(settings: Settings) -> None:
    """As a test does that holds the cluster of its first arm and measures two."""
    with pooled(settings=settings) as (pool, opened):
        with pool.lease(ANY) as held:
            with pool.lease(ANY, "a") as first:
                assert first is held
            with pool.lease(ANY, "b") as second:
                assert second is not held
                assert not opened[0].ends  # it is still held
        with pool.lease(ANY, "c"):
            assert [bool(fake.ends) for fake in opened] == [True, True, False]


@pytest.mark.parametrize("settings", [FRESH_TRIAL, FRESH_SCENARIO])
def test_what_somebody_held_is_fresh_no_more(settings: Settings) -> None:
    with pooled(settings=settings) as (pool, opened):
        for _ in range(2):
            with pool.lease(ANY):
                pass
        with pool.lease(ANY, "a"):
            assert len(opened) == 3


@given(
    st.sampled_from(["session", "scenario", "trial"]),
    st.lists(st.tuples(st.sampled_from(FOUR), st.sampled_from("ab"), st.booleans()), max_size=8),
)
def test_nothing_in_use_is_ever_closed(
    fresh: str, asked: list[tuple[ClusterNeeds, str, bool]]
) -> None:
    settings = Settings(cluster="embedded", fresh_cluster=fresh)
    with pooled(settings=settings) as (pool, _), ExitStack() as held:
        holding: list[Fake] = []
        for needs, scenario, keeps in asked:
            lease = pool.lease(needs, scenario)
            if keeps:
                holding.append(cast(Fake, held.enter_context(lease)))
            else:
                with lease as cluster:
                    assert not cast(Fake, cluster).ends
            assert not any(fake.ends for fake in holding)
            if fresh == "trial":
                assert len(set(map(id, holding))) == len(holding)


def test_the_last_fresh_one_can_be_kept() -> None:
    settings = replace(FRESH_TRIAL, keep="always")
    with pooled(keep=True, settings=settings) as (pool, opened):
        for _ in range(2):
            with pool.lease(ANY, "a"):
                pass
    assert [fake.ends for fake in opened] == [["closed"], ["detached"]]


def test_somebody_elses_cluster_is_not_started_anew() -> None:
    settings = Settings(cluster="existing", context="there", fresh_cluster="trial")
    with pooled(settings=settings) as (pool, opened):
        with pytest.raises(ClusterError, match=r"--dw-fresh-cluster=trial.*not ours"):
            pool.check(ANY)
        with pytest.raises(ClusterError, match="--dw-cluster=embedded"), pool.lease(ANY, "a"):
            pass
        assert opened == []


def test_a_dead_cluster_is_replaced_and_not_kept() -> None:
    with pooled(keep=True) as (pool, opened):
        with pool.lease(ANY):
            opened[0].dead = True
        with pool.lease(ANY) as another:
            assert cast(Fake, another) is not opened[0]
    assert [fake.ends for fake in opened] == [["closed"], ["detached"]]


def test_one_that_does_not_close_does_not_keep_the_others_from_it() -> None:
    class Stuck(Exception):
        pass

    def fail() -> None:
        raise Stuck

    with pooled() as (pool, opened):
        for needs in FOUR[:2]:
            with pool.lease(needs):
                pass
        opened[1].close = fail  # type: ignore[method-assign]
        with pytest.raises(Stuck):
            pool.close()
        assert opened[0].ends == ["closed"]


def test_a_period_that_nobody_names_is_the_modes_own() -> None:
    def asked(needs: ClusterNeeds) -> tuple[str, int]:
        wanted, _ = cluster_settings(Settings(cluster="embedded"), needs)
        return wanted.proxy_mode, wanted.min_sync_period_ms

    assert asked(ANY) == ("iptables", 1000)
    assert asked(ClusterNeeds(proxy_mode=ProxyMode.NFTABLES)) == ("nftables", 1000)
    assert asked(ClusterNeeds(proxy_mode=ProxyMode.IPVS)) == ("ipvs", 0)
    assert asked(ClusterNeeds(min_sync_period_ms=7)) == ("iptables", 7)


KNOWN = ClusterNeeds(
    kube_version="1.37", proxy_mode=ProxyMode.NFTABLES, min_sync_period_ms=5, nodes=2
)
FACTS = {"kube_version": "1.37", "proxy_mode": "nftables", "min_sync_period_ms": 5, "nodes": 2}


def given_cluster(**facts: Any) -> Cluster:
    """Somebody's cluster, of which this is known."""
    fake = Fake(ClusterSettings())
    fake.facts = lambda: ClusterFacts(provider="existing", **facts)  # type: ignore[method-assign]
    return cast(Cluster, fake)


def test_a_cluster_that_is_what_is_asked_is_taken() -> None:
    refuse(given_cluster(**FACTS), KNOWN)
    refuse(given_cluster(), ANY)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kube_version": "1.34"}, "asked for Kubernetes 1.37, and cluster fake has 1.34"),
        ({"proxy_mode": "iptables"}, "mode nftables, and cluster fake has iptables"),
        ({"min_sync_period_ms": 1000}, r"\(ms\) 5, and cluster fake has 1000"),
        ({"min_sync_period_ms": 0}, "has 0"),
        ({"nodes": 3}, "nodes that take pods: 2, and cluster fake has 3.*no --dw-nodes"),
        ({"nodes": None}, "does not say what it has"),
        ({"proxy_mode": None}, "does not say what it has.*no --dw-proxy-mode"),
    ],
)
def test_a_cluster_that_is_not_known_to_be_that_is_refused(
    change: dict[str, Any], said: str
) -> None:
    with pytest.raises(ClusterError, match=said):
        refuse(given_cluster(**(FACTS | change)), KNOWN)


def test_every_need_leads_to_one_existing_cluster() -> None:
    settings = Settings(cluster="existing", context="there")
    wanted = {cluster_settings(settings, needs)[0] for needs in (*FOUR, KNOWN)}
    assert len(wanted) == 1
    assert replace(next(iter(wanted)), context=None) == ClusterSettings(provider="existing")
