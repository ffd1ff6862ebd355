"""What concerns a workload: Services and budgets that select its pods, autoscaler, Ingress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_drainwatch.core.advisor.subject import (
    Autoscaler,
    Budget,
    Fronting,
    Service,
    Subject,
)
from pytest_drainwatch.manifests.values import Value

CONTEXT = frozenset(
    {
        "Service",
        "PodDisruptionBudget",
        "HorizontalPodAutoscaler",
        "Ingress",
        "BackendConfig",
        "GCPBackendPolicy",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """One object of a manifest, not yet read further."""

    kind: str
    name: str
    namespace: str
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One of a selector's conditions: the label is (not) there, or (not) one of these."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels satisfy it."""
        has = self.key in labels
        match self.operator:
            case "In":
                return has and labels[self.key] in self.values
            case "NotIn":
                return not has or labels[self.key] not in self.values
            case "Exists":
                return has
            case _:
                return not has


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which pods an object is about; None: it selects by itself none."""

    namespace: str
    requirements: tuple[Requirement, ...] | None

    def selects(self, subject: Subject) -> bool:
        """Whether its pods are meant. A namespace that is not said may be any."""
        if self.namespace and subject.namespace and self.namespace != subject.namespace:
            return False
        return self.requirements is not None and all(
            requirement.holds(subject.labels) for requirement in self.requirements
        )


def related(
    subjects: Sequence[Subject], context: Sequence[Object]
) -> tuple[list[Subject], list[Object]]:
    """The workloads with what concerns them, and the objects that concern none of them."""
    services = [(o, _selector(o), _service(o)) for o in context if o.kind == "Service"]
    budgets = [(o, _selector(o), _budget(o)) for o in context if o.kind == "PodDisruptionBudget"]
    scalers = [(o, *_autoscaler(o)) for o in context if o.kind == "HorizontalPodAutoscaler"]
    fronts = [(o, _fronted(o), _front(o)) for o in context if o.kind not in _SELECTING]
    used: set[int] = set()
    found = []
    for subject in subjects:
        mine = [(o, each) for o, selector, each in services if selector.selects(subject)]
        guarding = [(o, each) for o, selector, each in budgets if selector.selects(subject)]
        scaling = [
            (o, each)
            for o, target, each in scalers
            if target == (subject.kind, subject.name) and _near(o, subject)
        ]
        names = {service.name for _, service in mine}
        before = [
            (o, each)
            for o, backends, each in fronts
            if _near(o, subject) and (backends is None or names & backends)
        ]
        used |= {id(o) for pairs in (mine, guarding, scaling, before) for o, _ in pairs}
        found.append(
            replace(
                subject,
                services=tuple(each for _, each in mine),
                budgets=tuple(each for _, each in guarding),
                autoscalers=tuple(each for _, each in scaling),
                fronts=tuple(each for _, each in before),
            )
        )
    return found, [o for o in context if id(o) not in used]


_SELECTING = frozenset({"Service", "PodDisruptionBudget", "HorizontalPodAutoscaler"})


def _near(o: Object, subject: Subject) -> bool:
    return not o.namespace or not subject.namespace or o.namespace == subject.namespace


def _selector(o: Object) -> Selector:
    found = o.value.at("spec", "selector")
    if found is None:
        return Selector(namespace=o.namespace, requirements=None)
    if o.kind == "Service":
        labels, rules = dict(found.texts()), []
    else:
        plain = found.get("matchLabels")
        labels, rules = (dict(plain.texts()) if plain else {}), found.items_at("matchExpressions")
    requirements = (
        *(Requirement(key=key, operator="In", values=(text,)) for key, text in labels.items()),
        *map(_requirement, rules),
    )
    # A Service with an empty selector selects nothing; a budget (policy/v1) everything.
    nothing = o.kind == "Service" and not requirements
    return Selector(namespace=o.namespace, requirements=None if nothing else requirements)


def _requirement(found: Value) -> Requirement:
    key, operator = found.get("key"), found.get("operator")
    if key is None or operator is None:
        raise found.wrong("key and operator")
    if operator.text() not in ("In", "NotIn", "Exists", "DoesNotExist"):
        raise operator.wrong("In, NotIn, Exists or DoesNotExist")
    return Requirement(
        key=key.text(),
        operator=operator.text(),
        values=tuple(each.text() for each in found.items_at("values")),
    )


def _said(found: Value | None) -> str:
    return found.text() if found is not None else ""


def _annotations(o: Object) -> Mapping[str, str]:
    found = o.value.at("metadata", "annotations")
    return found.texts() if found is not None else {}


def _service(o: Object) -> Service:
    spec = o.value.get("spec") or o.value
    unready = spec.get("publishNotReadyAddresses")
    protocols = {_said(port.get("protocol")) or "TCP" for port in spec.items_at("ports")}
    return Service(
        name=o.name,
        at=o.value.place,
        kind=_said(spec.get("type")) or "ClusterIP",
        headless=_said(spec.get("clusterIP")) == "None",
        local_traffic=_said(spec.get("externalTrafficPolicy")) == "Local",
        publish_not_ready=unready.flag() if unready is not None else False,
        protocols=frozenset(protocols or {"TCP"}),
        annotations=_annotations(o),
    )


def _budget(o: Object) -> Budget:
    least, most = o.value.at("spec", "minAvailable"), o.value.at("spec", "maxUnavailable")
    return Budget(
        name=o.name,
        at=(least or most or o.value).place,
        min_available=least.whole_or_percent() if least is not None else None,
        max_unavailable=most.whole_or_percent() if most is not None else None,
    )


def _autoscaler(o: Object) -> tuple[tuple[str, str], Autoscaler]:
    target = o.value.at("spec", "scaleTargetRef")
    if target is None:
        raise o.value.wrong("spec.scaleTargetRef in it")
    least, most = o.value.at("spec", "minReplicas"), o.value.at("spec", "maxReplicas")
    if most is None:
        raise o.value.wrong("spec.maxReplicas in it")
    fewest = least.whole() if least is not None else 1
    if fewest > most.whole(at_least=1):
        raise o.value.source.error(
            most.line, f"maxReplicas is below minReplicas, which is {fewest}; expected it above"
        )
    return (_said(target.get("kind")), _said(target.get("name"))), Autoscaler(
        name=o.name,
        at=o.value.place,
        min_replicas=fewest,
        max_replicas=most.whole(at_least=1),
    )


def _front(o: Object) -> Fronting:
    return Fronting(
        kind=o.kind,
        name=o.name,
        at=o.value.place,
        annotations={**_annotations(o), **dict(_draining(o))},
    )


def _draining(o: Object) -> Iterator[tuple[str, str]]:
    """What Google's objects say of draining, under the name of its field."""
    for way in (
        ("spec", "connectionDraining", "drainingTimeoutSec"),
        ("spec", "default", "connectionDraining", "drainingTimeoutSec"),
    ):
        found = o.value.at(*way)
        if found is not None:
            yield ".".join(way), str(found.whole())


def _fronted(o: Object) -> frozenset[str] | None:
    """The Services behind an Ingress or a policy; None where it may be any."""
    if o.kind == "GCPBackendPolicy":
        target = o.value.at("spec", "targetRef", "name")
        return None if target is None else frozenset({target.text()})
    if o.kind != "Ingress":
        return None
    default = _said(o.value.at("spec", "defaultBackend", "service", "name"))
    routed = {
        _said(path.at("backend", "service", "name"))
        for rule in o.value.items_at("spec", "rules")
        for path in rule.items_at("http", "paths")
    }
    return frozenset({default, *routed} - {""})
