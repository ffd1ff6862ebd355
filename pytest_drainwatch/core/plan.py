"""When to look closely: the times at which a scenario makes something happen.

Known beforehand, from the scenario alone; results never move them. Around each of
them flows send and new connections are tried densely, elsewhere sparsely: sending keeps
conntrack entries alive, and costs processor time that the trial next door may need.
"""

from __future__ import annotations

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval, merged
from pytest_drainwatch.core.pod.kubelet import MINIMUM_S, kill_after, sigterm_after
from pytest_drainwatch.core.scenario import Behavior, Pid1, Scenario, Trigger

BEFORE_NS = NS_PER_S // 2
# A replacement is Ready 1-3 s after the trigger, unless it is to be Ready later, and flows and
# new connections move to it within a kube-proxy sync: a second, unless another time is asked for.
REPLACED_NS = 6 * NS_PER_S
# A node says "host unreachable" only when its neighbour table has given up, after 3 s.
AFTER_NS = 5 * NS_PER_S


def dense_stretches(scenario: Scenario) -> tuple[Interval, ...]:
    """The stretches to send densely in, counted from the trigger; in order, apart."""
    app, trigger = scenario.app, scenario.trigger
    one_by_one = trigger is Trigger.EVACUATE_NODE and app.replicas > 1
    if one_by_one or trigger in (Trigger.ROLLOUT, Trigger.NAMESPACE_DELETE, Trigger.NONE):
        # When these end a pod is the cluster's affair; a control is looked at whole.
        return (Interval(-BEFORE_NS, scenario.observe_ns),)
    hook_ns = app.pre_stop.lasts_ns if app.pre_stop else 0
    grace_ns = app.grace_period_s * NS_PER_S
    sigterm_ns = sigterm_after(app.grace_period_s, hook_ns)
    # A hook that takes another time than meant moves the kill within this.
    killed_ns = max(grace_ns + MINIMUM_S * NS_PER_S, kill_after(app.grace_period_s, hook_ns))
    hears_ns = (scenario.cluster.min_sync_period_ms or 0) * NS_PER_MS
    after_ns = AFTER_NS + hears_ns
    begins = Interval(-BEFORE_NS, REPLACED_NS + scenario.replacement_ns + hears_ns)
    if trigger is Trigger.CONTAINER_KILL:
        return (begins,)  # it ends at once, and the kubelet starts it again
    if scenario.workload is not None:  # when it exits is not known, and replies tell of it
        return (Interval(-BEFORE_NS, killed_ns + after_ns),)
    stretches = [
        begins,
        Interval(sigterm_ns - BEFORE_NS, sigterm_ns + after_ns),
        Interval(grace_ns - BEFORE_NS, killed_ns + after_ns),
    ]
    if app.behavior is Behavior.DRAIN and app.pid1 is Pid1.PROBE:
        drained_ns = min(sigterm_ns + app.drain_ns, killed_ns)
        stretches.append(Interval(drained_ns - BEFORE_NS, drained_ns + after_ns))
    return merged(stretches)
