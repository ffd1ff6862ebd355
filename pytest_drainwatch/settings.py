"""What a run was told: options resolved from their sources, and put over scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_drainwatch.options import OPTIONS, Option, OptionError, from_environment

if TYPE_CHECKING:
    from pytest_drainwatch.core.scenario import Scenario

__all__ = ["Settings", "from_environment", "idle", "resolve"]


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
    probe_sparse_every: int | None = None
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
            ),
        )
        return replace(
            scenario,
            app=app,
            flows=flows,
            cluster=cluster,
            **given(settle_ns=self.settle, observe_timeout_ns=self.observe_timeout),
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
                raise OptionError(f"--dw-{option.name}={raw} ({origin}): {error}") from None
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
    for name in idle(settings):
        if settings.origins[name] == "command line":
            raise OptionError(
                f"--dw-{name} is about the comparison with a baseline, and none was given; "
                "expected --dw-baseline=DIR beside it, or drop it"
            )
    if not settings.origins:
        return
    # A scenario that the options alone make impossible is refused before any cluster starts.
    from pytest_drainwatch.core.scenario import Scenario

    try:
        settings.apply(Scenario())
    except ValueError as error:
        raise OptionError(f"the options make no valid trial: {error}") from None
