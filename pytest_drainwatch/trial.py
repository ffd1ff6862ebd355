"""The conductor: how one trial goes, from an empty namespace to report.json.

    prepare   an API connection, the environment record, a recording, a namespace
    deploy    the probe, or a workload that is attached to, and the watches; preflight: are
              these the pods we mean, and stable?
    hold      the flow agent and its flows; preflight: does every flow really work?
    measure   settle -> trigger -> observe -> collect -> derive -> write

The first three are context managers, so that pytest fixtures can hold them open;
:func:`run_trial` is all four in a row. Whatever goes wrong before the report is
written makes the trial void: the recording stays, with the evidence, and no
report.json appears.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_drainwatch import __version__, environment, preflight, report, trigger
from pytest_drainwatch.api import ApiUnavailable, connect
from pytest_drainwatch.attaching import adopt, attached
from pytest_drainwatch.beside import Beside
from pytest_drainwatch.cluster import Cluster, ClusterError
from pytest_drainwatch.collect import collect
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import Header
from pytest_drainwatch.core.scenario import Access, Scenario, Trigger
from pytest_drainwatch.deploying import deployed
from pytest_drainwatch.flows.clockid import clock_id
from pytest_drainwatch.flows.process import FlowAgent
from pytest_drainwatch.fronting import NOT_THEIRS
from pytest_drainwatch.holding import Held, checks_of, task_of
from pytest_drainwatch.measured import Trial
from pytest_drainwatch.mechanism import Evidence
from pytest_drainwatch.placement import Placement
from pytest_drainwatch.preflight import TrialVoid, require
from pytest_drainwatch.priority import running_soon
from pytest_drainwatch.recorder import Recorder, RecorderError, write_atomic
from pytest_drainwatch.rights.checking import allowed
from pytest_drainwatch.room import room
from pytest_drainwatch.stage import Keep, Progress, Stage, record_void
from pytest_drainwatch.standing import Standing
from pytest_drainwatch.terminating import observe, terminate
from pytest_drainwatch.vigil import check_alive
from pytest_drainwatch.workload import manifests
from pytest_drainwatch.workload.namespace import owner

FLOWS_TIMEOUT_S = 45.0

__all__ = ["Held", "Trial", "TrialVoid", "deploy", "hold", "measure", "prepare", "run_trial"]


def run_trial(
    cluster: Cluster,
    scenario: Scenario,
    *,
    folder: Path,
    keep: Keep,
    progress: Progress,
    placement: Placement | None = None,
) -> Trial:
    """One trial from end to end. Raises :class:`TrialVoid` if it could not be measured."""
    with ExitStack() as stack:
        stage = stack.enter_context(
            prepare(
                cluster,
                scenario,
                folder=folder,
                keep=keep,
                progress=progress,
                placement=placement,
            )
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
    placement: Placement | None = None,
) -> Iterator[Stage]:
    """Everything that needs no probe: connection, rights, environment, recording, namespace.

    ``test`` and ``repeat`` say in the header which test measures, and which of its repeats.
    """
    placement = placement or Placement()
    trial_name = manifests.namespace_name(scenario.id, time.monotonic_ns() % 16**8)
    theirs = scenario.workload
    name = theirs.namespace if theirs else placement.namespace or trial_name
    outside = scenario.service.access is Access.NODE_PORT
    target_host = cluster.node_address if outside else None  # a ClusterIP is not known yet
    if placement.address is not None:
        target_host = str(placement.address)
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
        if name != trial_name:
            cluster.admit(name)
        image = "" if theirs else cluster.ensure_probe_image()
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
        placement=placement,
        trial=trial_name if placement.namespace and not theirs else None,
    )
    progress.follow(stage)

    def keep_namespace() -> bool:
        deleted = scenario.trigger is Trigger.NAMESPACE_DELETE  # there is nothing to keep
        kept = not deleted and keep(failed=stage.failed)
        if kept:
            what = f"{stage.place.probe} in " if stage.trial else ""
            progress.line(f"kept {what}namespace {name}")
        return kept

    with ExitStack() as stack:
        stack.callback(api.close)
        stack.callback(recorder.close)
        with stage.phase("prepare"):
            require(lambda: preflight.version_readable(facts), recorder, timeout_s=0)
            allowed(stage)
            if theirs:
                adopt(stage)
                if theirs.kind is None:
                    allowed(stage)  # now that it is known what controls the pods
            else:
                stack.enter_context(room(stage, keep_namespace))
        stack.callback(stage.abandon)
        yield stage


@contextmanager
def deploy(stage: Stage) -> Iterator[Standing]:
    """The workload and its watches, up to: these pods, ready, and stable behind the Service."""
    with attached(stage) if stage.found else deployed(stage) as ready:
        yield ready


@contextmanager
def hold(ready: Standing) -> Iterator[Held]:
    """The flows, up to: each of them answered, over the real path, often enough."""
    stage, wanted = ready.stage, ready.stage.scenario.flows
    with ExitStack() as stack:
        with stage.phase("preflight: flows"):
            config = task_of(ready, agents=_agents(stage))
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
            for check in checks_of(ready, agent):
                require(check, stage.recorder, timeout_s=timeout_s, wait=wait, alive=alive)
            stage.note(Event.PREFLIGHT_PASSED, tcp_flows=wanted.tcp, udp_flows=wanted.udp)
        yield Held(probe=ready, agent=agent)


def measure(held: Held) -> Trial:
    """Settle, trigger, observe, collect; then judge and write. The probe is spent after it."""
    stage, watch, agent = held.probe.stage, held.probe.watch, held.agent
    beside = Beside(stage)
    with (
        running_soon(),
        _evidence(held.probe) as evidence,
        _armed(held.probe) as armed,
        ExitStack() as turn,
    ):
        accepted = terminate(held, armed, evidence, beside, turn)
        observe(held, accepted, evidence, beside, turn)
        if armed.changed:
            with stage.phase("put back"):
                armed.put_back()
    with stage.phase("collect"):
        agent.stop()
        collect(stage, watch, held.probe.logs, accepted.targets)
        watch.stop()  # writes the gaps that are still open
        recording = stage.recorder.finish(agent.part)
    with stage.phase("judge"):
        judged = derive(recording)
        write_atomic(stage.folder / "report.json", report.dumps(judged))
    return Trial(scenario=stage.scenario, report=judged, folder=stage.folder)


def _evidence(ready: Standing) -> Evidence:
    """What looks into the node's network beside the trial."""
    stage, way = ready.stage, ready.way
    return Evidence(
        stage.cluster.node_network,
        ready.watch,
        stage.recorder,
        service=ready.service,
        sources=way.sources[:1],
        ports=(("tcp", way.tcp), ("udp", way.udp)),
        blind=None if stage.front is None else NOT_THEIRS,
    )


def _armed(ready: Standing) -> trigger.Armed:
    """The trigger, which puts back what it changed beside the pods."""
    stage = ready.stage
    return trigger.Armed(
        stage.api,
        stage.scenario.trigger,
        ready.target,
        stage.recorder,
        stage.progress.line,
        owner=owner(),
    )


def _agents(stage: Stage) -> int:
    """How many agents may be at work on this machine. Trials on one cluster take turns."""
    return environment.xdist_workers() if stage.cluster.provider == "embedded" else 1
