"""What a pytest run knows: settings, run id, and the words around its trials."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_drainwatch import __version__
from pytest_drainwatch.options import OPTIONS, Option, OptionError
from pytest_drainwatch.results import new_run_id
from pytest_drainwatch.settings import Settings, from_environment, resolve

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from pytest_drainwatch.trial import Trial

PROPERTY = "dw."
# What the table of a run shows of a trial, in the order of its columns.
COLUMNS = ("scenario", "sigterm", "tcp", "tcp_ended", "udp", "udp_ended", "new", "exit", "report")


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
        if provider == "embedded":
            version = settings.kube_version or ClusterSettings().kube_version
            provider = f"embedded Kubernetes {version}"
        cluster = f"cluster {provider} ({why})"
    except ClusterError as error:
        cluster = f"no cluster ({str(error).partition(':')[0]})"
    lines = [f"drainwatch: {__version__} · {cluster} · {settings.out / run.run_id}"]
    if config.get_verbosity() > 0 and settings.origins:
        given = ", ".join(f"{name} ({origin})" for name, origin in settings.origins.items())
        lines.append(f"drainwatch: given: {given}")
    return lines


def announce(request: pytest.FixtureRequest, measured: Trial) -> Trial:
    """A trial was measured: keep it with its test, its headlines on the test's reports.

    ``user_properties`` reach junit, JSON and the controller of xdist.
    """
    item = request.node
    trials = item.stash.setdefault(TRIALS, [])
    trials.append(measured)
    prefix = PROPERTY if len(trials) == 1 else f"dw{len(trials)}."
    item.user_properties.extend((prefix + name, text) for name, text in _properties(measured))
    item.config.hook.pytest_drainwatch_trial(trial=measured, request=request)
    return measured


def forget(item: pytest.Item) -> None:
    """A test starts, perhaps again: what an earlier attempt measured is not this one's."""
    if TRIALS in item.stash:
        del item.stash[TRIALS]
    item.user_properties[:] = [p for p in item.user_properties if not _ours(p[0])]


def enrich(item: pytest.Item, report: pytest.TestReport) -> None:
    """Note a failure, for ``--dw-keep=on-failure``, and show what happened around it."""
    if not report.failed:
        return
    item.stash[FAILED] = True
    trials = item.stash.get(TRIALS, [])
    if trials and report.when == "call":
        from pytest_drainwatch.explain import failure_sections

        report.sections += [
            (f"drainwatch timeline: {name}", text) for name, text in failure_sections(trials)
        ]


def summarise(terminal: TerminalReporter) -> None:
    """The table of a run; silent if there were no trials or in ``-q``."""
    if terminal.config.get_verbosity() < 0:
        return
    rows = [_row(found) for found in _found(terminal)]
    if not rows:
        return
    from pytest_drainwatch.render.terminal import trial_rows

    terminal.section("drainwatch", sep="-")
    try:
        lines = trial_rows(rows)
    except Exception as error:
        # The trials are measured and judged: what cannot be shown must not end the run.
        lines = [f"the table of trials cannot be shown: {error!r}", *(row[-1] for row in rows)]
    for line in lines:
        terminal.write_line(line)


def json_metadata(item: pytest.Item) -> dict[str, object]:
    """pytest-json-report: headline values of each of the item's trials."""
    trials = item.stash.get(TRIALS, [])
    return {"drainwatch": [dict(_properties(trial)) for trial in trials]} if trials else {}


def json_trials(json_report: dict[str, Any]) -> list[dict[str, object]]:
    """pytest-json-report: every trial of the run with the test that made it."""
    tests = json_report.get("tests") or []
    return [
        {"nodeid": test["nodeid"], **trial}
        for test in tests
        for trial in (test.get("metadata") or {}).get("drainwatch", ())
    ]


def _properties(trial: Trial) -> list[tuple[str, object]]:
    from pytest_drainwatch.core.flow.table import Proto
    from pytest_drainwatch.render.terminal import counts, duration, ends, new_connections

    cells: dict[str, Callable[[], str]] = {
        "sigterm": lambda: duration(trial.summary.trigger_to_sigterm_ns),
        "tcp": lambda: counts(trial.tcp),
        "tcp_ended": lambda: ends(trial.flows, Proto.TCP),
        "udp": lambda: counts(trial.udp),
        "udp_ended": lambda: ends(trial.flows, Proto.UDP),
        "new": lambda: new_connections(trial.report.trial),
        "exit": lambda: ",".join(str(code) for code in trial.exit_codes) or "not measured",
    }
    return [
        ("scenario", trial.scenario.id),
        *((name, _shown(cell)) for name, cell in cells.items()),
        ("report", str(trial.folder / "report.json")),
    ]


def _shown(cell: Callable[[], str]) -> str:
    try:
        return cell()
    except Exception as error:  # the report is written, and the test has yet to judge it
        return f"cannot be shown: {error!r}"


def _found(terminal: TerminalReporter) -> Iterator[dict[str, str]]:
    """The values of every trial, in the order in which their tests ended."""
    for reports in terminal.stats.values():
        for report in reports:
            if not _tells_all(report):
                continue
            trials: dict[str, dict[str, str]] = {}
            for name, text in getattr(report, "user_properties", ()):
                if _ours(str(name)):
                    prefix, _, rest = str(name).partition(".")
                    trials.setdefault(prefix, {})[rest] = str(text)
            yield from trials.values()


def _tells_all(report: object) -> bool:
    """Whether a report is the one of its test that knows all its trials.

    That is the call's, or the setup's if it was the last: arms may be measured before one
    is void.
    """
    when = getattr(report, "when", None)
    return when == "call" or (when == "setup" and getattr(report, "outcome", None) != "passed")


def _ours(name: str) -> bool:
    return re.match(r"dw\d*\.", name) is not None


def _row(values: dict[str, str]) -> tuple[str, ...]:
    return tuple(values.get(name, "") for name in COLUMNS)
