"""Which container of a pod is the application, and whether traffic comes to it."""

from __future__ import annotations

import re

from pytest_drainwatch.core.advisor.subject import Container, Subject

# Proxies and helpers that others' calls pass through, by what their images are called.
_PROXY = re.compile(
    r"(?:^|[/-])(?:envoy|istio-?proxy|proxyv2|linkerd-?proxy|proxy-init|cloud-?sql-?proxy|"
    r"gce-proxy|daprd|vault-agent|consul-dataplane|kuma-dp|oauth2-proxy|pgbouncer)(?=$|[:@/.-])"
)


def is_proxy(container: Container) -> bool:
    """Whether it looks like one of the well-known proxies that stand beside an application."""
    return bool(_PROXY.search(container.name) or _PROXY.search(container.image))


def application(subject: Subject) -> Container:
    """The container that the application's times are about: the first that serves."""
    ordinary = [each for each in subject.containers if not each.native_sidecar]
    own = [each for each in ordinary if not is_proxy(each)] or ordinary
    return next((each for each in own if each.ports), own[0])


def takes_traffic(subject: Subject) -> bool:
    """Whether somebody can be seen to connect to it."""
    return bool(subject.services) or any(each.ports for each in subject.containers)


def pods_at_least(subject: Subject) -> int | None:
    """How many pods there are when fewest are; None where the manifest does not decide it."""
    if subject.autoscalers:
        return min(each.min_replicas for each in subject.autoscalers)
    if subject.kind == "DaemonSet":
        return None
    return 1 if subject.replicas is None else subject.replicas
