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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch import __version__, environment, preflight, report, trigger
from pytest_drainwatch.api import ApiUnavailable, connect
from pytest_drainwatch.cluster import Cluster, ClusterError
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Counts, FlowReport, Report, Summary
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import Header
from pytest_drainwatch.core.scenario import Flows, Scenario
from pytest_drainwatch.flows.clockid import clock_id
from pytest_drainwatch.flows.config import AgentConfig, Endpoint
from pytest_drainwatch.flows.process import AgentFailed, AgentStatus, FlowAgent
from pytest_drainwatch.preflight import TrialVoid, require
from pytest_drainwatch.recorder import Recorder, RecorderError, write_atomic
from pytest_drainwatch.stage import Keep, Progress, Stage
from pytest_drainwatch.trigger import Pod, Target
from pytest_drainwatch.vigil import all_over, undisturbed, watch_until
from pytest_drainwatch.watch import Watch
from pytest_drainwatch.workload import manifests, namespace, probe

POD_READY_TIMEOUT_S = 120.0
ENDPOINT_TIMEOUT_S = 60.0
FLOWS_TIMEOUT_S = 45.0

__all__ = ["Trial", "TrialVoid", "deploy", "hold", "measure", "prepare", "run_trial"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Trial:
    """A measured trial: what was asked, and what happened."""

    scenario: Scenario
    report: Report
    folder: Path

    def __repr__(self) -> str:
        return f"<Trial {self.scenario.id} in {self.folder}>"

    @property
    def summary(self) -> Summary:
        """Counts and durations."""
        return self.report.trial.summary

    @property
    def tcp(self) -> Counts:
        """How the target's TCP flows ended."""
        return self.summary.tcp

    @property
    def udp(self) -> Counts:
        """How the target's UDP flows ended."""
        return self.summary.udp

    @property
    def flows(self) -> tuple[FlowReport, ...]:
        """Every flow, bystanders too."""
        return self.report.trial.flows

    @property
    def exit_codes(self) -> tuple[int | None, ...]:
        """Exit codes of the terminated pods' containers."""
        return tuple(gone.exit_code for gone in self.report.trial.container_exits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A deployed probe that passed preflight, its watches running."""

    stage: Stage
    watch: Watch
    ports: probe.NodePorts
    target: Target
    logs: tuple[probe.LogFollower, ...]


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
    cluster: Cluster, scenario: Scenario, *, folder: Path, keep: Keep, progress: Progress
) -> Iterator[Stage]:
    """Everything that needs no probe: connection, environment, recording, namespace."""
    try:
        image = cluster.ensure_probe_image()
        api = connect(cluster.kubeconfig, cluster.context)
    except (ClusterError, ApiUnavailable) as error:
        raise TrialVoid(str(error)) from error
    facts = environment.gather(api, cluster, image)
    name = f"dw-{scenario.id[:30]}-{time.monotonic_ns() % 36**6:x}"
    header = Header(
        drainwatch_version=__version__,
        git_commit=environment.git_commit(),
        trial_id=f"{folder.parent.name}/{folder.name}",
        wall_clock_start=environment.wall_clock(),
        clock=clock_id(),
        scenario={
            "id": scenario.id,
            "flags": list(scenario.flags),
            "config": {**scenario.config(), "namespace": name, "target_host": cluster.node_address},
        },
        environment=facts,
    )
    try:
        recorder = Recorder(folder / "recording.jsonl", header)
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
    with ExitStack() as stack:
        stack.callback(recorder.close)
        with stage.phase("prepare"):
            require(
                lambda: preflight.version_readable(_text(facts["kubernetes_version"])),
                recorder,
                timeout_s=0,
            )
            stack.enter_context(
                namespace.trial_namespace(api, name, keep=lambda: keep(failed=stage.failed))
            )
        yield stage


@contextmanager
def deploy(stage: Stage) -> Iterator[Probe]:
    """The probe and the watches, up to: these pods, ready, and stable behind the Service."""
    api, recorder, app = stage.api, stage.recorder, stage.scenario.app
    with ExitStack() as stack:
        with stage.phase("deploy"):
            watch = stack.enter_context(
                Watch(
                    api,
                    stage.namespace,
                    pods=manifests.POD_SELECTOR,
                    slices=manifests.SLICE_SELECTOR,
                    record=recorder,
                )
            )
            ports = probe.apply(api, stage.namespace, app, stage.image)
            stage.note(
                Event.WORKLOAD_APPLIED,
                deployment=f"{stage.namespace}/{manifests.NAME}",
                image=stage.image,
                grace_period_s=app.grace_period_s,
            )
        with stage.phase("preflight: workload"):
            started = time.monotonic_ns()
            require(
                lambda: preflight.pods_ready(
                    watch.pods(), app.replicas, stage.namespace, time.monotonic_ns() - started
                ),
                recorder,
                timeout_s=POD_READY_TIMEOUT_S,
                wait=watch.wait_changed,
            )
            require(
                lambda: preflight.watches_delivering(watch.delivering(), stage.namespace),
                recorder,
                timeout_s=30,
                wait=watch.wait_changed,
            )
            target = _target(stage, watch)
            logs = tuple(
                probe.LogFollower(api, stage.namespace, pod.name, pod.uid, recorder)
                for pod in target.pods
            )
            period_ms = stage.cluster.facts().min_sync_period_ms
            stable = preflight.EndpointStability(2 * (period_ms or 1000) * NS_PER_MS)
            require(
                lambda: stable.check(
                    watch.slices(),
                    [pod.uid for pod in target.pods],
                    time.monotonic_ns(),
                    stage.namespace,
                ),
                recorder,
                timeout_s=ENDPOINT_TIMEOUT_S,
            )
        yield Probe(stage=stage, watch=watch, ports=ports, target=target, logs=logs)


@contextmanager
def hold(ready: Probe) -> Iterator[Held]:
    """The flows, up to: each of them answered, over the real path, often enough."""
    stage, wanted = ready.stage, ready.stage.scenario.flows
    with ExitStack() as stack:
        with stage.phase("preflight: flows"):
            require(
                lambda: preflight.limits_suffice(wanted.tcp + wanted.udp),
                stage.recorder,
                timeout_s=0,
            )
            agent = FlowAgent(stage.cluster.agent_command, _agent_config(ready))
            stage.agent = agent
            stack.callback(agent.stop)
            for check in _flow_checks(agent, wanted):
                require(check, stage.recorder, timeout_s=FLOWS_TIMEOUT_S, wait=agent.wait_changed)
            stage.note(Event.PREFLIGHT_PASSED, tcp_flows=wanted.tcp, udp_flows=wanted.udp)
        yield Held(probe=ready, agent=agent)


def measure(held: Held) -> Trial:
    """Settle, trigger, observe, collect; then judge and write. The probe is spent after it."""
    stage, watch, agent = held.probe.stage, held.probe.watch, held.agent
    scenario = stage.scenario
    with stage.phase("settle", scenario.settle_ns):
        settled_ns = time.monotonic_ns() + scenario.settle_ns
        watch_until(stage, watch, agent, settled_ns, undisturbed(agent))
        stage.note(Event.SETTLE_COMPLETE, settle_ns=scenario.settle_ns)
    with stage.phase("trigger"):
        accepted = trigger.fire(
            stage.api,
            scenario.trigger,
            held.probe.target,
            stage.recorder,
            timeout_s=scenario.observe_ns / NS_PER_S,
        )
    with stage.phase("observe", scenario.expected_ns - scenario.settle_ns):
        closes_ns = time.monotonic_ns() + scenario.observe_ns
        over = watch_until(stage, watch, agent, closes_ns, all_over(watch, agent, accepted.targets))
        stage.note(Event.ALL_FLOWS_TERMINAL if over else Event.OBSERVATION_WINDOW_CLOSED)
    with stage.phase("collect"):
        agent.stop()
        for log in held.probe.logs:
            log.join(2.0)
        recording = stage.recorder.finish(agent.part)
    with stage.phase("judge"):
        judged = derive(recording)
        write_atomic(stage.folder / "report.json", report.dumps(judged))
    return Trial(scenario=scenario, report=judged, folder=stage.folder)


def _target(stage: Stage, watch: Watch) -> Target:
    pods = sorted(
        (Pod(name=str(fields["name"]), uid=uid) for uid, fields in watch.pods().items()),
        key=lambda pod: pod.name,
    )
    return Target(
        namespace=stage.namespace, pod=pods[0], deployment=manifests.NAME, pods=tuple(pods)
    )


def _agent_config(ready: Probe) -> AgentConfig:
    cluster, wanted = ready.stage.cluster, ready.stage.scenario.flows
    address = cluster.node_address
    return AgentConfig(
        record=str(ready.stage.folder / ".flows.jsonl"),
        tcp=Endpoint(address=address, port=ready.ports.tcp, flows=wanted.tcp),
        udp=Endpoint(address=address, port=ready.ports.udp, flows=wanted.udp),
        target=ready.target.pod.uid,
        source_address=next(iter(cluster.source_addresses), None),
        tcp_rate_hz=wanted.tcp_rate_hz,
        udp_rate_hz=wanted.udp_rate_hz,
    )


def _flow_checks(agent: FlowAgent, wanted: Flows) -> list[Callable[[], preflight.Check]]:
    def error() -> str | None:
        try:
            agent.check_alive()
        except AgentFailed as failed:
            return str(failed)
        return None

    def look(check: Callable[[AgentStatus], preflight.Check]) -> Callable[[], preflight.Check]:
        return lambda: check(agent.status())

    return [
        look(lambda now: preflight.flows_dialled(wanted, now.tcp, now.udp, error())),
        look(lambda now: preflight.tcp_answered(wanted, now.tcp, error())),
        look(lambda now: preflight.udp_answered(wanted, now.udp, error())),
        look(lambda now: preflight.clock_identified(now.clocks, error())),
    ]


def _text(value: object) -> str | None:
    return None if value is None else str(value)
