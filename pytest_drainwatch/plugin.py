"""pytest's hooks, each delegating in a line or two. Imports nothing heavy.

A run that uses no drainwatch fixture must not notice that this is installed:
everything behind the hooks is imported when it is first needed.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_drainwatch import session
from pytest_drainwatch.fixtures import (
    arms,
    drainwatch,
    dw_cluster,
    dw_clusters,
    dw_flows,
    dw_interrupts,
    dw_namespace,
    dw_probe,
    dw_repeat,
    scenario,
    trial,
    trials,
)
from pytest_drainwatch.planning import asked, repeating
from pytest_drainwatch.showing import listening
from pytest_drainwatch.telling import verdict

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

__all__ = [
    "arms",
    "drainwatch",
    "dw_cluster",
    "dw_clusters",
    "dw_flows",
    "dw_interrupts",
    "dw_namespace",
    "dw_probe",
    "dw_repeat",
    "scenario",
    "trial",
    "trials",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    session.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_drainwatch import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    session.configure(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(listening.Listener(config), "drainwatch-listener")
        config.pluginmanager.register(verdict.Verdict(config), "drainwatch-verdict")


def pytest_report_header(config: pytest.Config) -> list[str]:
    return session.header(config)


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # Last, so that ids end in the repeat's number.
    repeating.parametrize(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # First: --sw and whoever else deselects by a test's place must see the order they run in.
    if any(map(repeating.is_repeated, items)):
        from pytest_drainwatch.planning import ordering

        items[:] = ordering.in_turn(config, items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    # Not pytest_collection_modifyitems: -k, --lf and other plugins deselect there.
    config, items = session.config, session.items
    asked.check_items(config, items)
    if any(map(repeating.measures, items)):
        from pytest_drainwatch.planning import planned

        config.stash[listening.PLAN] = planned.plan(config, items)
    _check(config)


@pytest.hookimpl(optionalhook=True, trylast=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    # After our listener, which learns from the first worker whether anything is measured.
    _check(node.config)


def _check(config: pytest.Config) -> None:
    """What would else be found out when all is measured."""
    given = config.stash[session.RUN].given
    if "baseline" in given:
        from pytest_drainwatch.telling import gate

        gate.check(config)
    if "markdown" in given:
        from pytest_drainwatch.telling import job_summary

        job_summary.check(config)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    if listening.PLAN not in config.stash:
        return []
    return [*session.whereabouts(config), *config.stash[listening.PLAN].words]


def pytest_make_parametrize_id(val: object) -> str | None:
    module = sys.modules.get("pytest_drainwatch.core.scenario")
    return val.id if module and isinstance(val, module.Scenario) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if repeating.measures(item) or item.user_properties:
        from pytest_drainwatch.telling import told

        told.forget(item)
    asked.refuse(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        from pytest_drainwatch.telling import told

        told.enrich(item, report, call.excinfo)
    return report


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    module = sys.modules.get("pytest_drainwatch.core.document")
    if module and isinstance(left, module.Counts) and isinstance(right, module.Counts):
        from pytest_drainwatch.explain import compare_counts

        return compare_counts(op, left, right)
    return None


# Last: what a test held open until now, such as an interrupted one's trial, is closed by then.
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if listening.measured(session.config):
        from pytest_drainwatch.telling import closing

        closing.finish(session)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    if listening.measured(terminalreporter.config):
        from pytest_drainwatch.telling import closing

        closing.show(terminalreporter)


@pytest.hookimpl(optionalhook=True)
def pytest_json_runtest_metadata(item: pytest.Item) -> dict[str, object]:
    from pytest_drainwatch.telling import told

    return told.json_metadata(item)
