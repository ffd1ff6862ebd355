"""When the kubelet acts on a pod that is being deleted: its own rule, in arithmetic.

From `killContainer` and `executePreStopHook` (pkg/kubelet/kuberuntime), the same in
1.34 and 1.37:

- The preStop hook runs first, for at most the grace period. SIGTERM follows.
- Whole seconds of the hook are then taken off the grace period (a hook of 1.9 s costs
  one second), and what is left is raised to at least two. SIGKILL follows after that.
- The kubelet makes a grace period of 0 one of 1 before any of this.

So SIGKILL comes up to two seconds after the grace period, and never because a hook
"used up" more than that. All times here count from when the kubelet begins.
"""

from __future__ import annotations

from pytest_drainwatch.core.interval import NS_PER_S, Interval

MINIMUM_S = 2


def sigterm_after(grace_s: int, hook_ns: int) -> int:
    """From the kubelet's beginning to SIGTERM, for a hook that would take ``hook_ns``."""
    return min(hook_ns, max(grace_s, 1) * NS_PER_S)


def remaining_after(grace_s: int, hook_ns: int) -> int:
    """From SIGTERM to SIGKILL, for a hook that took ``hook_ns``."""
    return max(MINIMUM_S, grace_s - hook_ns // NS_PER_S) * NS_PER_S


def kill_after(grace_s: int, hook_ns: int) -> int:
    """From the kubelet's beginning to SIGKILL, for a hook that would take ``hook_ns``."""
    ran_ns = sigterm_after(grace_s, hook_ns)
    return ran_ns + remaining_after(grace_s, ran_ns)


def kill_within(grace_s: int, hook: Interval) -> Interval:
    """Bounds of :func:`kill_after` for a hook known within bounds.

    It rises with the hook, and falls back by a second at each whole one: its extremes
    lie at the ends, at whole seconds, and just before them.
    """
    last_ns = max(grace_s, 1) * NS_PER_S
    hook = Interval(min(hook.lo, last_ns), min(hook.hi, last_ns))
    # Both the lows at whole seconds and the highs before them rise: first and last suffice.
    first, last = -(-hook.lo // NS_PER_S), hook.hi // NS_PER_S
    steps = [second * NS_PER_S for second in (first, last) if first <= last]
    tried = [hook.lo, hook.hi, *steps, *(step - 1 for step in steps if step > hook.lo)]
    found = [kill_after(grace_s, ran_ns) for ran_ns in tried]
    return Interval(min(found), max(found))
