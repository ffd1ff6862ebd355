"""Checks of the cluster and of the deployed probe: the pods that we mean, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
UNPULLED = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"})
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


def pods_ready(
    pods: Objects, replicas: int, namespace: str, waited_ns: int, image: str | None = None
) -> Check:
    """Exactly the expected pods, each ready, none on its way out; or why ``image`` is not there."""
    states = [_pod_state(pod) for pod in pods.values()]
    unpulled = image_pulled(pods, image, namespace, waited_ns)
    if unpulled is not None:
        return unpulled
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
        look_at=f"kubectl -n {namespace} describe pods; the probe's image; the node's conditions"
        if pods
        else f"kubectl -n {namespace} describe replicasets,statefulsets,daemonsets: a quota or a "
        "policy may refuse the pods",
    )


def image_pulled(pods: Objects, image: str | None, namespace: str, waited_ns: int) -> Check | None:
    """What to say of an image that cannot be pulled; None where none is in the way.

    A registry may be out of reach for a moment, so a pull has STUBBORN_NS for another try.
    """
    final = HOPELESS & UNPULLED if waited_ns <= STUBBORN_NS else UNPULLED
    stuck = [
        f"{pod.get('name')}: {container.get('reason')}"
        for pod in pods.values()
        for container in _containers(pod)
        if container.get("reason") in final
    ]
    if not stuck:
        return None
    return Check(
        name="image-pulled",
        invariant="the nodes can pull the image of every pod",
        expected=f"{image or 'the image'} is there, and may be pulled",
        observed="; ".join(sorted(stuck)),
        passed=False,
        hopeless=True,
        look_at=f"kubectl -n {namespace} get events --field-selector reason=Failed; push the image "
        "and name it with --dw-probe-image REF; a registry that asks who pulls: --dw-namespace "
        "NAME --dw-pull-secret NAME",
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


def ready_in(slices: Objects) -> set[str]:
    """The UIDs of the pods that any slice lists as ready."""
    return {
        str(endpoint.get("uid"))
        for item in slices.values()
        for endpoint in objects(item.get("endpoints"))
        if endpoint.get("ready") is True
    }


@dataclass(slots=True)
class EndpointStability:
    """How long every pod's endpoint has been ready without a break."""

    hold_ns: int
    since_ns: int | None = None

    def check(self, slices: Objects, uids: Iterable[str], now_ns: int, namespace: str) -> Check:
        """Look at the slices as they are at ``now_ns``."""
        wanted, ready = set(uids), ready_in(slices)
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
        if strangers := len(ready - wanted):
            observed += f"; and {strangers} pod(s) beside them that are not the workload's"
        return Check(
            name="service-endpoint-stable",
            invariant="the Service's EndpointSlice lists this very pod (by UID) as ready, unbroken",
            expected=f"ready for at least {self.hold_ns // NS_PER_MS} ms (2 x minSyncPeriod)",
            observed=observed,
            passed=not missing and held >= self.hold_ns,
            look_at=f"kubectl -n {namespace} get endpointslices -o yaml; the Service's selector",
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
