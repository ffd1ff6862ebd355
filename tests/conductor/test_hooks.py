"""Of several containers' preStop hooks the longest is planned for."""

from __future__ import annotations

import itertools

from pytest_drainwatch.workload.reduced import NOT_RECORDED, ContainerSpec, PodSpec


def one(name: str, hook: dict[str, object] | None) -> ContainerSpec:
    return ContainerSpec(name=name, pre_stop=hook, stop_signal=None, readiness=None, ports=())


def test_the_longest_hook_is_planned_for() -> None:
    web, mesh = one("web", {"sleep_seconds": 2}), one("mesh", {"sleep_seconds": 9})
    quits, plain = one("nginx", {"exec": NOT_RECORDED}), one("plain", None)
    for among in itertools.permutations((web, mesh, quits, plain)):
        assert PodSpec(grace_period_s=30, containers=among).pre_stop == {"sleep_seconds": 9}
    assert PodSpec(grace_period_s=30, containers=(plain, quits)).pre_stop == {"exec": NOT_RECORDED}
    assert PodSpec(grace_period_s=30, containers=(plain,)).pre_stop is None
