"""Checks of a workload that is there already: can it be attached to, and through what?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from pytest_drainwatch.core.scenario import Controller, Http, Workload
from pytest_drainwatch.preflight.check import Check

READY = "ready"
# What a controller puts on the pods of one revision: a Service that selects it leads to no other.
OF_A_REVISION = frozenset({"pod-template-hash", "controller-revision-hash"})

Objects = Mapping[str, Mapping[str, object]]


class SeenPort(Protocol):
    """A port of a Service."""

    @property
    def name(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def protocol(self) -> str: ...


class SeenService(Protocol):
    """What these checks need of a Service."""

    @property
    def name(self) -> str: ...
    @property
    def selector(self) -> Mapping[str, str]: ...
    @property
    def ports(self) -> Sequence[SeenPort]: ...

    def selects(self, labels: Mapping[str, str]) -> bool: ...


def workload_found(
    asked: Workload, *, found: bool, owners: Sequence[str], there: Sequence[str]
) -> Check:
    """The workload exists, and it is one."""
    if not found:
        observed = f"none; there are: {', '.join(there) or 'no workloads at all'}"
    elif len(owners) > 1:
        observed = f"the labels select pods of {len(owners)}: {', '.join(owners)}"
    else:
        observed = "found"
    wanted = "deployments,statefulsets,daemonsets" if asked.kind else "pods --show-labels"
    return Check(
        name="workload-found",
        invariant=f"{asked.what} exists in namespace {asked.namespace}, and is one workload",
        expected=asked.what,
        observed=observed,
        passed=found and len(owners) <= 1,
        look_at=f"kubectl -n {asked.namespace} get {wanted}",
    )


def typed(asked: Workload) -> str:
    """As kubectl is told of it: ``deployment/NAME``, or pods by their labels."""
    return asked.what if asked.kind else f"pods -l {asked.labels}"


def workload_wanted(
    asked: Workload, replicas: int, kind: Controller | None = None, name: str = ""
) -> Check:
    """Somebody wants it to have pods; ``kind`` and ``name`` are its controller's."""
    mine = f"kubectl -n {asked.namespace}"
    if kind is Controller.DAEMON_SET:
        look_at = f"{mine} get daemonset/{name} -o wide; kubectl get nodes --show-labels"
    elif kind is None:
        look_at = f"{mine} get {typed(asked)}"
    else:
        look_at = f"{mine} scale {kind}/{name} --replicas=1"
    return Check(
        name="workload-has-replicas",
        invariant=f"{asked.what} is meant to have a pod or more",
        expected="1 replica or more",
        observed=f"{replicas} replicas",
        passed=replicas > 0,
        look_at=look_at,
    )


def service_found(
    asked: Workload, services: Sequence[SeenService], labels: Mapping[str, str]
) -> Check:
    """One Service leads to the workload's pods, and has the port that was asked for."""
    fitting = [each for each in services if fits(asked, each, labels)]
    name, selecting = asked.namespace, [each for each in services if each.selects(labels)]
    port = f"a {asked.transport} port" + (f" {asked.port}" if asked.port is not None else "")
    look_at = f"kubectl -n {name} get services -o wide; {_expose(asked, labels)}"
    named = next((each for each in services if each.name == asked.service), None)
    if asked.service is not None and named is None:
        observed = f"no Service {asked.service}; there are: {_names(services)}"
    elif named is not None and not named.selector:
        observed = f"Service {named.name} has no selector: it leads to no pods of its own accord"
        look_at = f"kubectl -n {name} set selector service {named.name} '{_selecting(labels)}'"
    elif named is not None and not named.selects(labels):
        observed = f"Service {named.name} selects {_labels(named.selector)}: not these pods"
    elif not selecting:
        bare = [each.name for each in services if not each.selector and each.name != "kubernetes"]
        without = f"; without a selector: {', '.join(bare)}" if bare else ""
        observed = f"no Service selects the pods; there are: {_names(services)}{without}"
    elif not fitting:
        among = [named] if named is not None else selecting
        observed = "; ".join(f"{each.name} has the ports {_ports(each.ports)}" for each in among)
        look_at = f"kubectl -n {name} get services; another --port, or --protocol"
    elif len(fitting) > 1:
        observed = f"{len(fitting)} Services fit: {_names(fitting)}"
        look_at = f"choose one with --service (--dw-attach-service): {_names(fitting)}"
    else:
        several = ports_of(asked, fitting[0])
        observed = f"Service {fitting[0].name}, port {_ports(several)}"
        if len(several) > 1:
            look_at = f"choose one with --port (--dw-attach-port): {_ports(several)}"
    one = len(fitting) == 1 and len(ports_of(asked, fitting[0])) == 1
    return Check(
        name="service-found",
        invariant=f"one Service of namespace {name} selects the pods of {asked.what} and has "
        f"{port}",
        expected=f"one Service with a selector that matches, and {port}",
        observed=observed,
        passed=one,
        look_at=look_at,
    )


def fits(asked: Workload, service: SeenService, labels: Mapping[str, str]) -> bool:
    """Whether a Service may be the one that is meant."""
    if asked.service is not None and service.name != asked.service:
        return False
    return service.selects(labels) and bool(ports_of(asked, service))


def ports_of(asked: Workload, service: SeenService) -> list[SeenPort]:
    """The ports of a Service that may be meant."""
    return [
        port
        for port in service.ports
        if port.protocol == asked.transport and asked.port in (None, port.number, port.name)
    ]


def pods_settled(asked: Workload, pods: Objects, replicas: int, unsettled: str | None) -> Check:
    """All pods that the workload is meant to have are ready, and no others are there."""
    states = [f"{pod.get('name')} {_state(pod)}" for pod in pods.values()]
    ready = sum(_state(pod) == READY for pod in pods.values())
    mine = f"kubectl -n {asked.namespace}"
    return Check(
        name="workload-pods-ready",
        invariant=f"{asked.what} has as many pods as it wants, all of them ready, and none on "
        "its way out",
        expected=f"{replicas} ready pod(s), none terminating, no rollout under way",
        observed="; ".join([f"{ready} ready of {len(states)}", *sorted(states)])
        + (f"; {unsettled}" if unsettled else ""),
        passed=ready == len(states) == replicas and unsettled is None,
        look_at=f"{mine} describe pods; {mine} "
        + (f"rollout status {asked.what}" if asked.kind else f"get {typed(asked)}"),
    )


def address_reachable(where: str, problem: str | None, look_at: str) -> Check:
    """Somebody accepts connections there, from where the flows will come."""
    return Check(
        name="address-reachable",
        invariant=f"the Service accepts a connection at {where}, from where the flows come",
        expected="a connection",
        observed=problem or "a connection",
        passed=problem is None,
        look_at=look_at,
    )


def target_reached(affinity: str, pods: int, going: int, strangers: int = 0) -> Check:
    """Some flow may lead to a pod that will end.

    With session affinity all of a client's lead to one pod, and of a workload that does not say
    who answers nobody knows to which. The Service may lead to ``strangers`` too.
    """
    pinned = affinity != "None" and going < pods + strangers
    beside = f", and the Service leads to {strangers} that are not its own" if strangers else ""
    return Check(
        name="target-reached",
        invariant="flows can be expected to lead to a pod that will be terminated",
        expected="session affinity None, or a trigger that ends every pod",
        observed=f"session affinity {affinity}, and {going} of {pods} pods will be terminated"
        + beside,
        passed=not pinned,
        look_at="--service with one that selects these pods alone"
        if strangers
        else "--trigger rollout, or --targets with as many as there are",
    )


class SeenRequests(Protocol):
    """What the check of HTTP requests needs to know of them."""

    @property
    def lanes(self) -> int: ...
    @property
    def ready(self) -> int: ...
    @property
    def identified(self) -> int | None: ...
    @property
    def problem(self) -> str | None: ...


def requests_answered(wanted: Http, seen: SeenRequests | None, error: str | None) -> Check:
    """A client that was never answered as it should be measures nothing."""
    lanes, header = wanted.lanes, wanted.identity_header
    ready = seen.ready if seen else 0
    named = lanes if header is None else (seen.identified or 0) if seen else 0
    told = f"{ready} of {lanes} clients were answered so"
    if header is not None:
        told += f", {named} of them with {header}"
    if seen is not None and seen.problem:
        told += f"; the last that was not: {seen.problem}"
    return Check(
        name="requests-answered",
        invariant=f"every HTTP client is answered with status {wanted.expect_status}"
        + (f" and the header {header}" if header else "")
        + " over the path that is measured",
        expected=f"{lanes} of {lanes} clients",
        observed=error or told,
        passed=error is None and ready >= lanes and named >= lanes,
        hopeless=error is not None,
        look_at=f"curl -i http://ADDRESS:PORT{wanted.path.partition('?')[0]}; another path, host "
        "or expect_status in Http(...)",
    )


def _state(pod: Mapping[str, object]) -> str:
    if pod.get("deletion_timestamp"):
        return "terminating"
    return READY if pod.get("ready") is True else "not ready"


def _names(services: Iterable[SeenService]) -> str:
    return ", ".join(each.name for each in services if each.name != "kubernetes") or "none"


def _labels(selector: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


def _selecting(labels: Mapping[str, str]) -> str:
    """A selector of pods with these labels, of whatever revision they are."""
    kept = {key: value for key, value in labels.items() if key not in OF_A_REVISION}
    return _labels(kept) or "KEY=VALUE"


def _expose(asked: Workload, labels: Mapping[str, str]) -> str:
    """The command that puts a Service before it. kubectl exposes Deployments and pods alone."""
    mine, selector = f"kubectl -n {asked.namespace}", _selecting(labels)
    port = asked.port if isinstance(asked.port, int) else "PORT"
    about = f"--type=NodePort --port={port} --protocol={asked.transport.upper()}"
    if asked.kind is Controller.DEPLOYMENT:
        about += f" --name={asked.service}" if asked.service else ""
        return f"{mine} expose {asked.what} {about}"
    one = f"$({mine} get pods -l '{selector}' -o name | head -n 1)"
    name = asked.service or asked.name or "NAME"
    return f"{mine} expose {one} --name={name} --selector='{selector}' {about}"


def _ports(ports: Iterable[SeenPort]) -> str:
    return ", ".join(str(port) for port in ports) or "none"
