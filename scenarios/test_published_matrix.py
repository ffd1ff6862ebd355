"""The ancestor's published experiment: five combinations of behaviour and trigger.

Its parameters: grace period 30 s, drain window 25 s, ten TCP and ten UDP flows, settle 10 s;
the letters are those of its arms. It ran them five times in about 30 minutes:

    pytest scenarios/test_published_matrix.py -n 5 --dist worksteal --dw-repeat 5

and on its Kubernetes with ``--dw-kube-version 1.34``. docs/matrix.md sets the figures
beside the published ones.

Flows send, and new connections are tried, less often than by default: so many trials at
once share the machine, and none may be late because of the others.
"""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, Behavior, Flows, Mechanism, Role, Scenario, Trial, Trigger
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds
from scenarios.short import LATE_NS, known, unstalled

DRAIN_NS, GRACE_S = 25 * NS_PER_S, 30
FLOWS = Flows(tcp=10, udp=10, tcp_rate_hz=5, udp_rate_hz=30, probe_interval_ns=20 * NS_PER_MS)


def arm(letter: str, behavior: Behavior, trigger: Trigger) -> Scenario:
    """One of the ancestor's arms."""
    return Scenario(
        name=f"{letter}-{behavior}-{trigger}",
        app=App(behavior=behavior, grace_period_s=GRACE_S, drain_ns=DRAIN_NS),
        flows=FLOWS,
        trigger=trigger,
        settle_ns=10 * NS_PER_S,
    )


EXITING = [arm("A", Behavior.EXIT_NOW, Trigger.DELETE)]
IGNORING = [arm("C", Behavior.IGNORE, Trigger.DELETE)]
DRAINING = [
    arm("B", Behavior.DRAIN, Trigger.DELETE),
    arm("D", Behavior.DRAIN, Trigger.EVICT),
    arm("E", Behavior.DRAIN, Trigger.SCALE),
]


def tcp_ends(trial: Trial) -> list[Bounds]:
    """When the target's TCP flows ended; all of them did."""
    flows = [f for f in trial.flows if f.proto == "tcp" and f.role is Role.TARGET]
    return [known(flow.terminal_ns) for flow in flows]


@pytest.mark.trial
@pytest.mark.parametrize("scenario", EXITING)
def test_exiting_at_once_resets_every_connection(trial: Trial) -> None:
    """RST within 200 ms of SIGTERM; UDP is refused by the dead pod, or led to its replacement."""
    assert unstalled(trial)
    assert trial.tcp.mechanisms == {Mechanism.RST: 10}
    assert trial.exit_codes == (0,)
    assert set(trial.udp.mechanisms) <= {Mechanism.REFUSED, Mechanism.REHOMED}
    sigterm = known(trial.summary.trigger_to_sigterm_ns)
    for lo, hi in tcp_ends(trial):
        assert hi >= sigterm[0]
        assert lo - sigterm[1] <= 200 * NS_PER_MS


@pytest.mark.trial
@pytest.mark.parametrize("scenario", DRAINING)
def test_draining_closes_every_connection_cleanly_whatever_the_trigger(trial: Trial) -> None:
    """TCP at the end of the drain window. UDP is led to the replacement, if there is one."""
    assert unstalled(trial)
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: 10}
    assert trial.exit_codes == (0,)
    if trial.scenario.trigger is Trigger.SCALE:
        assert set(trial.udp.mechanisms) <= {Mechanism.REFUSED, Mechanism.UNREACHABLE}
    else:
        assert trial.udp.mechanisms == {Mechanism.REHOMED: 10}
    sigterm = known(trial.summary.trigger_to_sigterm_ns)
    for lo, hi in tcp_ends(trial):
        assert hi - sigterm[0] >= DRAIN_NS
        assert lo - sigterm[1] <= DRAIN_NS + LATE_NS


@pytest.mark.trial
@pytest.mark.parametrize("scenario", IGNORING)
def test_ignoring_sigterm_is_killed_when_the_grace_period_ends(trial: Trial) -> None:
    """Exit code 137. The kernel closes what the process held: FIN, or RST where data was unread."""
    assert unstalled(trial)
    assert set(trial.tcp.mechanisms) <= {Mechanism.FIN_UNANNOUNCED, Mechanism.RST}
    assert trial.tcp.severed == 10
    assert trial.exit_codes == (137,)
    for lo, hi in tcp_ends(trial):
        assert hi >= GRACE_S * NS_PER_S
        assert lo <= GRACE_S * NS_PER_S + LATE_NS
