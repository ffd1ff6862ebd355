"""All files of a new cluster: certificates, configuration, and the plan for its node."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_drainwatch.cluster import ClusterSettings
from pytest_drainwatch.cluster.embedded import cgroups, machine, pki
from pytest_drainwatch.cluster.embedded.addresses import (
    BLOCK_BITS,
    SERVICE_RANGE,
    Block,
    pod_range,
)
from pytest_drainwatch.cluster.embedded.configuration import API_PORT, NodeConfiguration
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.plan import Component, Plan

_ADMIN = "drainwatch-admin"
_API_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


def node_name(block: Block) -> str:
    return f"dw-node-{block.slot}"


def prepare(
    name: str,
    layout: Layout,
    block: Block,
    settings: ClusterSettings,
    *,
    binary: Path,
    images: tuple[Path, ...],
) -> NodeConfiguration:
    """Write every file of the cluster *name* and return what they were made from."""
    configuration = NodeConfiguration(
        layout=layout,
        binary=binary,
        node_address=str(block.node),
        node_name=node_name(block),
        pods=str(pod_range(0)),
        cgroup=f"/{cgroups.PARENT}/{name}",
        proxy_mode=settings.proxy_mode,
        min_sync_period_ms=settings.min_sync_period_ms,
        cni_bin=machine.cni_bin(),
        restrict_oom=machine.lacks_sys_resource(),
        filters_bridges=machine.filters_bridges(),
        images=images,
    )
    for file, content in configuration.files().items():
        (layout.config / file).write_text(content)
    _write_pki(layout, block, context=name)
    kept = (layout.state, layout.logs, *(file.parent for file in (binary, *images)))
    components = configuration.components()
    plan = node_plan(layout, block, cgroup=configuration.cgroup, kept=kept, components=components)
    plan.write(layout.plan)
    return configuration


def node_plan(
    layout: Layout,
    block: Block,
    *,
    cgroup: str,
    kept: Iterable[Path],
    components: tuple[Component, ...],
) -> Plan:
    """What a node's PID 1 is told to do, beside its own components."""
    return Plan(
        state=str(layout.state),
        logs=str(layout.logs),
        link=block.link,
        sources=tuple(f"{source}/{BLOCK_BITS}" for source in block.sources),
        node_address=f"{block.node}/{BLOCK_BITS}",
        node_name=node_name(block),
        service_range=str(SERVICE_RANGE),
        pod_range=str(pod_range(0)),
        cgroup=cgroup,
        kept=tuple(sorted({str(folder.resolve()) for folder in kept})),
        volatile="" if machine.carries_overlays(layout.state) else layout.containerd.name,
        components=components,
    )


def _write_pki(layout: Layout, block: Block, *, context: str) -> None:
    authority = pki.Authority("drainwatch")
    name, address = node_name(block), str(block.node)
    service = str(SERVICE_RANGE.network_address + 1)
    admin = authority.client(_ADMIN, "system:masters")
    pairs = {
        "apiserver": authority.server(
            "kube-apiserver", (address, "127.0.0.1", service, *_API_NAMES)
        ),
        "kubelet": authority.server(f"system:node:{name}", (address, name)),
        "kubelet-client": authority.client("kube-apiserver-kubelet-client", "system:masters"),
        "admin": admin,
    }
    (layout.pki / "ca.crt").write_bytes(authority.certificate)
    for file, pair in pairs.items():
        pki.write_pair(layout.pki, file, pair)
    pki.write_pair(layout.pki, "sa", pki.signing_pair(), public_suffix="pub")
    users = {
        "controller-manager": ("system:kube-controller-manager",),
        "scheduler": ("system:kube-scheduler",),
        "kubelet": (f"system:node:{name}", "system:nodes"),
        "proxy": ("system:kube-proxy",),
    }

    def write_kubeconfig(path: Path, host: str, user: str, pair: pki.Pair) -> None:
        server = f"https://{host}:{API_PORT}"
        text = pki.kubeconfig(server, authority.certificate, user, pair, context=context)
        pki.write_secret(path, text.encode())

    for file, user in users.items():
        path = layout.config / f"{file}.kubeconfig"
        write_kubeconfig(path, "127.0.0.1", user[0], authority.client(*user))
    write_kubeconfig(layout.kubeconfig, address, _ADMIN, admin)
