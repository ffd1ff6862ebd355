"""Networks of namespaces as fixtures; without the right to make them, tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loopback.rig import Rig
from tests.netns.network import Network, NoNamespaces


@pytest.fixture
def network(request: pytest.FixtureRequest) -> Iterator[Network]:
    """Client and node; with the parameter ``"pod"`` a pod behind the node."""
    try:
        made = Network(pod=getattr(request, "param", None) == "pod")
    except NoNamespaces as reason:
        pytest.skip(str(reason))
    except FileNotFoundError as missing:
        pytest.skip(f"needs {missing.filename}")
    with made:
        yield made


@pytest.fixture
def rig(network: Network, tmp_path: Path) -> Iterator[Rig]:
    """Probes and agents that end before their network does."""
    made = Rig(tmp_path)
    try:
        yield made
    finally:
        made.close()
