"""A workload that nothing is wrong with, and small changes to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_drainwatch.core.advisor.subject import (
    Action,
    Autoscaler,
    Budget,
    Container,
    Hook,
    Place,
    Port,
    Probe,
    Service,
    Strategy,
    Subject,
)
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import NS_PER_S

S = NS_PER_S


def at(line: int) -> Place:
    return Place(file="x.yaml", line=line)


def slept(seconds: int) -> Hook:
    return Hook(action=Action.SLEEP, at=at(20), sleep_s=seconds)


def executed(*command: str) -> Hook:
    return Hook(action=Action.EXEC, at=at(20), command=command)


def asked(path: str = "/ready", **changes: Any) -> Probe:
    return Probe(action=Action.HTTP_GET, at=at(15), path=path, period_s=2, **changes)


API = Container(
    name="api",
    at=at(10),
    image="example/orders:1",
    command=("/app/server",),
    command_at=at(11),
    pre_stop=slept(10),
    readiness=asked("/ready"),
    liveness=asked("/alive"),
    ports=(Port(number=8080),),
)
SERVICE = Service(name="orders", at=at(40))
BUDGET = Budget(name="orders", at=at(50), max_unavailable=1)
CORRECT = Subject(
    kind="Deployment",
    name="orders",
    at=at(1),
    replicas=3,
    replicas_at=at(3),
    strategy=Strategy(kind="RollingUpdate", at=at(4), max_unavailable=0, max_surge=1),
    grace_said_s=45,
    grace_at=at(8),
    containers=(API,),
    labels={"app": "orders"},
    services=(SERVICE,),
    budgets=(BUDGET,),
)
TOLD = Told(
    propagation_ns=6 * S,
    drain_ns=25 * S,
    close_ns=2 * S,
    reserve_ns=5 * S,
    longest_request_ns=20 * S,
)


def of(**changes: Any) -> Subject:
    return replace(CORRECT, **changes)


def with_api(**changes: Any) -> Subject:
    return of(containers=(replace(API, **changes),))


def with_service(**changes: Any) -> Subject:
    return of(services=(replace(SERVICE, **changes),))


def with_budget(**changes: Any) -> Subject:
    return of(budgets=(replace(BUDGET, **{"max_unavailable": None, **changes}),))


def with_strategy(**changes: Any) -> Subject:
    assert CORRECT.strategy is not None
    return of(strategy=replace(CORRECT.strategy, **changes))


def beside(**changes: Any) -> Subject:
    second = Container(name="envoy", at=at(30), image="envoyproxy/envoy:v1.31.0")
    return of(containers=(API, replace(second, **changes)))


def scaled(least: int) -> Subject:
    scaler = Autoscaler(name="orders", at=at(60), min_replicas=least, max_replicas=9)
    return of(autoscalers=(scaler,))


def told(**changes: Any) -> Told:
    return replace(TOLD, **changes)
