"""A workload as a manifest says it: replicas, strategy, grace, containers, hooks, probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_drainwatch.core.advisor.subject import (
    Action,
    Container,
    Hook,
    Port,
    Probe,
    Strategy,
    Subject,
)
from pytest_drainwatch.manifests.errors import KUSTOMIZE
from pytest_drainwatch.manifests.values import LEAST, Value

KINDS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod"})
# Kubernetes' defaults of a strategy's kind.
_STRATEGIES = dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet"), "RollingUpdate")
_PROBE_ACTIONS = (Action.EXEC, Action.HTTP_GET, Action.TCP_SOCKET, Action.GRPC)
_HOOK_ACTIONS = (Action.EXEC, Action.HTTP_GET, Action.SLEEP, Action.TCP_SOCKET)
_HOSTNAME = "kubernetes.io/hostname"


def subject(found: Value, kind: str, name: str, namespace: str) -> Subject:
    """The workload. Raises ManifestError for what the API server would refuse, too."""
    template = found if kind == "Pod" else found.at("spec", "template")
    pod = template.get("spec") if template is not None else None
    if template is None or pod is None or pod.get("containers") is None:
        missing = "spec.containers" if kind == "Pod" else "spec.template.spec.containers"
        raise found.source.error(found.line, f"{kind}/{name} has no {missing}: {KUSTOMIZE}")
    replicas, grace = found.at("spec", "replicas"), pod.get("terminationGracePeriodSeconds")
    ordinary = [_container(each) for each in pod.items_at("containers")]
    beside = [_container(each) for each in pod.items_at("initContainers") if _is_sidecar(each)]
    if not ordinary:
        raise found.source.error(found.line, f"{kind}/{name} has no containers, expected one")
    _refuse_twins(found, (*ordinary, *beside))
    return Subject(
        kind=kind,
        name=name,
        namespace=namespace,
        at=found.place,
        replicas=replicas.whole() if replicas is not None and kind not in ("Pod", "Job") else None,
        replicas_at=replicas.place if replicas is not None else None,
        strategy=_strategy(found, kind),
        # A negative one is taken by older API servers, and means 1 there.
        grace_said_s=grace.whole(at_least=LEAST) if grace is not None else None,
        grace_at=grace.place if grace is not None else None,
        containers=(*ordinary, *beside),
        one_a_node=_is_one_a_node(pod),
        labels=_texts(template.at("metadata", "labels")),
    )


def _refuse_twins(found: Value, containers: Sequence[Container]) -> None:
    seen: dict[str, Container] = {}
    for container in containers:
        first = seen.setdefault(container.name, container)
        if first is not container:
            raise found.source.error(
                container.at.line,
                f"container {container.name} is there twice, first at {first.at}; expected it once",
            )


def _texts(found: Value | None) -> Mapping[str, str]:
    return found.texts() if found is not None else {}


def _text(found: Value | None) -> str:
    return found.text() if found is not None else ""


def _words(found: Value | None) -> tuple[str, ...] | None:
    return tuple(each.text() for each in found.items()) if found is not None else None


def _is_sidecar(found: Value) -> bool:
    return _text(found.get("restartPolicy")) == "Always"


def _container(found: Value) -> Container:
    name = found.get("name")
    if name is None:
        raise found.source.error(found.line, f"{found.path} has no name, expected one")
    image = found.get("image")
    if image is None:
        raise found.source.error(
            found.line, f"container {name.text()} has no image: is it a patch? {KUSTOMIZE}"
        )
    command, args = found.get("command"), found.get("args")
    at = command or args
    signal = found.at("lifecycle", "stopSignal")
    return Container(
        name=name.text(),
        at=found.place,
        image=image.text(),
        command=_words(command),
        args=_words(args),
        command_at=at.place if at is not None else None,
        pre_stop=_hook(found.at("lifecycle", "preStop")),
        readiness=_probe(found.get("readinessProbe")),
        liveness=_probe(found.get("livenessProbe")),
        startup=_probe(found.get("startupProbe")),
        stop_signal=signal.text() if signal is not None else None,
        stop_signal_at=signal.place if signal is not None else None,
        ports=tuple(map(_port, found.items_at("ports"))),
        native_sidecar=_is_sidecar(found),
    )


def _port(found: Value) -> Port:
    number = found.get("containerPort")
    if number is None:
        raise found.source.error(found.line, f"{found.path} has no containerPort, expected one")
    protocol = found.get("protocol")
    return Port(
        number=number.whole(at_least=1),
        protocol=protocol.text() if protocol is not None else "TCP",
    )


def _hook(found: Value | None) -> Hook | None:
    if found is None:
        return None
    action, inside = _action(found, _HOOK_ACTIONS)
    seconds = inside.get("seconds") if action is Action.SLEEP else None
    if action is Action.SLEEP and seconds is None:
        raise inside.wrong("seconds in it")
    return Hook(
        action=action,
        at=inside.place,
        command=(_words(inside.get("command")) or ()) if action is Action.EXEC else (),
        sleep_s=seconds.whole(at_least=LEAST) if seconds is not None else None,
    )


def _probe(found: Value | None) -> Probe | None:
    if found is None:
        return None
    action, inside = _action(found, _PROBE_ACTIONS)
    grace = found.get("terminationGracePeriodSeconds")
    return Probe(
        action=action,
        at=found.place,
        path=_text(inside.get("path")) if action is Action.HTTP_GET else "",
        # Kubernetes takes 0 as "not said" here.
        period_s=_whole(found.get("periodSeconds")) or 10,
        timeout_s=_whole(found.get("timeoutSeconds")) or 1,
        failure_threshold=_whole(found.get("failureThreshold")) or 3,
        grace_s=grace.whole(at_least=1) if grace is not None else None,
    )


def _action(found: Value, known: Sequence[Action]) -> tuple[Action, Value]:
    """The one thing that a hook or a probe does."""
    chosen = [
        (action, inside) for action in known if (inside := found.get(str(action))) is not None
    ]
    if len(chosen) != 1:
        shown = " and ".join(str(action) for action, _ in chosen) or "none of them"
        raise found.source.error(
            found.line, f"{found.path} has {shown}, expected one of {', '.join(known)}"
        )
    return chosen[0]


def _whole(found: Value | None) -> int:
    return found.whole() if found is not None else 0


def _strategy(found: Value, kind: str) -> Strategy | None:
    if kind not in _STRATEGIES:
        return None
    said = found.at("spec", "strategy" if kind == "Deployment" else "updateStrategy")
    rolling = said.get("rollingUpdate") if said is not None else None
    unavailable = rolling.get("maxUnavailable") if rolling is not None else None
    surge = rolling.get("maxSurge") if rolling is not None else None
    of_kind = _text(said.get("type")) if said is not None else ""
    return Strategy(
        kind=of_kind or _STRATEGIES[kind],
        at=said.place if said is not None else found.place,
        max_unavailable=unavailable.whole_or_percent() if unavailable is not None else None,
        max_surge=surge.whole_or_percent() if surge is not None else None,
        min_ready_s=_whole(found.at("spec", "minReadySeconds")),
        partition=_whole(rolling.get("partition")) if rolling is not None else 0,
    )


def _is_one_a_node(pod: Value) -> bool:
    rules = pod.items_at(
        "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return any(_text(rule.get("topologyKey")) == _HOSTNAME for rule in rules)
