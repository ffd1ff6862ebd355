"""What a pytest run knows before its first test: settings, run id, and who runs its tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_drainwatch import __version__
from pytest_drainwatch.options import OPTIONS, Option, OptionError, from_environment

if TYPE_CHECKING:
    from pytest_drainwatch.settings import Settings

COMMAND_LINE, INI = "command line", "ini"


class Run:
    """One run: what it was told, and the name of its results folder.

    ``given`` names the options that somebody gave. The rest is made when it is first asked
    for: most runs measure nothing, and must not pay for it.
    """

    def __init__(
        self, given: frozenset[str], resolve: Callable[[], Settings], run_id: str | None = None
    ) -> None:
        self.given = given
        self._resolve = resolve
        self._run_id = run_id

    @cached_property
    def run_id(self) -> str:
        """Its name; in a worker of xdist it is the controller's."""
        from pytest_drainwatch.results import new_run_id

        return self._run_id or new_run_id()

    @cached_property
    def settings(self) -> Settings:
        """What the run was told. Raises :class:`OptionError` for what cannot be."""
        return self._resolve()

    @property
    def folder(self) -> Path:
        """Where its results go; absolute, for a test may change the directory."""
        return self.settings.out / self.run_id


RUN = pytest.StashKey[Run]()


def add_options(parser: pytest.Parser) -> None:
    """Each option with its ini twin."""
    group = parser.getgroup("drainwatch", "pod-termination measurement")
    for option in OPTIONS:
        takes: dict[str, Any] = (
            {"action": "store_const", "const": "yes"}
            if option.switch
            else {"metavar": option.metavar}
        )
        group.addoption(
            f"--dw-{option.name}", dest=option.dest, default=None, help=option.help, **takes
        )
        parser.addini(option.dest, help=f"default of --dw-{option.name}", default=None)


def configure(config: pytest.Config) -> None:
    """Look what was given; a bad value is a usage error before anything starts."""
    config.addinivalue_line(
        "markers",
        "trial(repeat=N): a test that measures a pod's termination, N times if it says so "
        "(pytest-drainwatch)",
    )
    sources = _sources(config)
    given = frozenset(
        option.name
        for option in OPTIONS
        if any(read(option) not in (None, "") for read in sources.values())
    )
    worker: dict[str, str] = getattr(config, "workerinput", {})
    run = config.stash[RUN] = Run(given, lambda: _resolved(config), worker.get("dw_run_id"))
    if not given:
        return
    try:
        run.settings  # noqa: B018  # a bad value is said now, not in the middle of the run
    except OptionError as error:
        if config.getoption("help", default=False) or config.getoption("version", default=False):
            config.stash[RUN] = Run(frozenset(), lambda: _resolved(config, told=False))
        else:
            raise pytest.UsageError(str(error)) from None


def _sources(config: pytest.Config) -> Mapping[str, Callable[[Option], object]]:
    """Where a value may come from, the strongest first."""

    def from_command_line(option: Option) -> object:
        return config.getoption(option.dest)

    def from_ini(option: Option) -> object:
        return config.getini(option.dest)

    return {COMMAND_LINE: from_command_line, "environment": from_environment, INI: from_ini}


def _resolved(config: pytest.Config, *, told: bool = True) -> Settings:
    from dataclasses import replace

    from pytest_drainwatch.settings import resolve

    settings = resolve(_sources(config) if told else {})
    # A path is meant from where it was written; a test may be elsewhere by then.
    here = config.invocation_params.dir
    ini = config.inipath.parent if config.inipath else here
    paths: dict[str, Path] = {}
    for option in OPTIONS:
        name = option.dest.removeprefix("dw_")
        value = getattr(settings, name)
        if isinstance(value, Path):
            paths[name] = (ini if settings.origins.get(option.name) == INI else here) / value
    worker: dict[str, str] = getattr(config, "workerinput", {})
    if "dw_out" in worker:
        paths["out"] = Path(worker["dw_out"])
    return replace(settings, **paths)  # type: ignore[arg-type]


def only_looks(config: pytest.Config) -> bool:
    """Whether the run was told to begin no test, so that nothing can be measured in it."""
    return any(config.getoption(name, default=False) for name in ("collectonly", "setupplan"))


def shown(config: pytest.Config, path: Path) -> Path:
    """A path as a person who called pytest would type it."""
    here = config.invocation_params.dir
    return path.relative_to(here) if path.is_relative_to(here) else path


def header(config: pytest.Config) -> list[str]:
    """One line that costs nothing; with ``-v`` also where each given value came from."""
    lines = [f"drainwatch: {__version__}"]
    run = config.stash[RUN]
    if config.get_verbosity() > 0 and run.given:
        origins = run.settings.origins.items()
        lines.append(f"drainwatch: given: {', '.join(f'{name} ({by})' for name, by in origins)}")
    return lines


def whereabouts(config: pytest.Config) -> list[str]:
    """Said where something will be measured: on what, and where its results go."""
    from pytest_drainwatch.cluster import ClusterError, ClusterSettings
    from pytest_drainwatch.cluster.opening import choose_provider
    from pytest_drainwatch.settings import idle

    if config.get_verbosity() < 0:
        return []
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
    lines = [f"drainwatch: {cluster} · {shown(config, run.folder)}"]
    if (workers := workers_of(config)) > 1:
        lines.append(f"drainwatch: {_shared_out(config, provider, workers)}")
    lines += [
        f"drainwatch: note: {name} ({settings.origins[name]}) does nothing without a baseline"
        for name in idle(settings)
    ]
    return lines


def workers_of(config: pytest.Config) -> int:
    """How many workers a controller of xdist has; 1 without xdist, and in a worker."""
    if config.getoption("dist", default="no") == "no":
        return 1
    from xdist.workermanage import parse_tx_spec_config  # type: ignore[import-untyped]

    return len(parse_tx_spec_config(config))


def told_to_workers(config: pytest.Config) -> dict[str, object]:
    """What each worker has to know of its controller's run."""
    run = config.stash[RUN]
    return {
        "dw_run_id": run.run_id,
        "dw_out": str(run.settings.out),
        "dw_dist": config.getoption("dist", default="no"),
        "dw_take_turns": shares_one_cluster(run.settings),
    }


def shares_one_cluster(settings: Settings) -> bool:
    """Whether workers have one cluster between them, as far as the settings tell."""
    from pytest_drainwatch.cluster import ClusterError
    from pytest_drainwatch.cluster.opening import choose_provider

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
