"""What the baseline makes of a run: its exit status, its words, and its JSON."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.session import RUN
from pytest_drainwatch.showing import listening

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


class Verdict:
    """Hooks in the process that shows the run: with xdist the controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Before everybody else, and some are "first": they write down how the run ended."""
        if self._has_baseline():
            from pytest_drainwatch.telling import gate

            gate.judge(session)
        if self._config.getoption("xmlpath", default=None) and listening.measured(self._config):
            from pytest_drainwatch.telling import closing, facts

            closing.guard(
                self._config,
                "junit has no properties of the run",
                lambda: facts.tell_junit(self._config),
            )
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Last: after the run's own table."""
        if self._has_baseline():
            from pytest_drainwatch.telling import gate

            gate.show(terminalreporter)

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_modifyreport(self, json_report: dict[str, object]) -> None:
        """pytest-json-report: every trial of the run, and what the baseline says of it."""
        from pytest_drainwatch.telling import closing

        def tell() -> list[str]:
            json_report["drainwatch"] = closing.for_json(self._config)
            return []

        closing.guard(self._config, "the JSON report has nothing of the run", tell)

    def _has_baseline(self) -> bool:
        return "baseline" in self._config.stash[RUN].given
