"""The checks that stand between a deployed probe and a measurement.

Each has a name, the invariant, what was observed, what was expected and what to
look at. The first that does not hold in time makes the trial void: a broken
harness must not be able to yield a report.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.jsonvalue import integer, objects, texts
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import Flows

Record = Callable[[Observation], None]
Objects = Mapping[str, Mapping[str, object]]

# Waiting does not mend these; every other waiting reason may pass.
HOPELESS = frozenset(
    {"ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}
)
STUBBORN = frozenset({"ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff", "RunContainerError"})
STUBBORN_NS = 15_000 * NS_PER_MS
MIN_UDP_ANSWERS = 60
DESCRIPTOR_RESERVE = 64


class TrialVoid(Exception):
    """The harness could not measure. In a fixture's setup this is pytest's ERROR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant, and how it stands."""

    name: str
    invariant: str
    expected: str
    observed: str
    passed: bool
    look_at: str
    hopeless: bool = False

    def __str__(self) -> str:
        return (
            f"preflight check '{self.name}' failed\n"
            f"  invariant: {self.invariant}\n"
            f"  observed:  {self.observed}\n"
            f"  expected:  {self.expected}\n"
            f"  look at:   {self.look_at}"
        )


def require(
    check: Callable[[], Check],
    record: Record,
    *,
    timeout_s: float,
    wait: Callable[[float], None] = time.sleep,
    alive: Callable[[], None] = lambda: None,
) -> Check:
    """Look until the check passes, cannot pass, or time is up; record how it ended.

    ``alive`` raises if waiting has become pointless. Raises :class:`TrialVoid` with
    the check's text.
    """
    started = time.monotonic_ns()
    deadline = time.monotonic() + timeout_s
    while True:
        found = check()
        if found.passed or found.hopeless or time.monotonic() >= deadline:
            break
        alive()
        wait(0.1)
    record(
        Observation(
            source=Source.ORCHESTRATOR,
            event=Event.PREFLIGHT_CHECK,
            at=Interval(started, time.monotonic_ns()),
            data={
                "name": found.name,
                "passed": found.passed,
                "invariant": found.invariant,
                "observed": found.observed,
                "expected": found.expected,
                "look_at": found.look_at,
            },
        )
    )
    if not found.passed:
        raise TrialVoid(str(found))
    return found


def version_readable(facts: Mapping[str, object]) -> Check:
    """A report that does not know its Kubernetes version is worth nothing."""
    version, told = facts.get("kubernetes_version"), texts(facts.get("warnings"))
    why = next((warning for warning in told if "Kubernetes version" in warning), "no answer")
    return Check(
        name="kubernetes-version-readable",
        invariant="the API server tells its version",
        expected="GET /version answers",
        observed=why if version is None else str(version),
        passed=version is not None,
        look_at="kubectl version; the kubeconfig's server and credentials",
    )


def watches_delivering(delivering: Mapping[str, bool], namespace: str) -> Check:
    """A watch that delivers nothing would make every cluster event 'not seen'."""
    silent = sorted(name for name, alive in delivering.items() if not alive)
    return Check(
        name="watches-delivering",
        invariant="the watches of Pods and EndpointSlices have listed and shown an object each",
        expected="both watches deliver",
        observed=f"nothing from: {', '.join(silent)}" if silent else "both deliver",
        passed=not silent,
        look_at=f"kubectl -n {namespace} auth can-i watch pods,endpointslices; the API server",
    )


def pods_ready(pods: Objects, replicas: int, namespace: str, waited_ns: int) -> Check:
    """Exactly the expected pods, each ready, none on its way out."""
    states = [_pod_state(pod) for pod in pods.values()]
    waiting = [str(c.get("reason")) for pod in pods.values() for c in _containers(pod)]
    hopeless = any(reason in HOPELESS for reason in waiting) or (
        waited_ns > STUBBORN_NS and any(reason in STUBBORN for reason in waiting)
    )
    passed = len(pods) == replicas and all(state.endswith(" ready") for state in states)
    return Check(
        name="probe-pods-ready",
        invariant="exactly the pods of this trial's probe exist, and each is ready",
        expected=f"{replicas} pod(s), all ready, none terminating",
        observed="; ".join(sorted(states)) or "no pod",
        passed=passed,
        hopeless=hopeless,
        look_at=f"kubectl -n {namespace} describe pods; the probe's image; the node's conditions",
    )


def logs_followed(
    followed: Mapping[str, bool], problems: Iterable[str], *, hopeless: bool
) -> Check:
    """Without the probe's log nobody knows when SIGTERM reached it."""
    silent = sorted(pod for pod, started in followed.items() if not started)
    found = "; ".join(problems)
    return Check(
        name="probe-log-followed",
        invariant="the log of every target pod is followed, from its first line on",
        expected="a probe_started line from each",
        observed=f"nothing from {', '.join(silent)}{f' ({found})' if found else ''}"
        if silent
        else "a probe_started line from each",
        passed=not silent,
        hopeless=hopeless,
        look_at="kubectl auth can-i get pods/log; kubectl logs of the pod; the probe's image",
    )


@dataclass(slots=True)
class EndpointStability:
    """How long every pod's endpoint has been ready without a break."""

    hold_ns: int
    since_ns: int | None = None

    def check(self, slices: Objects, uids: Iterable[str], now_ns: int, namespace: str) -> Check:
        """Look at the slices as they are at ``now_ns``."""
        wanted = set(uids)
        ready = {
            str(endpoint.get("uid"))
            for item in slices.values()
            for endpoint in objects(item.get("endpoints"))
            if endpoint.get("ready") is True
        }
        if not wanted <= ready:
            self.since_ns = None
        elif self.since_ns is None:
            self.since_ns = now_ns
        held = 0 if self.since_ns is None else now_ns - self.since_ns
        missing = sorted(wanted - ready)
        observed = (
            f"not ready in any slice: {', '.join(missing)}; ready there: "
            f"{', '.join(sorted(ready)) or 'nobody'}"
            if missing
            else f"ready without a break for {held // NS_PER_MS} ms"
        )
        return Check(
            name="service-endpoint-stable",
            invariant="the Service's EndpointSlice lists this very pod (by UID) as ready, unbroken",
            expected=f"ready for at least {self.hold_ns // NS_PER_MS} ms (2 x minSyncPeriod)",
            observed=observed,
            passed=not missing and held >= self.hold_ns,
            look_at=f"kubectl -n {namespace} get endpointslices -o yaml; the Service's selector",
        )


def limits_suffice(flows: int) -> Check:
    """Descriptors and source ports for every flow."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = flows + DESCRIPTOR_RESERVE
    ports = _source_ports()
    short = []
    if hard != resource.RLIM_INFINITY and hard < needed:
        short.append(f"hard limit of open files is {hard}")
    if ports is not None and ports < flows:
        short.append(f"{ports} source ports (net.ipv4.ip_local_port_range)")
    return Check(
        name="client-limits-suffice",
        invariant="this machine can hold the flows that were asked for",
        expected=f"{needed} descriptors and {flows} source ports",
        observed="; ".join(short) or "enough of both",
        passed=not short,
        hopeless=bool(short),
        look_at="ulimit -Hn; sysctl net.ipv4.ip_local_port_range; fewer --dw-tcp-flows",
    )


class ProtoCounts(Protocol):
    """What the flow checks need to know of one transport.

    How many flows are *wanted* is never taken from here: an agent that has not
    said anything yet wants none, and would pass every check.
    """

    @property
    def dialled(self) -> int: ...
    @property
    def answered(self) -> int: ...
    @property
    def on_target(self) -> int: ...
    @property
    def min_answers(self) -> int: ...


PATH = "the Service's node ports; kube-proxy's log; the probe's log; the pod's IP from the node"


def flows_dialled(wanted: Flows, tcp: ProtoCounts, udp: ProtoCounts, error: str | None) -> Check:
    """As many flows as asked for exist, and lead to the target."""
    return Check(
        name="flows-dialled",
        invariant="every flow is connected and, once answered, answered by the target",
        expected=f"{wanted.tcp} tcp and {wanted.udp} udp flows on the target",
        observed=error
        or f"on the target: {tcp.on_target} tcp, {udp.on_target} udp; "
        f"dialled: {tcp.dialled} tcp, {udp.dialled} udp",
        passed=error is None and tcp.on_target >= wanted.tcp and udp.on_target >= wanted.udp,
        hopeless=error is not None,
        look_at=PATH,
    )


def tcp_answered(wanted: Flows, tcp: ProtoCounts, error: str | None) -> Check:
    """A TCP flow that was never served measures nothing."""
    return Check(
        name="tcp-flows-answered",
        invariant="every TCP flow is answered over the path that is measured",
        expected=f"{wanted.tcp} of {wanted.tcp}",
        observed=error or f"{tcp.answered} of {tcp.dialled} dialled",
        passed=error is None and tcp.answered >= max(tcp.dialled, wanted.tcp),
        hopeless=error is not None,
        look_at=PATH,
    )


def udp_answered(wanted: Flows, udp: ProtoCounts, error: str | None) -> Check:
    """Some paths carry a few dozen datagrams and then stop: one answer proves nothing."""
    enough = wanted.udp == 0 or udp.min_answers >= MIN_UDP_ANSWERS
    return Check(
        name="udp-flows-answered",
        invariant=f"every UDP flow is answered at least {MIN_UDP_ANSWERS} times over the path "
        "that is measured",
        expected=f"{MIN_UDP_ANSWERS} answers on each of {wanted.udp} flows",
        observed=error
        or f"{udp.answered} of {udp.dialled} flows answered, the least often "
        f"{udp.min_answers} times",
        passed=error is None and udp.answered >= max(udp.dialled, wanted.udp) and enough,
        hopeless=error is not None,
        look_at=PATH + "; a port mapping that drops UDP",
    )


def one_way_received(wanted: Flows, seen: Iterable[Observation], error: str | None) -> Check:
    """Nobody answers a one-way flow: only a pod's log shows that it gets there."""
    rows = [r for o in seen if o.event is Event.UDP_RECEIVED for r in objects(o.data.get("flows"))]
    often = {str(row.get("flow")): integer(row.get("count")) for row in rows}
    enough = sum(1 for count in often.values() if count >= MIN_UDP_ANSWERS)
    return Check(
        name="one-way-flows-received",
        invariant=f"pods tell of at least {MIN_UDP_ANSWERS} datagrams of every one-way UDP flow",
        expected=f"{wanted.udp_one_way} flows received",
        observed=error or f"{enough} flows received so often, {len(often)} at all",
        passed=error is None and enough >= wanted.udp_one_way,
        hopeless=error is not None,
        look_at=PATH + "; the pods' logs: udp_received",
    )


def clock_identified(clocks: Iterable[str], error: str | None) -> Check:
    """Without the probe's clock its stamps could not be placed in time."""
    known = sorted(set(clocks))
    return Check(
        name="clock-identified",
        invariant="the probe names the clock that it stamps with (boot id and time namespace)",
        expected="a clock id",
        observed=error or ", ".join(known) or "none",
        passed=error is None and bool(known),
        hopeless=error is not None,
        look_at="the probe image's version; /proc/sys/kernel/random/boot_id in the pod",
    )


def _pod_state(pod: Mapping[str, object]) -> str:
    name = pod.get("name")
    if pod.get("deletion_timestamp"):
        return f"{name} terminating"
    if pod.get("ready") is True:
        return f"{name} ready"
    reasons = [str(c.get("reason")) for c in _containers(pod) if c.get("reason")]
    return f"{name} {pod.get('phase')}" + (f" ({', '.join(reasons)})" if reasons else "")


def _containers(pod: Mapping[str, object]) -> list[Mapping[str, object]]:
    return objects(pod.get("containers"))


def _source_ports() -> int | None:
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    except (OSError, ValueError):
        return None
    return int(high) - int(low) + 1
