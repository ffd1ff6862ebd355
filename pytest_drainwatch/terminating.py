"""A trial's heart: settle, trigger in one's turn, and observe until nothing more can happen."""

from __future__ import annotations

import time
from contextlib import ExitStack

from pytest_drainwatch import trigger
from pytest_drainwatch.beside import Beside
from pytest_drainwatch.cluster.embedded.starts import DEPLOYMENTS
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.plan import BEFORE_NS, dense_stretches
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.holding import Held
from pytest_drainwatch.mechanism import Evidence
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.standing import Standing
from pytest_drainwatch.vigil import RECOVERY_NS, all_over, undisturbed, watch_until

# A pod that replaces another one has started by then, or it comes too late to disturb.
STARTED_NS = 1_500 * NS_PER_MS
TURN_TOLD_AFTER_S = 5.0
ON_TIME_NS = 100 * NS_PER_MS


def terminate(
    held: Held, armed: trigger.Armed, evidence: Evidence, beside: Beside, turn: ExitStack
) -> trigger.Accepted:
    """Settle, then ask until the API accepts. ``turn``: while no other pods start here."""
    stage, agent = held.probe.stage, held.agent
    scenario, line = stage.scenario, stage.progress.line
    calm = undisturbed(agent)

    def plan(trigger_ns: int) -> None:
        # Until a plan comes flows send densely, so that preflight is short.
        dense = (at + Interval.point(trigger_ns) for at in dense_stretches(scenario))
        agent.plan(dense, trigger_ns=trigger_ns)

    def hold_still(until_ns: int) -> None:
        watch_until(stage, held.probe.watch, agent, until_ns, calm, beside)

    def wait_again(seconds: float) -> None:
        """A trigger that was blocked comes later, and the dense stretches with it."""
        turn.close()  # it may be blocked for minutes
        trigger_ns = time.monotonic_ns() + round(seconds * NS_PER_S)
        plan(trigger_ns)
        hold_still(trigger_ns)

    with stage.phase("settle", scenario.settle_ns):
        near_ns = min(scenario.settle_ns, BEFORE_NS)
        trigger_ns = time.monotonic_ns() + scenario.settle_ns
        plan(trigger_ns)
        hold_still(trigger_ns - near_ns)
        waits = False
        if _ends_here(stage):
            if waits := bool(DEPLOYMENTS.tickets()):
                agent.plan(())  # nothing comes before our turn
            turn.enter_context(DEPLOYMENTS.turn(line, told_after_s=TURN_TOLD_AFTER_S))
            turn.enter_context(stage.cluster.hasten())
        soonest_ns = time.monotonic_ns() + near_ns
        if waits or soonest_ns > trigger_ns + ON_TIME_NS:  # others had their turn, or share it
            plan(trigger_ns := max(trigger_ns, soonest_ns))
        hold_still(trigger_ns)
        stage.note(Event.SETTLE_COMPLETE, settle_ns=scenario.settle_ns)
    with stage.phase("trigger"):
        evidence.before_trigger()
        return armed.fire(timeout_s=scenario.observe_ns / NS_PER_S, sleep=wait_again)


def _ends_here(stage: Stage) -> bool:
    """Whether what ends is replaced on this machine: pods start, as they do in a deployment."""
    return stage.cluster.provider == "embedded" and stage.scenario.trigger is not Trigger.NONE


def observe(
    held: Held, accepted: trigger.Accepted, evidence: Evidence, beside: Beside, turn: ExitStack
) -> None:
    """Watch until nothing more can happen, or the window closes."""
    stage, watch, agent = held.probe.stage, held.probe.watch, held.agent
    scenario = stage.scenario
    with stage.phase("observe", scenario.expected_ns - scenario.settle_ns):
        closes_ns = time.monotonic_ns() + scenario.observe_ns
        over = all_over(
            watch,
            agent,
            scenario.trigger,
            accepted.targets,
            everybody=len(accepted.targets) == len(held.probe.target.pods),
            replaced=_replaced(held.probe),
            signed=stage.found is None,
            restarts={u: kill.restarts for u, kill in held.probe.target.kills.items()},
            one_way=scenario.flows.udp_one_way > 0,
            recovery_ns=(
                RECOVERY_NS
                + scenario.replacement_ns
                + stage.sync_period_ns
                + scenario.notices_ns
                + scenario.returns_ns
            ),
            # With Local it is kube-proxy that tells the balancer.
            notices_ns=scenario.notices_ns and scenario.notices_ns + stage.sync_period_ns,
        )
        started_ns = min(closes_ns, time.monotonic_ns() + STARTED_NS)
        ended = watch_until(stage, watch, agent, started_ns, over, beside)
        turn.close()
        if not ended:
            ended = watch_until(stage, watch, agent, closes_ns, over, beside)
        stage.note(Event.ALL_FLOWS_TERMINAL if ended else Event.OBSERVATION_WINDOW_CLOSED)
        evidence.observed()


def _replaced(ready: Standing) -> bool:
    """Whether others can come in the place of what ends: something makes them, somewhere."""
    verb = ready.stage.scenario.trigger
    if verb is Trigger.CONTAINER_KILL:  # its kubelet starts it again
        return True
    alone = ready.stage.cluster.facts().nodes == 1
    nowhere = alone and verb is Trigger.EVACUATE_NODE
    return ready.target.controller is not None and not nowhere
