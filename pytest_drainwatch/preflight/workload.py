"""Checks of the cluster and of the deployed probe: the pods that we mean, and no others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.jsonvalue import objects, texts
from pytest_drainwatch.preflight.check import Check

Objects = Mapping[str, Mapping[str, object]]

# Waiting does not mend these; every other waiting reason may pass.
HOPELESS = frozenset(
    {"ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}
)
STUBBORN = frozenset({"ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff", "RunContainerError"})
STUBBORN_NS = 15_000 * NS_PER_MS


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


def budgets_clear(
    selecting: Mapping[str, Collection[str]],
    idle: Collection[str],
    problem: str | None,
    namespace: str,
) -> Check:
    """No pod that is to be evicted is selected by several disruption budgets (case C32).

    ``selecting`` are the budgets that select each of those pods, by the pod's name; ``idle``
    are those that select no pod at all. One that blocks is for the eviction to find out;
    several are an error that waiting does not mend: the API server refuses with 500 (K10).
    """
    crowded = {pod: sorted(names) for pod, names in selecting.items() if len(names) > 1}
    blocked = [
        f"blocked: misconfigured, {len(names)} budgets select this pod: {pod} ({', '.join(names)})"
        for pod, names in sorted(crowded.items())
    ]
    counted = [
        f"{pod}: {', '.join(sorted(names)) or 'no budget'}"
        for pod, names in sorted(selecting.items())
        if pod not in crowded
    ]
    unused = [f"budget {name} selects no pod" for name in sorted(idle)]
    unknown = [f"not known, and the eviction will tell: {problem}"] if problem else []
    return Check(
        name="disruption-budgets",
        invariant="at most one PodDisruptionBudget selects each pod that is to be evicted",
        expected="none or one for each pod, and none that selects no pod",
        observed="; ".join([*blocked, *counted, *unused, *unknown]),
        passed=not crowded,
        hopeless=bool(crowded),
        look_at=f"kubectl -n {namespace} get poddisruptionbudgets -o yaml",
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
