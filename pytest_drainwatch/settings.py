"""What a run was told: options resolved from their sources, and put over scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_drainwatch.options import OPTIONS, Option, OptionError, from_environment

if TYPE_CHECKING:
    from pytest_drainwatch.core.scenario import Scenario, Workload
    from pytest_drainwatch.placement import Address, Placement

__all__ = ["Settings", "from_environment", "idle", "resolve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the run was told, resolved once. ``origins`` says where each value came from."""

    cluster: str = "auto"
    kubeconfig: Path | None = None
    context: str | None = None
    kind_image: str | None = None
    kube_bin: Path | None = None
    kube_version: str | None = None
    proxy_mode: str | None = None
    min_sync_period: int | None = None
    nodes: int | None = None
    probe_image: str | None = None
    allow_context: str | None = None
    namespace: str | None = None
    pull_secret: tuple[str, ...] = ()
    address: Address | None = None
    path: str | None = None
    grace_period: int | None = None
    drain: int | None = None
    readiness_on_drain: str | None = None
    tcp_flows: int | None = None
    udp_flows: int | None = None
    tcp_rate: int | None = None
    udp_rate: int | None = None
    probe_interval: int | None = None
    udp_probe_interval: int | None = None
    probe_sparse_every: int | None = None
    attach: str | None = None
    attach_namespace: str | None = None
    attach_port: int | str | None = None
    attach_service: str | None = None
    attach_protocol: str | None = field(default=None, repr=False)  # its path may have a query
    attach_send: bytes | None = field(default=None, repr=False)
    attach_expect: str | None = field(default=None, repr=False)
    settle: int | None = None
    observe_timeout: int | None = None
    out: Path = Path("results")
    keep: str = "never"
    repeat: int | None = None
    fresh_cluster: str = "session"
    baseline: Path | None = None
    fail_on: frozenset[str] = frozenset({"regression"})
    across: frozenset[str] = frozenset()
    keep_runs: int | None = None
    trace: bool = False
    markdown: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)

    def keeps(self, *, failed: bool) -> bool:
        """Whether namespace and cluster outlive the run."""
        return self.keep == "always" or (self.keep == "on-failure" and failed)

    @property
    def placement(self) -> Placement:
        """Where a trial's objects go, and where its Service is reached."""
        from pytest_drainwatch.placement import Placement

        return Placement(
            namespace=self.namespace, pull_secrets=self.pull_secret, address=self.address
        )

    def apply(self, scenario: Scenario) -> Scenario:
        """The scenario with every value that was given on purpose put over its own.

        Raises :class:`~pytest_drainwatch.core.scenario.ScenarioError` if the
        result cannot be asked.
        """

        from pytest_drainwatch.core.scenario import (
            LoadBalancer,
            ProxyMode,
            Readiness,
            ScenarioError,
            Trigger,
        )

        if self.namespace is not None and scenario.trigger is Trigger.NAMESPACE_DELETE:
            raise ScenarioError(
                f"trigger is 'namespace-delete' and --dw-namespace={self.namespace}: a namespace "
                "that is given is left as it was; expected another trigger, or no --dw-namespace"
            )

        def given(**values: Any) -> dict[str, Any]:
            return {name: value for name, value in values.items() if value is not None}

        app = replace(
            scenario.app,
            **given(
                grace_period_s=self.grace_period,
                drain_ns=self.drain,
                readiness_on_drain=self.readiness_on_drain and Readiness(self.readiness_on_drain),
            ),
        )
        flows = replace(
            scenario.flows,
            **given(
                tcp=self.tcp_flows,
                udp=self.udp_flows,
                tcp_rate_hz=self.tcp_rate,
                udp_rate_hz=self.udp_rate,
                probe_sparse_every=self.probe_sparse_every,
            ),
        )
        # 0 says on purpose that nothing is tried, which a scenario's word for is None.
        for name in ("probe_interval", "udp_probe_interval"):
            if (interval_ns := getattr(self, name)) is not None:
                chosen: dict[str, Any] = {f"{name}_ns": interval_ns or None}
                flows = replace(flows, **chosen)
        cluster = replace(
            scenario.cluster,
            **given(
                kube_version=self.kube_version,
                proxy_mode=self.proxy_mode and ProxyMode(self.proxy_mode),
                min_sync_period_ms=self.min_sync_period,
                nodes=self.nodes,
            ),
        )
        service = scenario.service
        if self.path == "direct":
            service = replace(service, balancer=None)
        elif self.path == "haproxy":
            service = replace(service, balancer=service.balancer or LoadBalancer())
        if self.attach is not None:
            scenario = replace(scenario, workload=self._workload())
        return replace(
            scenario,
            app=app,
            flows=flows,
            service=service,
            cluster=cluster,
            **given(settle_ns=self.settle, observe_timeout_ns=self.observe_timeout),
        )

    def _workload(self) -> Workload:
        """Whom ``--dw-attach`` names. Raises ScenarioError if that cannot be meant."""
        from pytest_drainwatch.core.scenario import Workload
        from pytest_drainwatch.core.scenario.workload import named_protocol

        assert self.attach is not None
        return Workload.attach(
            self.attach,
            namespace=self.attach_namespace or "default",
            port=self.attach_port,
            service=self.attach_service,
            protocol=named_protocol(
                self.attach_protocol or "tcp", send=self.attach_send, expect=self.attach_expect
            ),
        )


def resolve(sources: Mapping[str, Callable[[Option], object]]) -> Settings:
    """Settings from named sources, the first that has a value wins.

    Raises :class:`OptionError` naming option, value and what is accepted.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for option in OPTIONS:
        for origin, read in sources.items():
            raw = read(option)
            if raw is None or raw == "":
                continue
            try:
                values[option.dest.removeprefix("dw_")] = option.parse(str(raw))
            except ValueError as error:
                shown = "(not shown)" if option.secret else raw
                raise OptionError(f"--dw-{option.name}={shown} ({origin}): {error}") from None
            origins[option.name] = origin
            break
    if _outranks(origins, ("kubeconfig", "context"), "cluster", tuple(sources)):
        # An exported DW_CLUSTER does not stand in the way of a kubeconfig typed now.
        values["cluster"] = "existing"
    settings = Settings(**values, origins=origins)
    _refuse_contradictions(settings)
    return settings


def idle(settings: Settings) -> list[str]:
    """Options that were given and do nothing, for there is no baseline to compare with."""
    if settings.baseline is not None:
        return []
    return [name for name in ("fail-on", "across") if name in settings.origins]


def _outranks(
    origins: Mapping[str, str], names: tuple[str, ...], other: str, order: tuple[str, ...]
) -> bool:
    """Whether one of ``names`` was given by a stronger source than ``other`` was."""
    given = [order.index(origins[name]) for name in names if name in origins]
    return bool(given) and other in origins and min(given) < order.index(origins[other])


def _refuse_contradictions(settings: Settings) -> None:
    named = settings.kubeconfig or settings.context
    if named and settings.cluster in ("embedded", "kind"):
        raise OptionError(
            f"--dw-cluster={settings.cluster} makes a cluster of its own, so "
            "--dw-kubeconfig/--dw-context cannot apply; drop one of them, or use "
            "--dw-cluster=existing"
        )
    theirs = bool(named) or settings.cluster in ("existing", "kind")
    about = [name for name in settings.origins if name.startswith("attach-")]
    if about and settings.attach is None:
        raise OptionError(
            f"--dw-{about[0]} is about a workload to attach to, and none was named; expected "
            "--dw-attach=deployment/NAME beside it, or drop it"
        )
    probes = [n for n in ("grace-period", "drain", "readiness-on-drain") if n in settings.origins]
    if settings.attach is not None and probes:
        raise OptionError(
            f"--dw-{probes[0]} is about the probe, and --dw-attach={settings.attach} is a workload "
            "that is left as it is; drop one of them"
        )
    if settings.fresh_cluster != "session" and theirs:
        raise OptionError(
            f"--dw-fresh-cluster={settings.fresh_cluster} asks for new clusters, and one that is "
            "not ours cannot be started anew; expected --dw-cluster=embedded, or drop it"
        )
    if settings.min_sync_period == 0 and settings.proxy_mode != "ipvs":
        raise OptionError(
            "--dw-min-sync-period=0 is kube-proxy's word for its default, 1s, but in mode ipvs; "
            "expected 1ms or more"
        )
    if settings.pull_secret and settings.namespace is None:
        raise OptionError(
            "--dw-pull-secret names Secrets of a namespace, and one that is made for a trial has "
            "none; expected --dw-namespace=NAME beside it, the namespace that has them"
        )
    if settings.path == "haproxy" and settings.address is not None:
        raise OptionError(
            "--dw-path=haproxy connects to the nodes' NodePorts, and "
            f"--dw-address={settings.address} is another way; drop one of them"
        )
    for name in idle(settings):
        if settings.origins[name] == "command line":
            raise OptionError(
                f"--dw-{name} is about the comparison with a baseline, and none was given; "
                "expected --dw-baseline=DIR beside it, or drop it"
            )
    if not settings.origins:
        return
    # A scenario that the options alone make impossible is refused before any cluster starts.
    from pytest_drainwatch.core.scenario import Flows, Scenario

    # Through HAProxy goes TCP alone: a scenario of the run that asks for UDP says so itself.
    flows = Flows(udp=0) if settings.path == "haproxy" else Flows()
    try:
        settings.apply(Scenario(flows=flows))
    except ValueError as error:
        raise OptionError(f"the options make no valid trial: {error}") from None
