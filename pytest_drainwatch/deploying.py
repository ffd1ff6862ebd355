"""The probe, put into the trial's namespace: up to these pods, ready, behind their Service."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from pytest_drainwatch import preflight, targets
from pytest_drainwatch.cluster.embedded.starts import DEPLOYMENTS
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.scenario import Access
from pytest_drainwatch.fronting import fronted, insist_up
from pytest_drainwatch.reaching import reach
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.standing import Insist, Standing, check_trigger, hold_stable, insisting
from pytest_drainwatch.watch import Watch
from pytest_drainwatch.way import find as find_way
from pytest_drainwatch.workload import probe
from pytest_drainwatch.workload.logs import LogFollower, join_logs

POD_READY_TIMEOUT_S = 120.0


@contextmanager
def deployed(stage: Stage) -> Iterator[Standing]:
    """Apply the probe, watch it, and wait until its pods are ready and stable."""
    api, recorder, scenario = stage.api, stage.recorder, stage.scenario
    with ExitStack() as stack:
        turn = stack.enter_context(ExitStack())
        with stage.phase("deploy"):
            if stage.cluster.provider == "embedded":  # its pods start on this machine
                turn.enter_context(DEPLOYMENTS.turn(stage.progress.line))
            watch = stage.watch = Watch(
                api,
                stage.namespace,
                pods=stage.place.pods,
                slices=stage.place.slices,
                record=recorder,
            )
            stack.enter_context(watch)
            ports = probe.apply(api, stage.place, scenario, stage.image)
            stage.note(
                Event.WORKLOAD_APPLIED,
                deployment=f"{stage.namespace}/{stage.place.probe}",
                image=stage.image,
                grace_period_s=scenario.app.grace_period_s,
            )
            if scenario.service.access is Access.LOAD_BALANCER:
                turn.close()  # its address may take minutes
            way = stack.enter_context(fronted(stage, find_way(stage, ports), ports))
            stage.note(Event.WAY_CHOSEN, **way.told())
        with stage.phase("preflight: workload"):
            must = insisting(stage, watch)
            started = time.monotonic_ns()
            name, replicas = stage.namespace, scenario.app.replicas
            must(
                lambda: preflight.pods_ready(
                    watch.pods(), replicas, name, time.monotonic_ns() - started, stage.image
                ),
                POD_READY_TIMEOUT_S,
            )
            turn.close()
            must(lambda: preflight.watches_delivering(watch.delivering(), name), 30)
            pods = targets.pods_of(watch.pods())
            logs = tuple(LogFollower(api, name, pod.name, pod.uid, recorder) for pod in pods)
            stack.callback(join_logs, logs, 0.0)
            _follow(logs, must)
            hold_stable(stage, watch, pods, must)
            insist_up(stage, must)
            reach(stage, way)
            target = targets.choose(stage, way, pods)
            target = check_trigger(stage, target, must)
        yield Standing(
            stage=stage,
            watch=watch,
            way=way,
            target=target,
            service=f"{name}/{stage.place.probe}",
            logs=logs,
        )


def _follow(logs: Sequence[LogFollower], must: Insist) -> None:
    must(
        lambda: preflight.logs_followed(
            {log.pod: log.started for log in logs},
            [log.problem for log in logs if log.problem],
            hopeless=any(log.ended and not log.started for log in logs),
        ),
        15,
    )
