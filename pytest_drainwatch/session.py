"""What a pytest run knows before its first test: settings, run id, and who runs its tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch import __version__
from pytest_drainwatch.options import OPTIONS, Option, OptionError
from pytest_drainwatch.results import new_run_id
from pytest_drainwatch.settings import Settings, from_environment, resolve

if TYPE_CHECKING:
    from pytest_drainwatch.planned import Plan


@dataclass(frozen=True, slots=True)
class Run:
    """One run: what it was told, and the name of its results folder."""

    settings: Settings
    run_id: str


RUN = pytest.StashKey[Run]()
# Of a run that sets out to measure.
PLAN: pytest.StashKey[Plan] = pytest.StashKey()


def add_options(parser: pytest.Parser) -> None:
    """Each option with its ini twin."""
    group = parser.getgroup("drainwatch", "pod-termination measurement")
    for option in OPTIONS:
        group.addoption(
            f"--dw-{option.name}",
            dest=option.dest,
            metavar=option.metavar,
            default=None,
            help=option.help,
        )
        parser.addini(option.dest, help=f"default of --dw-{option.name}", default=None)


def configure(config: pytest.Config) -> None:
    """Resolve the settings; a bad value is a usage error before anything starts."""

    def from_command_line(option: Option) -> object:
        return config.getoption(option.dest)

    def from_ini(option: Option) -> object:
        return config.getini(option.dest)

    config.addinivalue_line(
        "markers", "trial: a test that measures a pod's termination (pytest-drainwatch)"
    )
    try:
        settings = resolve(
            {"command line": from_command_line, "environment": from_environment, "ini": from_ini}
        )
    except OptionError as error:
        if config.getoption("help", default=False) or config.getoption("version", default=False):
            settings = Settings()
        else:
            raise pytest.UsageError(str(error)) from None
    worker: dict[str, str] = getattr(config, "workerinput", {})
    config.stash[RUN] = Run(settings, worker.get("dw_run_id") or new_run_id())


def header(config: pytest.Config) -> list[str]:
    """One line; with ``-v`` also where each given value came from."""
    from pytest_drainwatch.cluster import ClusterError, ClusterSettings, choose_provider

    run = config.stash[RUN]
    settings = run.settings
    try:
        provider, why = choose_provider(
            settings.cluster, kubeconfig=settings.kubeconfig, context=settings.context
        )
        version = settings.kube_version or ClusterSettings().kube_version
        named = f"embedded Kubernetes {version}" if provider == "embedded" else provider
        cluster = f"cluster {named} ({why})"
    except ClusterError as error:
        provider = ""
        cluster = f"no cluster ({str(error).partition(':')[0]})"
    lines = [f"drainwatch: {__version__} · {cluster} · {settings.out / run.run_id}"]
    if (workers := workers_of(config)) > 1:
        lines.append(f"drainwatch: {_shared_out(config, provider, workers)}")
    if config.get_verbosity() > 0 and settings.origins:
        given = ", ".join(f"{name} ({origin})" for name, origin in settings.origins.items())
        lines.append(f"drainwatch: given: {given}")
    return lines


def workers_of(config: pytest.Config) -> int:
    """How many workers a controller of xdist has; 1 without xdist, and in a worker."""
    if config.getoption("dist", default="no") == "no":
        return 1
    from xdist.workermanage import parse_tx_spec_config  # type: ignore[import-untyped]

    return len(parse_tx_spec_config(config))


def told_to_workers(config: pytest.Config) -> dict[str, object]:
    """What each worker has to know of its controller's run."""
    return {
        "dw_run_id": config.stash[RUN].run_id,
        "dw_dist": config.getoption("dist", default="no"),
        "dw_take_turns": shares_one_cluster(config.stash[RUN].settings),
    }


def shares_one_cluster(settings: Settings) -> bool:
    """Whether workers have one cluster between them, as far as the settings tell."""
    from pytest_drainwatch.cluster import ClusterError, choose_provider

    try:
        provider, _ = choose_provider(
            settings.cluster, kubeconfig=settings.kubeconfig, context=settings.context
        )
    except ClusterError:
        return False
    return provider != "embedded"


def _shared_out(config: pytest.Config, provider: str, workers: int) -> str:
    """How workers share out trials and clusters."""
    settings, mode = config.stash[RUN].settings, str(config.getoption("dist"))
    if provider and provider != "embedded":
        name = settings.context or settings.kubeconfig or provider
        return f"{workers} workers take turns on cluster {name}: one trial at a time"
    orders = {
        "worksteal": "trials shared out by how long they take",
        "load": "the longest trials first (--dist=worksteal shares them out better)",
    }
    order = orders.get(mode, f"in the order of --dist={mode}")
    return f"{workers} workers, each with clusters of its own; {order}"
