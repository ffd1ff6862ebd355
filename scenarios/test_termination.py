"""Behaviour on SIGTERM x how the pod is terminated: what happens to live connections?

Windows are shorter than Kubernetes' defaults so that the file runs in a few
minutes: grace period 10 s, drain window 5 s, settle 3 s. For the full values:

    pytest scenarios/ -k drain --dw-grace-period 30 --dw-drain 25 --dw-settle 10
"""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, Mechanism, Outcome, Role, Scenario, Trial, matrix
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.explain import worst
from scenarios.short import LATE_NS, known

SHORT = Scenario(app=App(grace_period_s=10, drain_ns=5 * NS_PER_S), settle_ns=3 * NS_PER_S)


@pytest.mark.trial
@pytest.mark.parametrize("scenario", matrix(behavior=["drain"], base=SHORT))
def test_every_connection_is_closed_cleanly_at_the_windows_end(trial: Trial) -> None:
    """The app announces each close, and makes it when its drain window ends."""
    assert trial.tcp.drained == trial.scenario.flows.tcp, worst(trial.flows, Outcome.DRAINED)
    assert trial.exit_codes == (0,)
    app = trial.scenario.app
    window = app.drain_ns
    lo, hi = known(trial.summary.sigterm_to_last_flow_terminal_ns)
    tcp_ends = [f.terminal_ns for f in trial.flows if f.proto == "tcp" and f.terminal_ns]
    sigterm = known(trial.summary.trigger_to_sigterm_ns)
    for end in tcp_ends:
        # The truth lies within the bounds: they must allow the promised instant, or just after.
        assert end[1] - sigterm[0] >= window
        assert end[0] - sigterm[1] <= window + LATE_NS
    assert lo <= hi


@pytest.mark.trial
@pytest.mark.parametrize("scenario", matrix(behavior=["exit-now"], base=SHORT))
def test_every_connection_is_reset_at_once(trial: Trial) -> None:
    """An app that just exits takes its connections with it, within 200 ms of SIGTERM."""
    assert trial.tcp.mechanisms == {Mechanism.RST: trial.scenario.flows.tcp}, worst(
        trial.flows, Outcome.SEVERED
    )
    assert trial.exit_codes == (0,)
    sigterm = known(trial.summary.trigger_to_sigterm_ns)
    for flow in trial.flows:
        if flow.proto == "tcp" and flow.role is Role.TARGET:
            assert known(flow.terminal_ns)[0] - sigterm[1] <= 200 * NS_PER_MS


@pytest.mark.trial
@pytest.mark.parametrize("scenario", matrix(behavior=["ignore"], base=SHORT))
def test_every_connection_lives_until_the_kill(trial: Trial) -> None:
    """Who ignores SIGTERM is killed at the end of the grace period: exit code 137."""
    assert trial.tcp.severed == trial.scenario.flows.tcp, worst(trial.flows, Outcome.SEVERED)
    assert trial.exit_codes == (137,)
    grace = trial.scenario.app.grace_period_s * NS_PER_S
    for flow in trial.flows:
        if flow.proto == "tcp" and flow.role is Role.TARGET:
            lo, hi = known(flow.terminal_ns)
            assert hi >= grace
            assert lo <= grace + LATE_NS
