"""What does not depend on connections, as a trial records it: header, trigger, API frames.

Instants of the model count from the trigger; those of a recording are stamps of a clock,
on which the trigger was sent at :data:`T0_NS`. There is no wall clock: frames that name one
count from the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import Header
from pytest_drainwatch.core.scenario import App, Scenario, Trigger
from pytest_drainwatch.core.simulation.cluster import EndpointsChange, Pod
from pytest_drainwatch.core.simulation.termination import Termination

CLOCK = "simulated"
T0_NS = 10_000 * NS_PER_S
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SLICE = "simulated-probe"
NODE = "simulated-node"
ADDRESS = "192.0.2.1"
TCP_PORT, UDP_PORT, HTTP_PORT = 7001, 7002, 7003
NAMESPACE = "simulated"


def at(lo_ns: int, hi_ns: int | None = None) -> Interval:
    """An instant since the trigger, as a stamp."""
    return Interval(T0_NS + lo_ns, T0_NS + (lo_ns if hi_ns is None else hi_ns))


def header(
    scenario: Mapping[str, object],
    *,
    version: str,
    trial_id: str,
    environment: Mapping[str, object] | None = None,
) -> Header:
    """The header of a simulated recording. ``scenario`` holds id, flags and config."""
    return Header(
        drainwatch_version=version,
        git_commit="simulated",
        trial_id=trial_id,
        wall_clock_start=_wall(-T0_NS),
        clock=CLOCK,
        scenario=scenario,
        environment={
            "provider": "simulated",
            "provider_why": "a model predicted this trial; nothing of it was measured",
            "drainwatch_version": version,
            **(environment or {}),
        },
        simulated=True,
    )


def described(scenario: Scenario) -> dict[str, object]:
    """A scenario as a header holds it."""
    config = {**scenario.config(), "namespace": NAMESPACE, "target_host": ADDRESS}
    return {"id": scenario.id, "flags": list(scenario.flags), "config": config}


def surroundings(scenario: Scenario, min_period_ns: int) -> dict[str, object]:
    """What the model takes the cluster for."""
    mode = scenario.cluster.proxy_mode
    return {
        "kubernetes_version": scenario.cluster.kube_version,
        "node_count": 1,
        "kube_proxy_mode": "iptables" if mode is None else str(mode),
        "min_sync_period_ms": min_period_ns // 1_000_000,
    }


def source(number: int) -> str:
    """The client's address for the flows (0), and for each prober."""
    return f"198.51.100.{number + 1}"


# --- the orchestrator's own ---------------------------------------------------------------


def begun(app: App, before_ns: int, sources: int) -> Iterator[Observation]:
    """Up to the trigger: the watches, the workload, the way to it from so many addresses."""
    for resource in ("pods", "endpointslices"):
        yield _k8s(Event.WATCH_LISTED, before_ns, "", resource=resource, subjects=[])
    yield _own(
        Event.WORKLOAD_APPLIED,
        before_ns,
        deployment=f"{NAMESPACE}/{SLICE}",
        image="simulated",
        grace_period_s=app.grace_period_s,
    )
    yield _own(
        Event.WAY_CHOSEN,
        before_ns,
        address=ADDRESS,
        tcp_port=TCP_PORT,
        udp_port=UDP_PORT,
        sources=[source(number) for number in range(sources)],
        note=None,
        node=NODE,
    )


def accepted(trigger: Trigger, targets: Sequence[Pod], call_ns: int) -> Observation:
    """The trigger's call, at t = 0."""
    return Observation(
        source=Source.ORCHESTRATOR,
        event=Event.TRIGGER_ACCEPTED,
        at=at(0, call_ns),
        data={
            "verb": str(trigger),
            "attempt": 1,
            "targets": [pod.uid for pod in targets],
            "pods": [pod.name for pod in targets],
            "calls": [[T0_NS, T0_NS + call_ns]],
        },
    )


def over(pods: Sequence[Pod], end_ns: int, *, terminal: bool) -> Iterator[Observation]:
    """The end of the observation, and what is read after it."""
    event = Event.ALL_FLOWS_TERMINAL if terminal else Event.OBSERVATION_WINDOW_CLOSED
    yield _own(event, end_ns)
    for pod in pods:
        yield _own(Event.LOG_ENDED, end_ns, pod.uid, container="probe", complete=True, problem=None)
    told = [pod for pod in pods if pod.end is not None]
    for pod in told:
        yield _own(
            Event.CLUSTER_EVENT,
            end_ns,
            pod.uid,
            reason="Killing",
            type="Normal",
            message="Stopping container probe",
            count=1,
            container="probe",
        )
    yield _own(Event.CLUSTER_EVENTS_READ, end_ns, count=len(told), problem=None)


# --- what the API server shows -------------------------------------------------------------


def frames(pod: Pod, trigger: Trigger, grace_s: int) -> Iterator[Observation]:
    """Every frame of a pod, in order."""
    yield _frame(pod, pod.created_ns, "ADDED", phase="Pending", ready=None)
    happens: list[tuple[int | None, str]] = [(pod.running_ns, "running"), (pod.ready_ns, "ready")]
    end = pod.end
    if end is not None:
        happens += [(end.deletion_ns, "deletion"), (pod.unready_ns, "unready")]
        happens += [(pod.terminated_ns, "terminated"), (pod.deleted_ns, "deleted")]
    shown: dict[str, object] = {"phase": "Pending", "ready": False}
    for at_ns, what in sorted((ns, what) for ns, what in happens if ns is not None):
        match what:
            case "running":
                shown |= {"phase": "Running", "containers": [_container("running")]}
            case "ready" | "unready":
                shown |= {"ready": what == "ready"}
            case "deletion":
                shown |= _deletion(trigger, at_ns, grace_s)
            case "terminated" if end is not None:
                phase = "Failed" if end.killed else "Succeeded"
                shown |= {"phase": phase, "ready": False, "containers": [_terminated(end)]}
        yield _frame(pod, at_ns, "DELETED" if what == "deleted" else "MODIFIED", **shown)


def slices(changes: Sequence[EndpointsChange], pods: Sequence[Pod]) -> Iterator[Observation]:
    """The Service's EndpointSlice whenever it changes."""
    known = {pod.uid: pod for pod in pods}
    for number, change in enumerate(changes):
        yield _k8s(
            Event.ENDPOINT_SLICE,
            change.at_ns,
            SLICE,
            type="MODIFIED" if number else "ADDED",
            name=SLICE,
            family="IPv4",
            endpoints=[
                {
                    "uid": uid,
                    "name": known[uid].name,
                    "addresses": [known[uid].address],
                    "node": NODE,
                    "ready": each.ready,
                    "serving": each.serving,
                    "terminating": each.terminating,
                }
                for uid, each in change.endpoints.items()
            ],
        )


def _deletion(trigger: Trigger, at_ns: int, grace_s: int) -> dict[str, object]:
    disruption = "EvictionByEvictionAPI" if trigger is Trigger.EVICT else None
    return {
        "deletion_timestamp": _wall(at_ns + grace_s * NS_PER_S),
        "deletion_grace_period_s": grace_s,
        "disruption": disruption,
    }


def _container(state: str, **fields: object) -> dict[str, object]:
    return {"name": "probe", "ready": state == "running", "restarts": 0, "state": state, **fields}


def _terminated(end: Termination) -> dict[str, object]:
    reason = "Error" if end.killed else "Completed"
    return _container("terminated", exit_code=end.exit_code, signal=None, reason=reason)


def _frame(pod: Pod, at_ns: int, kind: str, **shown: object) -> Observation:
    data = {"disruption": None, "deletion_timestamp": None, "containers": [], **shown}
    return _k8s(Event.POD, at_ns, pod.uid, type=kind, name=pod.name, node=NODE, **data)


def _k8s(event: Event, at_ns: int, subject: str, **data: object) -> Observation:
    return Observation(source=Source.K8S, event=event, at=at(at_ns), subject=subject, data=data)


def _own(event: Event, at_ns: int, subject: str = "", **data: object) -> Observation:
    return Observation(
        source=Source.ORCHESTRATOR, event=event, at=at(at_ns), subject=subject, data=data
    )


def _wall(at_ns: int) -> str:
    """Wall time as the API shows it; the trigger is sent at the epoch and T0_NS."""
    when = EPOCH + timedelta(microseconds=(T0_NS + at_ns) // 1000)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
