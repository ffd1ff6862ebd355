"""All files of a new cluster: certificates, configuration, and the plan for its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_drainwatch.cluster import ClusterSettings
from pytest_drainwatch.cluster.embedded import cgroups, machine, pki
from pytest_drainwatch.cluster.embedded.addresses import (
    BLOCK_BITS,
    POD_RANGE,
    SERVICE_RANGE,
    Block,
    pod_range,
)
from pytest_drainwatch.cluster.embedded.configuration import API_PORT, NodeConfiguration
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.plan import Component, NodePlan, Plan

_ADMIN = "drainwatch-admin"
_HERE = "127.0.0.1"
_API_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


def prepare(
    name: str,
    layout: Layout,
    block: Block,
    settings: ClusterSettings,
    *,
    binary: Path,
    images: tuple[Path, ...],
) -> tuple[NodeConfiguration, ...]:
    """Write every file of the cluster *name* and return what each node's were made from."""
    root = f"/{cgroups.PARENT}/{name}"
    nodes = tuple(
        NodeConfiguration(
            layout=layout.of_node(index),
            binary=binary,
            node_address=str(block.node_at(index)),
            node_name=block.node_name(index),
            pods=str(pod_range(index)),
            # Two kubelets under one root would remove each other's.
            cgroup=root if settings.nodes == 1 else f"{root}/{block.node_name(index)}",
            api=str(block.node) if index else None,
            nodes=settings.nodes,
            proxy_mode=settings.proxy_mode,
            min_sync_period_ms=settings.min_sync_period_ms,
            cni_bin=machine.cni_bin(),
            restrict_oom=machine.lacks_sys_resource(),
            filters_bridges=machine.filters_bridges(),
            images=images,
        )
        for index in range(settings.nodes)
    )
    for node in nodes:
        node.layout.make()
        for file, content in node.files().items():
            (node.layout.config / file).write_text(content)
    _write_pki(layout, nodes, context=name)
    kept = (layout.state, layout.logs, *(file.parent for file in (binary, *images)))
    cluster_plan(
        layout,
        block,
        cgroup=root,
        nodes=[
            node_plan(
                node.layout,
                block,
                index,
                cgroup=node.cgroup,
                kept=kept,
                components=node.components(),
                certificates=layout.pki,
                nodes=settings.nodes,
            )
            for index, node in enumerate(nodes)
        ],
    ).write(layout.plan)
    return nodes


def cluster_plan(layout: Layout, block: Block, *, cgroup: str, nodes: Iterable[NodePlan]) -> Plan:
    """What the reaper is told to do."""
    return Plan(
        state=str(layout.state),
        logs=str(layout.logs),
        link=block.link,
        sources=tuple(f"{source}/{BLOCK_BITS}" for source in block.sources),
        cgroup=cgroup,
        nodes=tuple(nodes),
    )


def node_plan(
    layout: Layout,
    block: Block,
    index: int,
    *,
    cgroup: str,
    kept: Iterable[Path],
    components: tuple[Component, ...],
    certificates: Path,
    nodes: int = 1,
) -> NodePlan:
    """What the PID 1 of node *index* is told to do, beside its own components.

    Args:
        layout: the node's own files.
        certificates: folder of the admin's.
        nodes: how many there are.
    """
    return NodePlan(
        state=str(layout.state),
        logs=str(layout.logs),
        name=block.node_name(index),
        address=f"{block.node_at(index)}/{BLOCK_BITS}",
        routes=tuple(
            (str(pod_range(other)), str(block.node_at(other)))
            for other in range(nodes)
            if other != index
        ),
        service_range=str(SERVICE_RANGE),
        pod_range=str(pod_range(index)),
        pods=str(POD_RANGE),
        api=str(block.node) if index else _HERE,
        pki=str(certificates),
        cgroup=cgroup,
        kept=tuple(sorted({str(folder.resolve()) for folder in kept})),
        volatile="" if machine.carries_overlays(layout.state) else layout.containerd.name,
        components=components,
    )


def _write_pki(layout: Layout, nodes: tuple[NodeConfiguration, ...], *, context: str) -> None:
    authority = pki.Authority("drainwatch")
    address = nodes[0].node_address
    service = str(SERVICE_RANGE.network_address + 1)
    admin = authority.client(_ADMIN, "system:masters")
    pairs = {
        "apiserver": authority.server("kube-apiserver", (address, _HERE, service, *_API_NAMES)),
        "kubelet-client": authority.client("kube-apiserver-kubelet-client", "system:masters"),
        "admin": admin,
    }
    for file, pair in pairs.items():
        pki.write_pair(layout.pki, file, pair)
    pki.write_pair(layout.pki, "sa", pki.signing_pair(), public_suffix="pub")

    def write_kubeconfig(path: Path, host: str, user: str, pair: pki.Pair) -> None:
        server = f"https://{host}:{API_PORT}"
        text = pki.kubeconfig(server, authority.certificate, user, pair, context=context)
        pki.write_secret(path, text.encode())

    def write_user(folder: Path, file: str, host: str, *user: str) -> None:
        pair = authority.client(*user)
        write_kubeconfig(folder / f"{file}.kubeconfig", host, user[0], pair)

    write_user(layout.config, "controller-manager", _HERE, "system:kube-controller-manager")
    write_user(layout.config, "scheduler", _HERE, "system:kube-scheduler")
    for node in nodes:
        own, host, user = node.layout, node.api or _HERE, f"system:node:{node.node_name}"
        (own.pki / "ca.crt").write_bytes(authority.certificate)
        serving = authority.server(user, (node.node_address, node.node_name))
        pki.write_pair(own.pki, "kubelet", serving)
        write_user(own.config, "kubelet", host, user, "system:nodes")
        write_user(own.config, "proxy", host, "system:kube-proxy")
    write_kubeconfig(layout.kubeconfig, address, _ADMIN, admin)
