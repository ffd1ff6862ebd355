"""What kube-proxy's own ConfigMap says of it, in the forms in which it is written."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pytest_drainwatch.cluster.existing import proxy_configuration
from tests.conductor.api_server import Call, reply, serving


def read(folder: Path, text: object) -> tuple[str | None, int | None]:
    def answer(handler: BaseHTTPRequestHandler, _: Call) -> None:
        reply(handler, {"kind": "ConfigMap", "apiVersion": "v1", "data": {"config.conf": text}})

    with serving(answer, folder) as (api, _):
        return proxy_configuration(api)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mode: nftables\nnftables: {minSyncPeriod: 10s}", ("nftables", 10_000)),
        ("mode: iptables\niptables: {minSyncPeriod: 500ms}", ("iptables", 500)),
        ("mode: iptables\niptables: {minSyncPeriod: 1m0.5s}", ("iptables", 60_500)),
        # kubeadm writes 0s, and kube-proxy takes it for its default.
        ("mode: iptables\niptables: {minSyncPeriod: 0s}", ("iptables", 1000)),
        ("mode: iptables\niptables: {minSyncPeriod: null}", ("iptables", 1000)),
        ("mode: nftables\niptables: {minSyncPeriod: 7s}", ("nftables", 1000)),
        ("mode: ipvs\nipvs: {minSyncPeriod: 0s}", ("ipvs", 0)),
        ("mode: iptables\niptables: {minSyncPeriod: soon}", ("iptables", None)),
        ("mode: kernelspace\nwinkernel: {}", ("kernelspace", None)),
        ("mode: ''\niptables: {minSyncPeriod: 7s}", (None, None)),
        ("just a text", (None, None)),
        ("mode: iptables\niptables: a text", (None, None)),
        ("{", (None, None)),
    ],
)
def test_mode_and_period(
    text: str, expected: tuple[str | None, int | None], tmp_path: Path
) -> None:
    assert read(tmp_path, text) == expected
