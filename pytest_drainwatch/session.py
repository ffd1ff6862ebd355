"""What a pytest run knows: settings, run id, and the words around its trials."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_drainwatch import __version__
from pytest_drainwatch.options import OPTIONS, Option, OptionError, Settings, resolve
from pytest_drainwatch.results import new_run_id

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from pytest_drainwatch.core.scenario import Scenario
    from pytest_drainwatch.trial import Trial

PROPERTY = "dw."
FIXTURES = frozenset({"trial", "dw_flows", "dw_probe", "dw_namespace"})


@dataclass(frozen=True, slots=True)
class Run:
    """One run: what it was told, and the name of its results folder."""

    settings: Settings
    run_id: str


RUN = pytest.StashKey[Run]()
TRIALS = pytest.StashKey["list[Trial]"]()
FAILED = pytest.StashKey[bool]()


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

    def from_environment(option: Option) -> object:
        return os.environ.get(option.dest.upper())

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
    from pytest_drainwatch.cluster import ClusterError, choose_provider

    run = config.stash[RUN]
    settings = run.settings
    try:
        provider, why = choose_provider(
            settings.cluster, kubeconfig=settings.kubeconfig, context=settings.context
        )
        if provider == "embedded":
            provider = f"embedded Kubernetes {settings.kube_version}"
        cluster = f"cluster {provider} ({why})"
    except ClusterError as error:
        cluster = f"no cluster ({str(error).partition(':')[0]})"
    lines = [f"drainwatch: {__version__} · {cluster} · {settings.out / run.run_id}"]
    if config.get_verbosity() > 0 and settings.origins:
        given = ", ".join(f"{name} ({origin})" for name, origin in settings.origins.items())
        lines.append(f"drainwatch: given: {given}")
    return lines


def forecast(config: pytest.Config, items: Iterable[pytest.Item]) -> list[str]:
    """Said before the wait: how many trials, how long about, and what is unusual."""
    planned = [
        config.stash[RUN].settings.apply(asked)
        for item in items
        if (asked := _scenario_of(item)) is not None
    ]
    if not planned:
        return []
    # Deployment, preflight and clearing up take a few seconds of each trial.
    seconds = sum(asked.expected_ns for asked in planned) / 1e9 + 8 * len(planned)
    flags = sorted({f"{asked.id}: {flag}" for asked in planned for flag in asked.flags})
    return [
        f"drainwatch: {len(planned)} trial(s), about {seconds:.0f} s one after the other",
        *(f"drainwatch: note: {flag}" for flag in flags),
    ]


def check_markers(items: Iterable[pytest.Item]) -> None:
    """A marker that says something we do not do is an error, never ignored."""
    for item in items:
        for marker in item.iter_markers("trial"):
            if marker.args or marker.kwargs:
                given = ", ".join([*map(repr, marker.args), *marker.kwargs])
                raise pytest.UsageError(
                    f"{item.nodeid}: @pytest.mark.trial takes no arguments, got: {given}"
                )


def announce(request: pytest.FixtureRequest, measured: Trial) -> Trial:
    """A trial was measured: keep it with its test, its headlines on the test's reports.

    ``user_properties`` reach junit, JSON and the controller of xdist.
    """
    item = request.node
    item.stash.setdefault(TRIALS, []).append(measured)
    item.user_properties.extend(_properties(measured))
    item.config.hook.pytest_drainwatch_trial(trial=measured, request=request)
    return measured


def enrich(item: pytest.Item, report: pytest.TestReport) -> None:
    """Note a failure, for ``--dw-keep=on-failure``, and show what happened around it."""
    if not report.failed:
        return
    item.stash[FAILED] = True
    trials = item.stash.get(TRIALS, [])
    if trials and report.when == "call":
        from pytest_drainwatch.explain import failure_section

        report.sections += [("drainwatch timeline", failure_section(trials[-1]))]


def summarise(terminal: TerminalReporter) -> None:
    """The table of a run; silent if there were no trials or in ``-q``."""
    if terminal.config.get_verbosity() < 0:
        return
    rows = [_row(found) for found in _found(terminal)]
    if not rows:
        return
    from pytest_drainwatch.render.terminal import trial_rows

    terminal.section("drainwatch", sep="-")
    for line in trial_rows(rows):
        terminal.write_line(line)


def json_metadata(item: pytest.Item) -> dict[str, object]:
    """pytest-json-report: headline values of the item's last trial."""
    trials = item.stash.get(TRIALS, [])
    return {"drainwatch": dict(_properties(trials[-1]))} if trials else {}


def json_trials(json_report: dict[str, Any]) -> list[dict[str, object]]:
    """pytest-json-report: every trial of the run with the test that made it."""
    tests = json_report.get("tests") or []
    return [
        {"nodeid": test["nodeid"], **test["metadata"]["drainwatch"]}
        for test in tests
        if "drainwatch" in (test.get("metadata") or {})
    ]


def _scenario_of(item: pytest.Item) -> Scenario | None:
    if not FIXTURES & set(getattr(item, "fixturenames", ())):
        return None
    from pytest_drainwatch.core.scenario import Scenario

    callspec = getattr(item, "callspec", None)
    asked = callspec.params.get("scenario") if callspec else None
    return asked if isinstance(asked, Scenario) else Scenario()


def _properties(trial: Trial) -> list[tuple[str, object]]:
    from pytest_drainwatch.core.flow import Proto
    from pytest_drainwatch.render.terminal import counts, duration, ends

    return [
        (PROPERTY + "scenario", trial.scenario.id),
        (PROPERTY + "sigterm", duration(trial.summary.trigger_to_sigterm_ns)),
        (PROPERTY + "tcp", counts(trial.tcp)),
        (PROPERTY + "tcp_ended", ends(trial.flows, Proto.TCP)),
        (PROPERTY + "udp", counts(trial.udp)),
        (PROPERTY + "udp_ended", ends(trial.flows, Proto.UDP)),
        (PROPERTY + "exit", ",".join(str(code) for code in trial.exit_codes) or "not measured"),
        (PROPERTY + "report", str(trial.folder / "report.json")),
    ]


def _found(terminal: TerminalReporter) -> Iterator[dict[str, str]]:
    for reports in terminal.stats.values():
        for report in reports:
            values = dict(getattr(report, "user_properties", ()))
            if getattr(report, "when", None) == "call" and PROPERTY + "report" in values:
                yield {str(key): str(value) for key, value in values.items()}


def _row(values: dict[str, str]) -> tuple[str, ...]:
    names = ("scenario", "sigterm", "tcp", "tcp_ended", "udp", "udp_ended", "exit", "report")
    return tuple(values.get(PROPERTY + name, "") for name in names)
