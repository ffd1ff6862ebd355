"""What kind is told to make."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.cluster.kind.shape import Shape


@pytest.mark.parametrize("image", [None, "kindest/node:v1.34.0"])
def test_a_cluster_as_kind_makes_it_needs_no_configuration(image: str | None) -> None:
    """So that pytest-kind's fixture, which passes none, can make it."""
    assert Shape(image=image).config() is None


@given(st.integers(1, 5))
def test_as_many_nodes_take_pods_as_were_asked_for(nodes: int) -> None:
    """A control plane that has workers beside it is tainted by kubeadm."""
    config = json.loads(Shape(nodes=nodes).config() or "")
    roles = [node["role"] for node in config["nodes"]]
    assert roles.count("control-plane") == 1
    assert max(1, roles.count("worker")) == nodes
    assert len(roles) == (1 if nodes == 1 else nodes + 1)


@pytest.mark.parametrize(
    ("mode", "section"), [(None, "iptables"), ("iptables", "iptables"), ("nftables", "nftables")]
)
def test_the_period_stands_in_the_section_of_the_mode(mode: str | None, section: str) -> None:
    config = json.loads(Shape(proxy_mode=mode, min_sync_period_ms=2500).config() or "")
    (patch,) = map(json.loads, config["kubeadmConfigPatches"])
    assert patch["kind"] == "KubeProxyConfiguration"
    assert patch[section] == {"minSyncPeriod": "2500ms"}
    assert config.get("networking") == (None if mode is None else {"kubeProxyMode": mode})
