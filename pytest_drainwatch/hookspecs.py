"""Hooks that this plugin calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from pytest_drainwatch.trial import Trial


def pytest_drainwatch_trial(trial: Trial, request: pytest.FixtureRequest) -> None:
    """Called after each measured trial, when its report.json is written.

    Put this into a conftest.py to send a headline somewhere::

        def pytest_drainwatch_trial(trial, request):
            print(request.node.name, trial.tcp.drained, "of", trial.tcp.total, "drained")
    """
