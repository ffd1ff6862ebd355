"""Shared by all tests."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

# Examples differ from run to run, so that many short runs see as many as a long one; and no
# test asserts how fast it is. `make test-all` is thorough: --hypothesis-profile=thorough.
settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("quick")


def pytest_configure() -> None:
    """Tests interrupt processes that they start, whatever the shell left us with.

    What a script starts with ``&`` ignores SIGINT, and so would all its children.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where no cluster can be started, say so and run the rest.

    Not where one was asked for: CI must not be green with nothing measured.
    """
    needing = [item for item in items if item.get_closest_marker("cluster")]
    if not needing or os.environ.get("DW_CLUSTER"):
        return
    from pytest_drainwatch.cluster import ClusterError
    from pytest_drainwatch.cluster.opening import choose_provider

    try:
        choose_provider()
    except ClusterError as error:
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=str(error)))
