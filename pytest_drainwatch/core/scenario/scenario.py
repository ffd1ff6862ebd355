"""One trial's question, and what follows from it before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pytest_drainwatch.core.flow.signals import TCP_SILENT_NS, UDP_SILENT_COUNT
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.pod.kubelet import kill_after, sigterm_after
from pytest_drainwatch.core.scenario.app import App, Behavior, Controller, Pid1
from pytest_drainwatch.core.scenario.flows import Flows
from pytest_drainwatch.core.scenario.needs import ClusterNeeds
from pytest_drainwatch.core.scenario.service import Access, Affinity, Service, ViaNode
from pytest_drainwatch.core.scenario.values import (
    ScenarioError,
    become,
    check_kind,
    check_within,
)
from pytest_drainwatch.core.scenario.workload import PROBE_ONLY, Workload

# Without a trigger there is nothing to wait for.
NOTHING_NS = 10 * NS_PER_S
# A rollout ends a pod when its replacement is Ready.
REPLACED_NS = 4 * NS_PER_S
# The namespace controller comes to the pods about five seconds after the request.
NAMESPACE_NS = 6 * NS_PER_S
# The ancestor's word for the first.
WORKLOADS = {
    Controller.DEPLOYMENT: "deploy",
    Controller.STATEFUL_SET: "statefulset",
    Controller.DAEMON_SET: "daemonset",
}


class Trigger(StrEnum):
    """How pods are terminated."""

    DELETE = "delete"
    EVICT = "evict"
    SCALE = "scale"  # to zero: every pod at once
    ROLLOUT = "rollout"  # as `kubectl rollout restart` does: every pod, one after the other
    FORCE_DELETE = "force-delete"  # with gracePeriodSeconds 0: the object goes at once
    EVACUATE_NODE = "evacuate-node"  # as `kubectl drain` does: cordon, and evict its pods
    NAMESPACE_DELETE = "namespace-delete"  # pods, Service and controller go with it
    CONTAINER_KILL = "container-kill"  # SIGKILL to PID 1, past the API: the pod stays
    NONE = "none"  # a control: nothing is terminated, so nothing may be lost


# Those that end as many pods as are asked for; the others are about all pods, or a node's.
OF_SOME_PODS = (Trigger.DELETE, Trigger.FORCE_DELETE, Trigger.EVICT, Trigger.CONTAINER_KILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One trial's question. Raises :class:`ScenarioError` when it cannot be asked.

    ``targets`` is how many pods are deleted, evicted or killed at once. ``workload`` is the
    user's own; None: the probe, which is deployed for the trial as ``app`` describes it.
    """

    app: App = field(default_factory=App)
    flows: Flows = field(default_factory=Flows)
    service: Service = field(default_factory=Service)
    cluster: ClusterNeeds = field(default_factory=ClusterNeeds)
    trigger: Trigger = Trigger.DELETE
    targets: int = 1
    settle_ns: int = 10 * NS_PER_S
    observe_timeout_ns: int | None = None
    name: str = ""
    arm: str = ""  # its name among the arms of a question
    workload: Workload | None = None

    def __post_init__(self) -> None:
        check_kind("workload", self.workload, Workload, None)
        if self.workload is not None:
            self.workload.check()
            check_kind("flows", self.flows, Flows)
            object.__setattr__(self, "flows", self.workload.narrowed(self.flows))
        for part, kind in PARTS.items():
            check_kind(part, getattr(self, part), kind)
            getattr(self, part).check()
        check_kind("name", self.name, str)
        check_kind("arm", self.arm, str)
        become(self, "trigger", Trigger)
        check_within("settle_ns", self.settle_ns, 0, 3600 * NS_PER_S)
        if self.observe_timeout_ns is not None:
            check_within("observe_timeout_ns", self.observe_timeout_ns, NS_PER_S, 7200 * NS_PER_S)
        check_within("targets", self.targets, 1, 50)
        _check_together(self)

    @property
    def id(self) -> str:
        """The scenario's name in test ids and results: words joined with ``-``."""
        about = self.workload.slug if self.workload else self.app.behavior
        return self.name or f"{about}-{self.trigger}"

    @property
    def observe_ns(self) -> int:
        """How long flows are observed after the trigger, at most: 30 s beyond the latest
        instant at which the kubelet kills, by default, and beyond what a replacement takes.
        """
        if self.observe_timeout_ns is not None:
            return self.observe_timeout_ns
        if self.trigger is Trigger.NONE:
            return NOTHING_NS
        hears_ns = (self.cluster.min_sync_period_ms or 0) * NS_PER_MS
        later_ns = max(self._spread(self._killed_ns), self.replacement_ns) + hears_ns
        later_ns += self.notices_ns + self.returns_ns
        return self._killed_ns + later_ns + 30 * NS_PER_S

    @property
    def expected_ns(self) -> int:
        """How long settle and observation will take, about; said before the wait."""
        if self.trigger is Trigger.NONE:
            return self.settle_ns + self.observe_ns
        lasts_ns = self._ends_ns + self._spread(self._ends_ns) + 4 * NS_PER_S + self.notices_ns
        return self.settle_ns + min(lasts_ns, self.observe_ns)

    @property
    def replacement_ns(self) -> int:
        """For how long a pod that replaces another one is not yet Ready, at least."""
        return self.app.ready_after_s * NS_PER_S

    @property
    def notices_ns(self) -> int:
        """How long after a pod's end its node may still get new connections from a balancer."""
        return self.service.balancer.notices_ns if self.service.balancer else 0

    @property
    def returns_ns(self) -> int:
        """How long a balancer may take to hold a healthy node for healthy again."""
        return self.service.balancer.rises_ns if self.service.balancer else 0

    def _spread(self, end_ns: int) -> int:
        """How much later than the first the last pod is told to end, if each takes ``end_ns``."""
        if self.trigger is Trigger.NAMESPACE_DELETE:
            return NAMESPACE_NS
        if self.trigger not in (Trigger.ROLLOUT, Trigger.EVACUATE_NODE):
            return 0
        each_ns = REPLACED_NS + self.replacement_ns
        if self.trigger is Trigger.EVACUATE_NODE:
            # All at once, unless a disruption budget lets them go one after the other.
            return (self.app.replicas - 1) * each_ns
        if self.app.controller is not Controller.DEPLOYMENT:
            each_ns += end_ns  # the replacement is made when its predecessor is gone
        return self.app.replicas * each_ns

    @property
    def _ends_ns(self) -> int:
        """From when it is told to a pod's end, about."""
        app = self.app
        if self.trigger is Trigger.CONTAINER_KILL:
            return 0
        term = sigterm_after(app.grace_period_s, self._hook_ns)
        ends = {Behavior.DRAIN: term + app.drain_ns, Behavior.EXIT_NOW: term}
        if app.pid1 is Pid1.SHELL or self.workload is not None:  # whose ways nobody knows
            return self._killed_ns
        return min(ends.get(app.behavior, self._killed_ns), self._killed_ns)

    @property
    def _hook_ns(self) -> int:
        return self.app.pre_stop.lasts_ns if self.app.pre_stop else 0

    @property
    def _killed_ns(self) -> int:
        return kill_after(self.app.grace_period_s, self._hook_ns)

    def config(self) -> dict[str, object]:
        """Every value that shapes a trial, under the ancestor's names where it has one."""
        app, flows, service = self.app, self.flows, self.service
        return {
            "tcp_flows": flows.tcp,
            "udp_flows": flows.udp,
            "udp_one_way_flows": flows.udp_one_way,
            "tcp_rate_hz": flows.tcp_rate_hz,
            "udp_rate_hz": flows.udp_rate_hz,
            "tcp_sparse_rate_hz": flows.sparse_rates_hz[0],
            "udp_sparse_rate_hz": flows.sparse_rates_hz[1],
            "grace_period_seconds": app.grace_period_s,
            "drain_behavior": str(app.behavior),
            "drain_max_seconds": app.drain_ns / NS_PER_S,
            "readiness_on_drain": str(app.readiness_on_drain),
            "exit_now_reset": app.exit_now_reset,
            "replicas": app.replicas,
            "pre_stop": app.pre_stop.config() if app.pre_stop else None,
            "pid1": str(app.pid1),
            "response_delay_ms": app.response_delay_ns / NS_PER_MS,
            "accept_on_drain": str(app.accept_on_drain),
            "ready_after_seconds": app.ready_after_s,
            "access": str(service.access),
            "external_traffic_policy": str(service.external_traffic_policy),
            "session_affinity": str(service.session_affinity),
            "publish_not_ready_addresses": service.publish_not_ready_addresses,
            "probe_interval_ms": _ms(flows.probe_interval_ns),
            "udp_probe_interval_ms": _ms(flows.udp_probe_interval_ns),
            "probe_sparse_interval_ms": _ms(flows.probe_sparse_intervals_ns[0]),
            "udp_probe_sparse_interval_ms": _ms(flows.probe_sparse_intervals_ns[1]),
            "cluster": self.cluster.config(),
            "trigger": str(self.trigger),
            "targets": self.targets,
            "workload": WORKLOADS[app.controller],
            "settle_seconds": self.settle_ns / NS_PER_S,
            "observe_timeout_seconds": self.observe_ns / NS_PER_S,
            "flow_timeout_seconds": TCP_SILENT_NS / NS_PER_S,
            "udp_silence_datagrams": UDP_SILENT_COUNT,
            **app.unusual(),
            **flows.unusual(),
            **service.unusual(),
            **self._attached(),
        }

    def _attached(self) -> dict[str, object]:
        """What is else of a workload of the user's: of the probe's ways it has none."""
        if self.workload is None:
            return {}
        return {
            **dict.fromkeys(PROBE_ONLY),
            "workload": self.workload.what,
            "attached": self.workload.config(),
        }

    @property
    def flags(self) -> tuple[str, ...]:
        """What is unusual enough to be said in header and report."""
        app, found = self.app, list[str]()
        if self.trigger is Trigger.CONTAINER_KILL:
            return ()  # nobody is told, so nobody drains
        left_ns = self._killed_ns - sigterm_after(app.grace_period_s, self._hook_ns)
        if app.pre_stop and app.pre_stop.lasts_ns >= app.grace_period_s * NS_PER_S:
            found.append(
                f"preStop ({app.pre_stop.lasts_ns / NS_PER_S:g} s) >= grace period "
                f"({app.grace_period_s} s): SIGTERM comes at the end of the grace period and the "
                f"app gets {left_ns / NS_PER_S:g} s"
            )
        drains = app.behavior is Behavior.DRAIN and self.workload is None
        if drains and app.drain_ns >= left_ns:
            given = f"grace period ({app.grace_period_s} s)"
            if app.pre_stop:
                given = f"what {given} and preStop leave after SIGTERM ({left_ns / NS_PER_S:g} s)"
            found.append(
                f"drain window ({app.drain_ns / NS_PER_S:g} s) >= {given}: "
                "the kubelet kills the pod before it has drained"
            )
        if self.trigger is Trigger.EVACUATE_NODE:
            found.append("every pod of the node is evicted, as by kubectl drain: others' pods too")
        if app.pid1 is Pid1.SHELL:
            found.append("a shell is PID 1: it does not pass SIGTERM on to the probe")
        return tuple(found)


PARTS = {"app": App, "flows": Flows, "service": Service, "cluster": ClusterNeeds}


def _check_together(asked: Scenario) -> None:
    """Refuse values of different parts that cannot be together."""
    app, flows, trigger = asked.app, asked.flows, asked.trigger
    requests = asked.workload is not None and asked.workload.http is not None
    if flows.tcp + flows.udp == 0 and not requests:
        raise ScenarioError("a trial needs at least one flow; tcp flows and udp flows are 0")
    if asked.targets > app.replicas:
        raise ScenarioError(
            f"targets is {asked.targets} and replicas {app.replicas}: there are not so many pods "
            "to terminate"
        )
    if asked.targets > 1 and trigger not in OF_SOME_PODS:
        some = " or ".join(repr(str(each)) for each in OF_SOME_PODS)
        raise ScenarioError(
            f"targets is {asked.targets} and trigger {str(trigger)!r}: that trigger is about all "
            f"pods, those of a node, or none; expected {some}, or targets 1"
        )
    if app.controller is Controller.DAEMON_SET and asked.workload is None:
        _check_daemon_set(asked)
    pinned = asked.service.session_affinity is Affinity.CLIENT_IP and app.replicas > 1
    if pinned and (flows.udp_one_way or (flows.tcp and flows.udp)):
        raise ScenarioError(
            "session_affinity is 'ClientIP' with several replicas: kube-proxy pins TCP and UDP "
            "of one client to pods of their own, so no pod has both; expected tcp or udp flows "
            "to be 0, and no one-way flows"
        )
    if pinned and asked.service.via_node is not ViaNode.ANY:
        raise ScenarioError(
            f"via_node is {str(asked.service.via_node)!r} and session_affinity 'ClientIP' with "
            "several replicas: kube-proxy chooses the pod; expected via_node 'any'"
        )
    if asked.service.balancer is not None:
        _check_balanced(asked)
    if flows.probe_each_node and asked.service.access is not Access.NODE_PORT:
        raise ScenarioError(
            f"probe_each_node is True and access {str(asked.service.access)!r}: only NodePorts "
            "are tried node by node; expected access 'nodeport'"
        )


def _check_balanced(asked: Scenario) -> None:
    """It carries TCP alone, over any node that it holds healthy, to the probe."""
    flows = asked.flows
    if asked.workload is not None:
        raise ScenarioError(
            f"a balancer is asked for in front of {asked.workload.what}, whose Service is left as "
            "it is; expected the probe, or no balancer (--dw-path=direct)"
        )
    if flows.udp or flows.udp_one_way or flows.udp_probe_interval_ns is not None:
        raise ScenarioError(
            "a balancer is asked for and UDP, and HAProxy carries TCP alone: expected udp flows to "
            "be 0 (--dw-udp-flows 0), no one-way flows and udp_probe_interval_ns None, or no "
            "balancer (--dw-path=direct)"
        )
    if flows.probe_each_node:
        raise ScenarioError(
            "a balancer is asked for and probe_each_node is True: it chooses the node of each "
            "connection; expected probe_each_node False"
        )


def _check_daemon_set(asked: Scenario) -> None:
    """A DaemonSet has a pod for each node, and whoever empties a node leaves it there."""
    nodes = asked.cluster.nodes or 1
    if asked.app.replicas != nodes:
        raise ScenarioError(
            f"controller is 'daemonset' and replicas {asked.app.replicas}: it has one pod for each "
            f"node; expected {nodes}, as nodes says, or another number of nodes"
        )
    if asked.trigger in (Trigger.SCALE, Trigger.EVACUATE_NODE):
        raise ScenarioError(
            f"controller is 'daemonset' and trigger {str(asked.trigger)!r}: its pods cannot be "
            "scaled, and kubectl drain leaves them; expected another trigger, or a deployment"
        )


def _ms(interval_ns: int | None) -> float | None:
    return None if interval_ns is None else interval_ns / NS_PER_MS
