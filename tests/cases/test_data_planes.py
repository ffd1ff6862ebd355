"""Cases of section E whose cluster or Service is set up in an unusual way, in real trials."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import (
    Accept,
    App,
    ClusterNeeds,
    Flows,
    ProxyMode,
    Readiness,
    Role,
    Scenario,
    Service,
    Trial,
    Trigger,
)
from pytest_drainwatch.cluster import ClusterSettings, NotOnThisMachine
from pytest_drainwatch.cluster.embedded import machine
from pytest_drainwatch.cluster.possible import check_settings
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S

APP = App(grace_period_s=6, drain_ns=3 * NS_PER_S)
FEW = Flows(tcp=2, udp=2, probe_interval_ns=None)


KEEPS = replace(APP, replicas=2, accept_on_drain=Accept.KEEP)
TRIES = replace(FEW, probe_interval_ns=5 * NS_PER_MS)
# The last pod, which keeps its readiness, is led to although it is not ready any more.
LAST = Scenario(
    app=replace(KEEPS, replicas=1, readiness_on_drain=Readiness.KEEP),
    flows=TRIES,
    trigger=Trigger.SCALE,
    settle_ns=2 * NS_PER_S,
    name="after-unready-last",
)


@pytest.mark.cluster
@pytest.mark.parametrize(
    "scenario",
    [
        *(
            Scenario(
                app=KEEPS,
                flows=TRIES,
                cluster=ClusterNeeds(proxy_mode=mode),
                settle_ns=2 * NS_PER_S,
                name=f"after-unready-{mode}",
            )
            for mode in (ProxyMode.IPTABLES, ProxyMode.IPVS)
        ),
        LAST,
    ],
    ids=lambda scenario: scenario.id,
)
def test_c40_connections_to_an_unready_pod_are_counted(trial: Trial) -> None:
    """200 a second while one of two pods drains, and while the last one does; skipped where
    the kernel has no IPVS.
    """
    wanted = trial.scenario.cluster.proxy_mode
    assert wanted in (None, trial.report.environment.kube_proxy_mode)
    found = trial.new_connections
    late = [who.after_unready for who in found.answered_by if who.role is Role.TARGET]
    known = [bounds for bounds in late if bounds is not None]
    assert late, "the target answered nobody"
    assert len(known) == len(late), "ready:false was not seen"
    assert found.after_unready == sum(at_least for at_least, _ in known)
    assert found.attempts > 300, "too few to tell the arms apart"
    if trial.scenario.app.replicas == 1:
        assert found.after_unready > 300, "served for three seconds of its drain"
    else:
        assert [who for who in found.answered_by if who.role is Role.BYSTANDER]
        assert sum(at_most for _, at_most in known) < 200, "another pod was ready"


@pytest.mark.skipif(machine.lacks_ipvs() is None, reason="the kernel has ip_vs")
def test_c40_where_ipvs_is_lacking_the_reason_says_that_it_is_deprecated() -> None:
    """The text with which the fixture skips; nothing is started to find it out."""
    wanted = ClusterSettings(proxy_mode="ipvs", min_sync_period_ms=0)
    with pytest.raises(NotOnThisMachine, match=r"ipvs mode is deprecated.*removed in 1\.43"):
        check_settings(wanted)


@pytest.mark.cluster
@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=APP,
            flows=FEW,
            service=Service(publish_not_ready_addresses=publish),
            settle_ns=NS_PER_S,
            name="published" if publish else "not-published",
        )
        for publish in (True, False)
    ],
    ids=lambda scenario: scenario.id,
)
def test_c44_a_published_endpoint_is_ready_to_its_end(trial: Trial) -> None:
    """ready:false is null with its reason, and not 0; terminating is timed all the same."""
    published = trial.scenario.service.publish_not_ready_addresses
    (windows,) = trial.report.trial.windows
    assert windows.terminating_ns is not None
    assert windows.removed_ns is not None
    assert windows.terminating_ns[1] < windows.removed_ns[1]
    told = any("publishNotReadyAddresses" in note for note in trial.report.trial.notes)
    assert told is published
    if published:
        assert trial.summary.sigterm_to_ready_false_ms is None
        assert trial.summary.sigterm_to_ready_false_ns is None
        assert windows.ready_false_ns is None
        assert windows.ready_routable.closes_ns == windows.removed_ns
    else:
        assert trial.summary.sigterm_to_ready_false_ns is not None
        assert windows.ready_false_ns == windows.terminating_ns, "both come with the delete"
