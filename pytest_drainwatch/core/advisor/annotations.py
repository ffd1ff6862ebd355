"""What Ingresses, Services and policies say of the load balancer that they ask for.

A value that is no number, or none that is taken there, counts as not said: controllers ignore
or refuse it, and nothing is known of which. :func:`not_used` tells of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_drainwatch.core.advisor.balancers import PRESETS, Balancer, Kind, Number, with_numbers
from pytest_drainwatch.core.advisor.subject import Place, Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import NS_PER_S

_ALB = "alb.ingress.kubernetes.io/"
_NLB = "service.beta.kubernetes.io/aws-load-balancer-"
_ATTRIBUTE = re.compile(r"(?:^|,)\s*deregistration_delay\.timeout_seconds\s*=([^,]*)")
# What AWS and Google take as a delay; the others must be something, and nobody's are longer.
_LARGEST_DELAY, _LARGEST = 3600, 999_999
# Annotation: field of a Balancer; all but the threshold are seconds.
_FIELDS = {
    f"{_ALB}healthcheck-interval-seconds": "interval",
    f"{_ALB}healthcheck-timeout-seconds": "timeout",
    f"{_ALB}unhealthy-threshold-count": "threshold",
    f"{_NLB}healthcheck-interval": "interval",
    f"{_NLB}healthcheck-timeout": "timeout",
    f"{_NLB}healthcheck-unhealthy-threshold": "threshold",
    "spec.connectionDraining.drainingTimeoutSec": "delay",
    "spec.default.connectionDraining.drainingTimeoutSec": "delay",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotUsed:
    """A setting whose value says nothing: of which object, and what was expected."""

    kind: str
    name: str
    at: Place
    setting: str
    shown: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A setting as a manifest has it; ``number`` None: it is none that is taken there."""

    at: Place
    kind: str
    name: str
    setting: str
    text: str
    field: str
    number: int | None


def not_used(subject: Subject) -> Iterator[NotUsed]:
    """The settings of load balancers whose values mean nothing."""
    for said in _settings(subject):
        if said.number is None:
            least, most = _limits(said.field)
            text = said.text if len(said.text) <= 40 else f"{said.text[:39]}…"
            yield NotUsed(
                kind=said.kind,
                name=said.name,
                at=said.at,
                setting=said.setting,
                shown=f'"{text}"',
                expected=f"a whole number from {least} to {most}",
            )


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


def _objects(subject: Subject) -> Iterator[tuple[str, str, Place, Mapping[str, str]]]:
    for front in subject.fronts:
        yield front.kind, front.name, front.at, front.annotations
    for service in subject.services:
        yield "Service", service.name, service.at, service.annotations


def _kind(subject: Subject) -> Kind | None:
    for kind, _, _, said in _objects(subject):
        if kind == "Ingress" and any(name.startswith(_ALB) for name in said):
            return Kind.AWS_ALB
        if kind in ("BackendConfig", "GCPBackendPolicy"):
            return Kind.GCP
        if kind == "Service" and any(name.startswith(_NLB) for name in said):
            return Kind.AWS_NLB
    return None


def _read(subject: Subject) -> Iterator[tuple[str, Number]]:
    for said in _settings(subject):
        if said.number is not None:
            unit = 1 if said.field == "threshold" else NS_PER_S
            yield said.field, Number(value=said.number * unit, origin=str(said.at))


def _settings(subject: Subject) -> Iterator[_Said]:
    for kind, name, at, said in _objects(subject):
        for key, text in said.items():
            if key in (f"{_ALB}target-group-attributes", f"{_NLB}target-group-attributes"):
                found = _ATTRIBUTE.search(text)
                if found is None:
                    continue
                field, value = "delay", found[1]
            elif key in _FIELDS:
                field, value = _FIELDS[key], text
            else:
                continue
            yield _Said(
                at=at,
                kind=kind,
                name=name,
                setting=key,
                text=value.strip(),
                field=field,
                number=_number(value, *_limits(field)),
            )


def _limits(field: str) -> tuple[int, int]:
    return (0, _LARGEST_DELAY) if field == "delay" else (1, _LARGEST)


def _number(text: str, least: int, most: int) -> int | None:
    if not re.fullmatch(r"[0-9]{1,9}", text.strip()):
        return None
    return number if least <= (number := int(text)) <= most else None
