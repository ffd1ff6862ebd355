"""Objects of a workload of the user's, reduced to the fields that matter when its pods end (pure).

A pod's spec holds environment, arguments and annotations, which may be secrets: none of them
is kept, nor a path or a command of a probe or a hook.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_drainwatch.core.jsonvalue import integer

NOT_RECORDED = "(not recorded)"
DEFAULT_GRACE_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """What matters of a container when it ends."""

    name: str
    pre_stop: Mapping[str, object] | None
    stop_signal: str | None
    readiness: Mapping[str, object] | None
    ports: tuple[Mapping[str, object], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSpec:
    """What matters of a pod when it ends."""

    grace_period_s: int
    containers: tuple[ContainerSpec, ...]

    def told(self) -> dict[str, object]:
        """As a recording holds it."""
        return {
            "grace_period_s": self.grace_period_s,
            "containers": [
                {name: getattr(each, name) for name in ContainerSpec.__slots__}
                for each in self.containers
            ],
        }

    @property
    def pre_stop(self) -> Mapping[str, object] | None:
        """The hook of the containers that have one; the longest one's, as far as that is known."""
        hooks = [each.pre_stop for each in self.containers if each.pre_stop]
        return max(hooks, key=lambda hook: integer(hook.get("sleep_seconds")), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port of a Service; ``target`` is the container's, by number or name."""

    name: str
    number: int
    protocol: str
    target: int | str
    node_port: int | None

    def __str__(self) -> str:
        named = f"{self.name}:" if self.name else ""
        return f"{named}{self.number}/{self.protocol}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """A Service. ``ingress`` are the load balancer's addresses or names."""

    name: str
    kind: str
    cluster_ip: str | None
    selector: Mapping[str, str]
    ports: tuple[Port, ...]
    ingress: tuple[str, ...]
    external_traffic_policy: str | None
    session_affinity: str
    publish_not_ready: bool

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether it leads to pods with these labels; without a selector it leads nowhere."""
        wanted = self.selector.items()
        return bool(wanted) and all(labels.get(key) == value for key, value in wanted)


def service_facts(item: Mapping[str, Any]) -> ServiceFacts:
    """What matters of a Service."""
    spec, status = item.get("spec") or {}, item.get("status") or {}
    ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
    address = spec.get("clusterIP")
    return ServiceFacts(
        name=item["metadata"]["name"],
        kind=spec.get("type") or "ClusterIP",
        cluster_ip=None if address in (None, "", "None") else address,
        selector=spec.get("selector") or {},
        ports=tuple(
            Port(
                name=port.get("name") or "",
                number=int(port["port"]),
                protocol=str(port.get("protocol") or "TCP").lower(),
                target=port.get("targetPort") or int(port["port"]),
                node_port=port.get("nodePort"),
            )
            for port in spec.get("ports") or ()
        ),
        ingress=tuple(
            str(each.get("ip") or each.get("hostname"))
            for each in ingress
            if each.get("ip") or each.get("hostname")
        ),
        external_traffic_policy=spec.get("externalTrafficPolicy"),
        session_affinity=spec.get("sessionAffinity") or "None",
        publish_not_ready=bool(spec.get("publishNotReadyAddresses")),
    )


def pod_spec(spec: Mapping[str, Any]) -> PodSpec:
    """What matters of a pod, and nothing of its environment, arguments or secrets."""
    grace = spec.get("terminationGracePeriodSeconds")
    return PodSpec(
        grace_period_s=DEFAULT_GRACE_S if grace is None else int(grace),
        containers=tuple(_container(each) for each in spec.get("containers") or ()),
    )


def _container(item: Mapping[str, Any]) -> ContainerSpec:
    lifecycle = item.get("lifecycle") or {}
    return ContainerSpec(
        name=str(item.get("name")),
        pre_stop=_hook(lifecycle.get("preStop")),
        stop_signal=lifecycle.get("stopSignal"),
        readiness=_readiness(item.get("readinessProbe")),
        ports=tuple(
            {
                "name": port.get("name"),
                "port": port.get("containerPort"),
                "protocol": port.get("protocol"),
            }
            for port in item.get("ports") or ()
        ),
    )


def _hook(hook: Mapping[str, Any] | None) -> dict[str, object] | None:
    """The kind of a preStop hook, and how long it sleeps; a command may hold a secret."""
    if not hook:
        return None
    if sleep := hook.get("sleep"):
        return {"sleep_seconds": int(sleep.get("seconds") or 0)}
    names = {"exec": "exec", "httpGet": "http_get", "tcpSocket": "tcp_socket"}
    return {word: NOT_RECORDED for key, word in names.items() if key in hook}


def _readiness(probe: Mapping[str, Any] | None) -> dict[str, object] | None:
    if not probe:
        return None
    kinds = [kind for kind in ("httpGet", "tcpSocket", "exec", "grpc") if kind in probe]
    return {
        "kind": kinds[0] if kinds else None,
        "initial_delay_s": probe.get("initialDelaySeconds") or 0,
        "period_s": probe.get("periodSeconds"),
        "failure_threshold": probe.get("failureThreshold"),
    }


def selector_text(selector: Mapping[str, Any]) -> str:
    """A label selector as a query has it."""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for rule in selector.get("matchExpressions") or ():
        key, values = rule["key"], ",".join(rule.get("values") or ())
        parts.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[rule["operator"]]
        )
    return ",".join(parts)
