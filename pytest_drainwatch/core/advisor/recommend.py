"""preStop and grace as numbers, each with its reasons; what is not known stays not known.

The hook lasts as long as somebody is still sent to the pod. The grace period holds the hook,
everything that the application does after it, and a reserve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_drainwatch.core.advisor.annotations import balancer_of
from pytest_drainwatch.core.advisor.balancers import CHECKS_FAIL_EARLY
from pytest_drainwatch.core.advisor.checks.times import CLOSE_CALL_NS
from pytest_drainwatch.core.advisor.hook import lasts
from pytest_drainwatch.core.advisor.roles import application, takes_traffic
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.core.advisor.snippet import snippet
from pytest_drainwatch.core.advisor.subject import Container, Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import NS_PER_S, whole_seconds
from pytest_drainwatch.core.pod.kubelet import MINIMUM_S

# Where nobody says a reserve. SIGTERM is handled late on a busy node, the kubelet counts in
# whole seconds, and what closes and flushes takes a moment.
RESERVE_NS = 5 * NS_PER_S
# One more than what the kubelet makes of less.
LEAST_LEFT_S = MINIMUM_S + 1
# Nobody waits longer for a pod to end.
LONGEST_HOOK_NS = 24 * 3600 * NS_PER_S
_PERIOD, _TTL = "--resolve-period", "--dns-ttl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A summand or a bound: what it is, how much, why, and what would break it."""

    name: str
    ns: int
    because: str
    breaks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """What to write. None: not known, and ``missing`` says what would be needed.

    ``routes`` are the bounds of which the longest decides the hook; ``parts`` add up to the
    grace period, unless a balancer needs more (``outlives``). ``uncovered`` are ways to the pods
    that may need a longer hook, and of which that is not known.
    """

    pre_stop_s: int | None
    grace_s: int | None
    routes: tuple[Line, ...]
    parts: tuple[Line, ...]
    outlives: Line | None
    missing: tuple[str, ...]
    uncovered: tuple[str, ...]
    snippet: str | None


def recommend(subject: Subject, told: Told) -> Recommendation:
    """The numbers for the application of ``subject``."""
    container = application(subject)
    reached = takes_traffic(subject) and subject.kind != "Job"
    routes = tuple(_routes(subject, told)) if reached else ()
    unknown = tuple(_unknown(subject, told)) if reached else ()
    uncovered = tuple(each for each, vital in unknown if not vital)
    missing = [each for each, vital in unknown if vital]
    hook_ns: int | None = None
    if not missing:
        if routes:
            hook_ns = max(0, max(line.ns for line in routes) - (told.wait_ns or 0))
        elif reached:
            missing.append("how long routes need to change: --propagation, --lb or --from RESULTS")
        else:
            hook_ns = 0
    drain = _drain(told)
    if drain is None:
        missing.append(
            "how long the application drains: --drain, --longest-request or --from RESULTS"
        )
    missing.extend(_endless(subject, container))
    if hook_ns is None or drain is None or missing:
        return Recommendation(
            pre_stop_s=None if hook_ns is None else whole_seconds(hook_ns),
            grace_s=None,
            routes=routes,
            parts=(),
            outlives=None,
            missing=tuple(missing),
            uncovered=uncovered,
            snippet=None,
        )
    pre_stop_s = whole_seconds(hook_ns)
    parts = [
        Line(
            name="preStop hook",
            ns=pre_stop_s * NS_PER_S,
            because="the longest of the routes above, in whole seconds"
            if routes
            else "nobody is seen to connect to it",
        ),
        *_after_sigterm(
            drain, told, [each.name for each in subject.containers if each.native_sidecar]
        ),
    ]
    parts.extend(_minimum(subject, container, parts))
    outlives = _outlives(subject, told)
    needed_ns = max(sum(line.ns for line in parts), outlives.ns if outlives else 0)
    grace_s = whole_seconds(needed_ns)
    return Recommendation(
        pre_stop_s=pre_stop_s,
        grace_s=grace_s,
        routes=routes,
        parts=tuple(parts),
        outlives=outlives,
        missing=(),
        uncovered=uncovered,
        snippet=snippet(subject, container, told, pre_stop_s, grace_s),
    )


def _routes(subject: Subject, told: Told) -> Iterator[Line]:
    """For how long somebody is still sent to the pod, by who sends."""
    if told.propagation_ns is not None:
        yield Line(
            name="routes in the cluster",
            ns=told.propagation_ns,
            because=told.propagation_source or "--propagation",
            breaks="a slower or busier node, more endpoints, another kube-proxy minSyncPeriod",
        )
    balancer = balancer_of(subject, told)
    known = balancer.sends_for if balancer is not None else None
    if balancer is not None and known is not None:
        yield Line(
            name=str(balancer.kind),
            ns=known[0],
            because=" + ".join(
                f"{seconds(each.value)} ({'assumed, ' if each.assumed else ''}{each.origin})"
                for each in known[1]
            )
            + (f"; right only if {CHECKS_FAIL_EARLY}" if balancer.by_health_checks else ""),
            breaks="another balancer, or a slower controller",
        )
    stale = _stale(told)
    if stale and (_headless(subject) or not subject.services):
        yield Line(
            name="DNS",
            # It must be over before the hook is.
            ns=sum(ns for _, ns in stale) + NS_PER_S,
            because=f"{' + '.join(f'{flag} {seconds(ns)}' for flag, ns in stale)} + 1 s",
            breaks="a cache between, or a client that asks more rarely",
        )


def _unknown(subject: Subject, told: Told) -> Iterator[tuple[str, bool]]:
    """Ways to the pods of which nothing is known; True: without it no number means anything."""
    balancer = balancer_of(subject, told)
    if balancer is not None and balancer.sends_for is None:
        yield (
            f"how long {balancer.kind} still sends to a pod that ends: --lb-lag and --lb-spread, "
            "or --lb custom with --lb-health-interval and --lb-health-threshold",
            True,
        )
    elif balancer is not None and told.propagation_ns is None:
        yield (
            "clients inside of the cluster, and node ports: --propagation or --from RESULTS",
            False,
        )
    told_of = {flag for flag, _ in _stale(told)}
    untold = [flag for flag in (_PERIOD, _TTL) if flag not in told_of]
    if untold and (_headless(subject) or (told_of and not subject.services)):
        only = all(each.headless for each in subject.services)
        yield f"how old the addresses of its clients get: {' and '.join(untold)}", only


def _headless(subject: Subject) -> bool:
    return any(each.headless for each in subject.services)


def _stale(told: Told) -> list[tuple[str, int]]:
    """What is told of DNS, by the option that says it."""
    both = ((_PERIOD, told.resolve_period_ns), (_TTL, told.dns_ttl_ns))
    return [(flag, ns) for flag, ns in both if ns is not None]


def _drain(told: Told) -> Line | None:
    longest, drain = told.longest_request_ns, told.drained_ns
    because = "--drain" if told.drain_ns is not None else told.shutdown_source or ""
    if longest is not None and (drain is None or longest > drain):
        over = "" if drain is None else f", longer than the drain of {seconds(drain)}"
        return Line(
            name="drain",
            ns=longest,
            because=f"--longest-request {seconds(longest)}{over}: the application's own timeout "
            "must be as long",
            breaks="a request that takes longer",
        )
    if drain is None:
        return None
    return Line(name="drain", ns=drain, because=because, breaks="a request that takes longer")


def _endless(subject: Subject, main: Container) -> Iterator[str]:
    """Hooks of other containers that no grace period holds."""
    for container in subject.containers:
        ns = lasts(container.pre_stop).ns
        if container is not main and ns is not None and ns > LONGEST_HOOK_NS:
            yield f"a preStop hook of {container.name} that ends: this one takes over a day"


def _minimum(subject: Subject, main: Container, parts: list[Line]) -> Iterator[Line]:
    """What must be left after every hook; those of the other containers run beside ours."""
    hooks = {
        each.name: lasts(each.pre_stop).ns or 0 for each in subject.containers if each is not main
    }
    name = max(hooks, key=lambda each: hooks[each], default="")
    other_ns, own_ns = hooks.get(name, 0), parts[0].ns
    whose = "the hook" if own_ns >= other_ns else f"{name}'s own hook of {seconds(other_ns)}"
    longest_ns = max(other_ns, own_ns)
    # The last part is the reserve: in it a native sidecar ends.
    ends_ns = sum(line.ns for line in parts[:-1])
    if ends_ns > longest_ns and any(each.native_sidecar for each in subject.containers):
        whose, longest_ns = f"the end of {main.name}, for native sidecars", ends_ns
    short_ns = longest_ns + LEAST_LEFT_S * NS_PER_S - sum(line.ns for line in parts)
    if short_ns <= 0:
        return
    yield Line(
        name="minimum",
        ns=short_ns,
        because=f"at least {LEAST_LEFT_S} s after {whose}: the kubelet makes 2 s of less",
    )


def _after_sigterm(drain: Line, told: Told, sidecars: list[str]) -> Iterator[Line]:
    if told.wait_ns:
        yield Line(name="application's wait", ns=told.wait_ns, because="--wait")
    yield drain
    for name, ns in (("close", told.close_ns), ("flush", told.flush_ns)):
        if ns is not None:
            yield Line(name=name, ns=ns, because=f"--{name}")
    told_ns = drain.ns + sum(ns or 0 for ns in (told.wait_ns, told.close_ns, told.flush_ns))
    if told.shutdown_ns is not None and told.shutdown_ns > told_ns:
        yield Line(
            name="measured on top",
            ns=told.shutdown_ns - told_ns,
            because=told.shutdown_source or "",
        )
    untold = [
        name
        for name, ns in (("close", told.close_ns), ("flush", told.flush_ns))
        if ns is None and told.shutdown_ns is None
    ]
    covers = f"; it must cover {' and '.join(untold)} too, not told" if untold else ""
    if sidecars:
        covers += (
            f"; {' and '.join(sidecars)} (native sidecars) get SIGTERM only now, and end in it too"
        )
    if told.reserve_ns is not None:
        least_ns = max(told.reserve_ns, CLOSE_CALL_NS)
        more = "" if least_ns == told.reserve_ns else ", raised to what may come in either order"
        yield Line(name="reserve", ns=least_ns, because=f"--reserve{more}{covers}")
    else:
        yield Line(
            name="reserve",
            ns=RESERVE_NS,
            because=f"assumed: SIGTERM is handled late, the kubelet counts whole seconds{covers}",
            breaks="a node so busy that signals wait longer",
        )


def _outlives(subject: Subject, told: Told) -> Line | None:
    balancer = balancer_of(subject, told)
    drained = balancer.drained_ns if balancer is not None else None
    if balancer is None or balancer.delay is None or drained is None:
        return None
    return Line(
        name=f"{balancer.kind} drained",
        ns=drained[1],
        because=f"its draining ends in the mean after {seconds(drained[0])}, at worst after "
        f"{seconds(drained[1])}: the pod outlives it",
        breaks="another delay",
    )
