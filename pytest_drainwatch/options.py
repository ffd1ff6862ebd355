"""Every option, declared once: pytest's ``--dw-*``, its ini twin ``dw_*`` and the CLI's flag.

A value that nobody gave stays None, so that a scenario's own value holds; one
that was given overrides every scenario of the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_drainwatch import option_values
from pytest_drainwatch.option_values import parse_duration_ns as parse_duration_ns

if TYPE_CHECKING:
    from pytest_drainwatch.core.scenario import Scenario

PROVIDERS = ("auto", "embedded", "kind", "existing")
KEEP = ("never", "on-failure", "always")
KUBE_VERSIONS = ("1.37", "1.34")


class OptionError(ValueError):
    """A value that an option does not accept; the text names the option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option: ``--dw-NAME`` and ini ``dw_name``."""

    name: str
    parse: Callable[[str], Any]
    metavar: str
    help: str

    @property
    def dest(self) -> str:
        """The name of the attribute and of the ini value."""
        return "dw_" + self.name.replace("-", "_")


OPTIONS = (
    Option(
        name="cluster",
        parse=option_values.one_of(*PROVIDERS),
        metavar="PROVIDER",
        help="auto (default), embedded, kind or existing",
    ),
    Option(
        name="kubeconfig",
        parse=option_values.path,
        metavar="FILE",
        help="kubeconfig of an existing cluster (implies --dw-cluster=existing)",
    ),
    Option(
        name="context",
        parse=str,
        metavar="NAME",
        help="context of that kubeconfig (implies --dw-cluster=existing)",
    ),
    Option(
        name="kube-bin",
        parse=option_values.path,
        metavar="FILE",
        help="a ready embedded Kubernetes binary, instead of the cached or built one",
    ),
    Option(
        name="kube-version",
        parse=option_values.one_of(*KUBE_VERSIONS),
        metavar="VERSION",
        help="Kubernetes of the cluster: 1.37 or 1.34 (scenario's own, or 1.37)",
    ),
    Option(
        name="proxy-mode",
        parse=option_values.proxy_mode,
        metavar="MODE",
        help="kube-proxy's mode: iptables, nftables or ipvs (scenario's own, or iptables)",
    ),
    Option(
        name="min-sync-period",
        parse=option_values.milliseconds,
        metavar="DURATION",
        help="kube-proxy's minSyncPeriod (scenario's own, or Kubernetes' default of 1s)",
    ),
    Option(
        name="probe-image",
        parse=str,
        metavar="REF",
        help="the probe's image on an existing cluster",
    ),
    Option(
        name="grace-period",
        parse=option_values.seconds,
        metavar="SECONDS",
        help="terminationGracePeriodSeconds (scenario's own, or 30)",
    ),
    Option(
        name="drain",
        parse=parse_duration_ns,
        metavar="DURATION",
        help="the probe's drain window (scenario's own, or 25s)",
    ),
    Option(
        name="readiness-on-drain",
        parse=option_values.one_of("fail", "keep"),
        metavar="fail|keep",
        help="whether a draining probe fails its readiness probe (scenario's own, or fail)",
    ),
    Option(
        name="tcp-flows",
        parse=option_values.count,
        metavar="N",
        help="TCP flows held on the target (scenario's own, or 10)",
    ),
    Option(
        name="udp-flows",
        parse=option_values.count,
        metavar="N",
        help="UDP flows held on the target (scenario's own, or 10)",
    ),
    Option(
        name="tcp-rate",
        parse=option_values.count,
        metavar="HZ",
        help="sends a second of each TCP flow while it matters, 5 else (scenario's own, or 20)",
    ),
    Option(
        name="udp-rate",
        parse=option_values.count,
        metavar="HZ",
        help="sends a second of each UDP flow while it matters, 10 else (scenario's own, or 60)",
    ),
    Option(
        name="probe-interval",
        parse=parse_duration_ns,
        metavar="DURATION",
        help="a new TCP connection is tried this often, 0: none (scenario's own, or 5ms)",
    ),
    Option(
        name="udp-probe-interval",
        parse=parse_duration_ns,
        metavar="DURATION",
        help="a new UDP port is tried this often, 0: none (scenario's own, or 0)",
    ),
    Option(
        name="settle",
        parse=parse_duration_ns,
        metavar="DURATION",
        help="undisturbed time before the trigger (scenario's own, or 10s)",
    ),
    Option(
        name="observe-timeout",
        parse=parse_duration_ns,
        metavar="DURATION",
        help="longest observation after the trigger (default: 30s beyond the latest kill)",
    ),
    Option(
        name="out",
        parse=option_values.path,
        metavar="DIR",
        help="results folder (default: results)",
    ),
    Option(
        name="keep",
        parse=option_values.one_of(*KEEP),
        metavar="WHEN",
        help="keep a trial's namespace, and the cluster(s) open at the end: never (default), "
        "on-failure or always. Of a test that measures in its body or compares arms "
        "(drainwatch, trials) on-failure keeps the namespace of a void trial only: a measured "
        "one's is gone before the test judges. A trial of namespace-delete leaves none",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the run was told, resolved once. ``origins`` says where each value came from."""

    cluster: str = "auto"
    kubeconfig: Path | None = None
    context: str | None = None
    kube_bin: Path | None = None
    kube_version: str | None = None
    proxy_mode: str | None = None
    min_sync_period: int | None = None
    probe_image: str | None = None
    grace_period: int | None = None
    drain: int | None = None
    readiness_on_drain: str | None = None
    tcp_flows: int | None = None
    udp_flows: int | None = None
    tcp_rate: int | None = None
    udp_rate: int | None = None
    probe_interval: int | None = None
    udp_probe_interval: int | None = None
    settle: int | None = None
    observe_timeout: int | None = None
    out: Path = Path("results")
    keep: str = "never"
    origins: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)

    def keeps(self, *, failed: bool) -> bool:
        """Whether namespace and cluster outlive the run."""
        return self.keep == "always" or (self.keep == "on-failure" and failed)

    def apply(self, scenario: Scenario) -> Scenario:
        """The scenario with every value that was given on purpose put over its own.

        Raises :class:`~pytest_drainwatch.core.scenario.ScenarioError` if the
        result cannot be asked.
        """

        from pytest_drainwatch.core.scenario import ProxyMode, Readiness

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
            ),
        )
        return replace(
            scenario,
            app=app,
            flows=flows,
            cluster=cluster,
            **given(settle_ns=self.settle, observe_timeout_ns=self.observe_timeout),
        )


def from_environment(option: Option) -> object:
    """The source ``DW_NAME`` of an option."""
    return os.environ.get(option.dest.upper())


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
                raise OptionError(f"--dw-{option.name}={raw} ({origin}): {error}") from None
            origins[option.name] = origin
            break
    if _outranks(origins, ("kubeconfig", "context"), "cluster", tuple(sources)):
        # An exported DW_CLUSTER does not stand in the way of a kubeconfig typed now.
        values["cluster"] = "existing"
    settings = Settings(**values, origins=origins)
    _refuse_contradictions(settings)
    return settings


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
    if settings.min_sync_period == 0 and settings.proxy_mode != "ipvs":
        raise OptionError(
            "--dw-min-sync-period=0 is kube-proxy's word for its default, 1s, but in mode ipvs; "
            "expected 1ms or more"
        )
    if not settings.origins:
        return
    # A scenario that the options alone make impossible is refused before any cluster starts.
    from pytest_drainwatch.core.scenario import Scenario

    try:
        settings.apply(Scenario())
    except ValueError as error:
        raise OptionError(f"the options make no valid trial: {error}") from None
