"""The conductor: how one trial goes, from an empty namespace to report.json.

    prepare   an API connection, the environment record, a recording, a namespace
    deploy    the probe, the watches; preflight: are these the pods we mean, and stable?
    hold      the flow agent and its flows; preflight: does every flow really work?
    measure   settle -> trigger -> observe -> collect -> derive -> write

The first three are context managers, so that pytest fixtures can hold them open;
:func:`run_trial` is all four in a row. Whatever goes wrong before the report is
written makes the trial void: the recording stays, with the evidence, and no
report.json appears.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pytest_drainwatch import __version__, environment, preflight, report, targets, trigger
from pytest_drainwatch.api import ApiUnavailable, connect
from pytest_drainwatch.beside import Beside
from pytest_drainwatch.cluster import Cluster, ClusterError
from pytest_drainwatch.cluster.embedded.starts import DEPLOYMENTS
from pytest_drainwatch.collect import collect
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.plan import dense_stretches
from pytest_drainwatch.core.recording import Header
from pytest_drainwatch.core.scenario import Access, Scenario, Trigger
from pytest_drainwatch.flows.clockid import clock_id
from pytest_drainwatch.flows.process import FlowAgent
from pytest_drainwatch.holding import agent_config, flow_checks
from pytest_drainwatch.measured import Trial
from pytest_drainwatch.mechanism import Evidence
from pytest_drainwatch.preflight import TrialVoid, require
from pytest_drainwatch.recorder import Recorder, RecorderError, write_atomic
from pytest_drainwatch.stage import Keep, Progress, Stage, record_void
from pytest_drainwatch.trigger import Target
from pytest_drainwatch.vigil import RECOVERY_NS, all_over, check_alive, undisturbed, watch_until
from pytest_drainwatch.watch import Watch
from pytest_drainwatch.way import Way
from pytest_drainwatch.way import find as find_way
from pytest_drainwatch.workload import budgets, manifests, namespace, probe
from pytest_drainwatch.workload.logs import LogFollower, join_logs

POD_READY_TIMEOUT_S = 120.0
ENDPOINT_TIMEOUT_S = 60.0
FLOWS_TIMEOUT_S = 45.0

__all__ = ["Trial", "TrialVoid", "deploy", "hold", "measure", "prepare", "run_trial"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A deployed probe that passed preflight, its watches running."""

    stage: Stage
    watch: Watch
    way: Way
    target: Target
    logs: tuple[LogFollower, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Flows that passed preflight, held open by their agent."""

    probe: Probe
    agent: FlowAgent


def run_trial(
    cluster: Cluster, scenario: Scenario, *, folder: Path, keep: Keep, progress: Progress
) -> Trial:
    """One trial from end to end. Raises :class:`TrialVoid` if it could not be measured."""
    with ExitStack() as stack:
        stage = stack.enter_context(
            prepare(cluster, scenario, folder=folder, keep=keep, progress=progress)
        )
        ready = stack.enter_context(deploy(stage))
        held = stack.enter_context(hold(ready))
        return measure(held)


@contextmanager
def prepare(
    cluster: Cluster,
    scenario: Scenario,
    *,
    folder: Path,
    keep: Keep,
    progress: Progress,
    test: str | None = None,
    repeat: int | None = None,
) -> Iterator[Stage]:
    """Everything that needs no probe: connection, environment, recording, namespace.

    ``test`` and ``repeat`` say in the header which test measures, and which of its repeats.
    """
    name = manifests.namespace_name(scenario.id, time.monotonic_ns() % 16**8)
    outside = scenario.service.access is Access.NODE_PORT
    target_host = cluster.node_address if outside else None  # a ClusterIP is not known yet
    header = Header(
        drainwatch_version=__version__,
        git_commit=environment.git_commit(),
        trial_id=f"{folder.parent.name}/{folder.name}",
        wall_clock_start=environment.wall_clock(),
        clock=clock_id(),
        scenario={
            "id": scenario.id,
            "flags": list(scenario.flags),
            "config": {**scenario.config(), "namespace": name, "target_host": target_host},
        },
        test=test,
        repeat=repeat,
    )
    try:
        image = cluster.ensure_probe_image()
        api = connect(cluster.kubeconfig, cluster.context)
    except (ClusterError, ApiUnavailable) as error:
        record_void(folder, header, "prepare", str(error))
        raise TrialVoid(str(error)) from error
    facts = environment.gather(api, cluster, image)
    try:
        recorder = Recorder(folder / "recording.jsonl", replace(header, environment=facts))
    except RecorderError as error:
        raise TrialVoid(str(error)) from error
    stage = Stage(
        cluster=cluster,
        api=api,
        scenario=scenario,
        folder=folder,
        recorder=recorder,
        image=image,
        namespace=name,
        progress=progress,
    )

    def keep_namespace() -> bool:
        deleted = scenario.trigger is Trigger.NAMESPACE_DELETE  # there is nothing to keep
        kept = not deleted and keep(failed=stage.failed)
        if kept:
            progress.line(f"kept namespace {name}")
        return kept

    with ExitStack() as stack:
        stack.callback(api.close)
        stack.callback(recorder.close)
        with stage.phase("prepare"):
            require(lambda: preflight.version_readable(facts), recorder, timeout_s=0)
            stack.enter_context(namespace.trial_namespace(api, name, keep=keep_namespace))
        stack.callback(stage.abandon)
        yield stage


@contextmanager
def deploy(stage: Stage) -> Iterator[Probe]:
    """The probe and the watches, up to: these pods, ready, and stable behind the Service."""
    api, recorder, scenario = stage.api, stage.recorder, stage.scenario
    with ExitStack() as stack:
        turn = stack.enter_context(ExitStack())
        with stage.phase("deploy"):
            if stage.cluster.provider == "embedded":  # its pods start on this machine
                turn.enter_context(DEPLOYMENTS.turn(stage.progress.line))
            watch = stage.watch = Watch(
                api,
                stage.namespace,
                pods=manifests.POD_SELECTOR,
                slices=manifests.SLICE_SELECTOR,
                record=recorder,
            )
            stack.enter_context(watch)
            ports = probe.apply(api, stage.namespace, scenario, stage.image)
            stage.note(
                Event.WORKLOAD_APPLIED,
                deployment=f"{stage.namespace}/{manifests.NAME}",
                image=stage.image,
                grace_period_s=scenario.app.grace_period_s,
            )
            way = find_way(stage, ports)
            stage.note(
                Event.WAY_CHOSEN,
                address=way.address,
                tcp_port=way.tcp,
                udp_port=way.udp,
                sources=list(way.sources),
                note=way.note,
            )
        with stage.phase("preflight: workload"):
            alive, wait = partial(check_alive, stage, watch), watch.wait_changed

            def must(check: Callable[[], preflight.Check], timeout_s: float) -> None:
                require(check, recorder, timeout_s=timeout_s, wait=wait, alive=alive)

            started = time.monotonic_ns()
            name, replicas = stage.namespace, scenario.app.replicas
            must(
                lambda: preflight.pods_ready(
                    watch.pods(), replicas, name, time.monotonic_ns() - started
                ),
                POD_READY_TIMEOUT_S,
            )
            turn.close()
            must(lambda: preflight.watches_delivering(watch.delivering(), name), 30)
            pods = targets.pods_of(watch.pods())
            logs = tuple(LogFollower(api, name, pod.name, pod.uid, recorder) for pod in pods)
            stack.callback(join_logs, logs, 0.0)
            must(lambda: _logs_followed(logs), 15)
            stable_ns = 2 * _sync_period_ns(stage)  # kube-proxy has then surely followed
            stable = preflight.EndpointStability(stable_ns)
            uids = [pod.uid for pod in pods]
            must(
                lambda: stable.check(watch.slices(), uids, time.monotonic_ns(), name),
                ENDPOINT_TIMEOUT_S + stable_ns / NS_PER_S,
            )
            target = targets.choose(stage, way, pods)
            if scenario.trigger is Trigger.EVICT:
                found = budgets.read(api, name, [pod.name for pod in target.chosen])
                must(
                    lambda: preflight.budgets_clear(
                        found.selecting, found.idle, found.problem, name
                    ),
                    0,
                )
        yield Probe(stage=stage, watch=watch, way=way, target=target, logs=logs)


@contextmanager
def hold(ready: Probe) -> Iterator[Held]:
    """The flows, up to: each of them answered, over the real path, often enough."""
    stage, wanted = ready.stage, ready.stage.scenario.flows
    with ExitStack() as stack:
        with stage.phase("preflight: flows"):
            config = agent_config(
                wanted, ready.way, ready.target.pod.uid, stage.folder, agents=_agents(stage)
            )
            require(
                lambda: preflight.limits_suffice(config.wanted, config.open_attempts),
                stage.recorder,
                timeout_s=0,
            )
            agent = FlowAgent(ready.way.command, config)
            stage.agent = agent
            stack.callback(agent.stop)
            timeout_s = FLOWS_TIMEOUT_S + preflight.MIN_UDP_ANSWERS / wanted.udp_rate_hz
            alive, wait = partial(check_alive, stage, ready.watch), agent.wait_changed
            for check in flow_checks(agent, wanted, stage.recorder):
                require(check, stage.recorder, timeout_s=timeout_s, wait=wait, alive=alive)
            stage.note(Event.PREFLIGHT_PASSED, tcp_flows=wanted.tcp, udp_flows=wanted.udp)
        yield Held(probe=ready, agent=agent)


def measure(held: Held) -> Trial:
    """Settle, trigger, observe, collect; then judge and write. The probe is spent after it."""
    stage, watch, agent = held.probe.stage, held.probe.watch, held.agent
    beside = Beside(stage)
    with _evidence(held.probe) as evidence:
        accepted = _terminate(held, evidence, beside)
        _observe(held, accepted, evidence, beside)
    with stage.phase("collect"):
        agent.stop()
        collect(stage, watch, held.probe.logs, accepted.targets)
        watch.stop()  # writes the gaps that are still open
        recording = stage.recorder.finish(agent.part)
    with stage.phase("judge"):
        judged = derive(recording)
        write_atomic(stage.folder / "report.json", report.dumps(judged))
    return Trial(scenario=stage.scenario, report=judged, folder=stage.folder)


def _evidence(ready: Probe) -> Evidence:
    """What looks into the node's network beside the trial."""
    stage, way = ready.stage, ready.way
    return Evidence(
        stage.cluster.node_network,
        ready.watch,
        stage.recorder,
        service=f"{stage.namespace}/{manifests.NAME}",
        sources=way.sources[:1],
        ports=(("tcp", way.tcp), ("udp", way.udp)),
    )


def _terminate(held: Held, evidence: Evidence, beside: Beside) -> trigger.Accepted:
    """Settle, then ask until the API accepts."""
    stage, agent = held.probe.stage, held.agent
    scenario = stage.scenario
    calm = undisturbed(agent)

    def hold_still(seconds: float) -> None:
        until_ns = time.monotonic_ns() + round(seconds * NS_PER_S)
        # Until a plan comes flows send densely, so that preflight is short. A trigger that
        # was blocked comes later, and the dense stretches with it.
        agent.plan(at + Interval.point(until_ns) for at in dense_stretches(scenario))
        watch_until(stage, held.probe.watch, agent, until_ns, calm, beside)

    with stage.phase("settle", scenario.settle_ns):
        hold_still(scenario.settle_ns / NS_PER_S)
        stage.note(Event.SETTLE_COMPLETE, settle_ns=scenario.settle_ns)
    with stage.phase("trigger"):
        evidence.before_trigger()
        return trigger.fire(
            stage.api,
            scenario.trigger,
            held.probe.target,
            stage.recorder,
            timeout_s=scenario.observe_ns / NS_PER_S,
            sleep=hold_still,
        )


def _observe(held: Held, accepted: trigger.Accepted, evidence: Evidence, beside: Beside) -> None:
    """Watch until nothing more can happen, or the window closes."""
    stage, watch, agent = held.probe.stage, held.probe.watch, held.agent
    scenario = stage.scenario
    with stage.phase("observe", scenario.expected_ns - scenario.settle_ns):
        closes_ns = time.monotonic_ns() + scenario.observe_ns
        over = all_over(
            watch,
            agent,
            scenario.trigger,
            accepted.targets,
            everybody=len(accepted.targets) == len(held.probe.target.pods),
            one_way=scenario.flows.udp_one_way > 0,
            recovery_ns=RECOVERY_NS + scenario.replacement_ns + _sync_period_ns(stage),
        )
        ended = watch_until(stage, watch, agent, closes_ns, over, beside)
        stage.note(Event.ALL_FLOWS_TERMINAL if ended else Event.OBSERVATION_WINDOW_CLOSED)
        evidence.observed()


def _agents(stage: Stage) -> int:
    """How many agents may be at work on this machine. Trials on one cluster take turns."""
    return environment.xdist_workers() if stage.cluster.provider == "embedded" else 1


def _sync_period_ns(stage: Stage) -> int:
    """kube-proxy's minSyncPeriod, or Kubernetes' default where nobody says."""
    return (stage.cluster.facts().min_sync_period_ms or 1000) * NS_PER_MS


def _logs_followed(logs: Sequence[LogFollower]) -> preflight.Check:
    return preflight.logs_followed(
        {log.pod: log.started for log in logs},
        [log.problem for log in logs if log.problem],
        hopeless=any(log.ended and not log.started for log in logs),
    )
