"""What Ingresses, Services and policies say of the load balancer that they ask for.

A value that is no number counts as not said: controllers ignore or refuse it, and nothing
is known of which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pytest_drainwatch.core.advisor.balancers import PRESETS, Balancer, Kind, Number, with_numbers
from pytest_drainwatch.core.advisor.subject import Place, Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import NS_PER_S

_ALB = "alb.ingress.kubernetes.io/"
_NLB = "service.beta.kubernetes.io/aws-load-balancer-"
_ATTRIBUTE = re.compile(
    r"(?:^|,)\s*deregistration_delay\.timeout_seconds\s*=\s*(\d{1,6})\s*(?:,|$)"
)
# Annotation: field of a Balancer, and whether it is seconds.
_FIELDS = {
    f"{_ALB}healthcheck-interval-seconds": ("interval", True),
    f"{_ALB}healthcheck-timeout-seconds": ("timeout", True),
    f"{_ALB}unhealthy-threshold-count": ("threshold", False),
    f"{_NLB}healthcheck-interval": ("interval", True),
    f"{_NLB}healthcheck-timeout": ("timeout", True),
    f"{_NLB}healthcheck-unhealthy-threshold": ("threshold", False),
    "spec.connectionDraining.drainingTimeoutSec": ("delay", True),
    "spec.default.connectionDraining.drainingTimeoutSec": ("delay", True),
}


def balancer_of(subject: Subject, told: Told) -> Balancer | None:
    """The load balancer before the workload: what is told of it, over what manifests say."""
    read = dict(_read(subject))
    kind = told.balancer.kind if told.balancer is not None else _kind(subject)
    if kind is None:
        return None
    found = with_numbers(PRESETS[kind], read)
    if told.balancer is None:
        return found
    names = ("lag", "spread", "delay", "floor", "jitter", "interval", "threshold", "timeout")
    return with_numbers(found, {name: getattr(told.balancer, name) for name in names})


def _objects(subject: Subject) -> Iterator[tuple[str, Place, Mapping[str, str]]]:
    for front in subject.fronts:
        yield front.kind, front.at, front.annotations
    for service in subject.services:
        yield "Service", service.at, service.annotations


def _kind(subject: Subject) -> Kind | None:
    for kind, _, said in _objects(subject):
        if kind == "Ingress" and any(name.startswith(_ALB) for name in said):
            return Kind.AWS_ALB
        if kind in ("BackendConfig", "GCPBackendPolicy"):
            return Kind.GCP
        if kind == "Service" and any(name.startswith(_NLB) for name in said):
            return Kind.AWS_NLB
    return None


def _read(subject: Subject) -> Iterator[tuple[str, Number]]:
    for _, at, said in _objects(subject):
        for name, text in said.items():
            if name in (f"{_ALB}target-group-attributes", f"{_NLB}target-group-attributes"):
                delay = _ATTRIBUTE.search(text)
                if delay:
                    yield "delay", Number(value=int(delay[1]) * NS_PER_S, origin=str(at))
            elif name in _FIELDS and re.fullmatch(r"\d{1,6}", text.strip()):
                field, in_seconds = _FIELDS[name]
                number = int(text) * (NS_PER_S if in_seconds else 1)
                if number or field == "delay":
                    yield field, Number(value=number, origin=str(at))
