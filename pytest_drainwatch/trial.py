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
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_drainwatch import __version__, environment, preflight, report, trigger
from pytest_drainwatch.api import Api, ApiUnavailable, connect, explain, failures
from pytest_drainwatch.cluster import Cluster, ClusterError
from pytest_drainwatch.core.clock import ClockError
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Counts, FlowReport, Report, Summary
from pytest_drainwatch.core.flow import TCP_SILENT_NS, UDP_SILENT_COUNT
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import Header
from pytest_drainwatch.core.scenario import Flows, Scenario
from pytest_drainwatch.core.scenario import Trigger as Verb
from pytest_drainwatch.flows.clockid import clock_id
from pytest_drainwatch.flows.config import AgentConfig, Endpoint
from pytest_drainwatch.flows.process import AgentFailed, AgentStatus, FlowAgent
from pytest_drainwatch.preflight import TrialVoid, require
from pytest_drainwatch.recorder import Recorder, RecorderError, write_atomic
from pytest_drainwatch.trigger import Pod, Target, TriggerFailed
from pytest_drainwatch.watch import Watch
from pytest_drainwatch.workload import manifests, namespace, probe

POD_READY_TIMEOUT_S = 120.0
ENDPOINT_TIMEOUT_S = 60.0
FLOWS_TIMEOUT_S = 45.0
API_SILENT_S = 10.0
# After the last target flow and pod are gone, for late frames.
LINGER_NS = 1 * NS_PER_S
# Flows that are merely unanswered need longer: silence is judged after seconds, and a node
# tells that a host is unreachable only when its neighbour table has given up (3 s).
LINGER_UNANSWERED_NS = {"udp": 6 * NS_PER_S, "tcp": TCP_SILENT_NS + 2 * NS_PER_S}

__all__ = ["Progress", "Trial", "TrialVoid", "deploy", "hold", "measure", "prepare", "run_trial"]


class Progress(Protocol):
    """Whoever shows a person how far a trial is."""

    def phase(self, name: str, expected_ns: int | None = None) -> None:
        """A phase begins, and is expected to take so long."""

    def status(self, text: str) -> None:
        """Something changed within the phase."""


class Keep(Protocol):
    """Whether a trial's namespace stays, given whether the trial failed."""

    def __call__(self, *, failed: bool) -> bool: ...


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


@dataclass(slots=True, kw_only=True)
class Stage:
    """What the phases of one trial share."""

    cluster: Cluster
    api: Api
    scenario: Scenario
    folder: Path
    recorder: Recorder
    image: str
    namespace: str
    progress: Progress
    agent: FlowAgent | None = None
    failed: bool = False

    @contextmanager
    def phase(self, name: str, expected_ns: int | None = None) -> Iterator[None]:
        """Run a phase; whatever ends it early voids the trial and keeps the evidence."""
        self.progress.phase(name, expected_ns)
        try:
            yield
        except TrialVoid as error:
            self._void(Event.VOID, name, str(error))
            raise
        except KeyboardInterrupt as error:
            self._void(Event.INTERRUPTED, name, str(error) or "SIGINT")
            raise
        except (ClusterError, AgentFailed, TriggerFailed, RecorderError, ClockError) as error:
            self._void(Event.VOID, name, str(error))
            raise TrialVoid(f"void in phase '{name}': {error}") from error
        except failures() as error:
            self._void(Event.VOID, name, explain(error))
            raise TrialVoid(
                f"void in phase '{name}': the API server failed: {explain(error)}; expected it to "
                "answer throughout the trial. Look at: kubectl get --raw /readyz"
            ) from error
        except Exception as error:
            self._void(Event.VOID, name, repr(error))
            raise

    def note(self, event: Event, **data: object) -> None:
        """Record something that the conductor itself did, now."""
        at = Interval.point(time.monotonic_ns())
        self.recorder(Observation(source=Source.ORCHESTRATOR, event=event, at=at, data=data))

    def _void(self, event: Event, phase: str, reason: str) -> None:
        self.failed = True
        with suppress(RecorderError, AgentFailed):
            if self.agent is not None:
                self.agent.stop()
            kind = "signal" if event is Event.INTERRUPTED else "reason"
            self.note(event, phase=phase, **{kind: reason})
            now = Interval.point(time.monotonic_ns())
            if event is Event.VOID:
                for seen in probe.evidence(self.api, self.namespace, now):
                    self.recorder(seen)
            self.recorder.finish(self.agent.part if self.agent else None)


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
            "config": resolved_config(scenario, cluster, name),
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
    stage, agent, target = held.probe.stage, held.agent, held.probe.target
    scenario = stage.scenario
    with stage.phase("settle", scenario.settle_ns):
        _watch_until(held, time.monotonic_ns() + scenario.settle_ns, _undisturbed(agent))
        stage.note(Event.SETTLE_COMPLETE, settle_ns=scenario.settle_ns)
    with stage.phase("trigger"):
        trigger.fire(
            stage.api,
            scenario.trigger,
            target,
            stage.recorder,
            timeout_s=scenario.observe_ns / NS_PER_S,
        )
    with stage.phase("observe", scenario.expected_ns - scenario.settle_ns):
        ended = _watch_until(held, time.monotonic_ns() + scenario.observe_ns, _all_over(held))
        stage.note(Event.ALL_FLOWS_TERMINAL if ended else Event.OBSERVATION_WINDOW_CLOSED)
    with stage.phase("collect"):
        agent.stop()
        for log in held.probe.logs:
            log.join(2.0)
        recording = stage.recorder.finish(agent.part)
    with stage.phase("judge"):
        judged = derive(recording)
        write_atomic(stage.folder / "report.json", report.dumps(judged))
    return Trial(scenario=scenario, report=judged, folder=stage.folder)


def resolved_config(scenario: Scenario, cluster: Cluster, name: str) -> dict[str, object]:
    """Every value that shapes a trial, under the ancestor's names where it has one."""
    app, flows = scenario.app, scenario.flows
    return {
        "tcp_flows": flows.tcp,
        "udp_flows": flows.udp,
        "tcp_rate_hz": flows.tcp_rate_hz,
        "udp_rate_hz": flows.udp_rate_hz,
        "grace_period_seconds": app.grace_period_s,
        "drain_behavior": str(app.behavior),
        "drain_max_seconds": app.drain_ns / NS_PER_S,
        "readiness_on_drain": str(app.readiness_on_drain),
        "exit_now_reset": app.exit_now_reset,
        "replicas": app.replicas,
        "trigger": str(scenario.trigger),
        "workload": "deploy",
        "namespace": name,
        "target_host": cluster.node_address,
        "tcp_port": manifests.TCP_PORT,
        "udp_port": manifests.UDP_PORT,
        "settle_seconds": scenario.settle_ns / NS_PER_S,
        "observe_timeout_seconds": scenario.observe_ns / NS_PER_S,
        "flow_timeout_seconds": TCP_SILENT_NS / NS_PER_S,
        "udp_silence_datagrams": UDP_SILENT_COUNT,
    }


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


def _watch_until(held: Held, deadline_ns: int, look: Callable[[], bool]) -> bool:
    """Wait for ``look`` or the deadline, while everything that must live lives."""
    stage, watch = held.probe.stage, held.probe.watch
    api_failed_since: float | None = None
    while (left_ns := deadline_ns - time.monotonic_ns()) > 0:
        if look():
            return True
        held.agent.check_alive()
        stage.cluster.check()
        if stage.recorder.problem:
            raise RecorderError(stage.recorder.problem)
        if watch.problem is None:
            api_failed_since = None
        elif api_failed_since is None:
            api_failed_since = time.monotonic()
        elif time.monotonic() - api_failed_since > API_SILENT_S:
            raise TrialVoid(
                f"the API server has not answered for {API_SILENT_S:g} s ({watch.problem}); "
                "expected it to live throughout the trial. Look at: kubectl get --raw /readyz"
            )
        stage.progress.status(held.agent.status().summary())
        held.agent.wait_changed(min(0.1, left_ns / NS_PER_S))
    return look()


def _undisturbed(agent: FlowAgent) -> Callable[[], bool]:
    """Never true; voids the trial when a flow ends before the trigger."""

    def look() -> bool:
        ended = agent.status().first_ends
        if ended:
            raise TrialVoid(
                "preflight check 'settled' failed\n"
                "  invariant: no flow ends before the trigger\n"
                f"  observed:  {'; '.join(ended)}\n"
                "  expected:  every flow alive through the settle time\n"
                "  look at:   the probe's log in recording.jsonl; kube-proxy; the node's load"
            )
        return False

    return look


def _all_over(held: Held) -> Callable[[], bool]:
    """True once nothing more can happen to the targets, and a moment has passed."""
    watch = held.probe.watch
    scenario = held.probe.stage.scenario
    ended = held.probe.target.pods if scenario.trigger is Verb.SCALE else [held.probe.target.pod]
    uids = {pod.uid for pod in ended}
    over_since: list[int] = []

    def look() -> bool:
        listed = {
            str(endpoint.get("uid"))
            for item in watch.slices().values()
            for endpoint in _dicts(item.get("endpoints"))
        }
        gone = not uids & watch.pods().keys() and not uids & listed
        status = held.agent.status()
        if not gone or status.target_answering:
            over_since.clear()
            return False
        now = time.monotonic_ns()
        over_since[:] = over_since or [now]
        linger = LINGER_NS
        if status.udp.target_alive:
            linger = LINGER_UNANSWERED_NS["udp"]
        if status.tcp.target_alive:
            linger = LINGER_UNANSWERED_NS["tcp"]
        return now - over_since[0] >= linger

    return look


def _dicts(value: object) -> list[dict[str, object]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return None if value is None else str(value)
