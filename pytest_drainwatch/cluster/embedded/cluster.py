"""The owner's side: prepare everything, have it started, wait for a Ready node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest_drainwatch
from pytest_drainwatch.cluster import ClusterError, ClusterFacts, ClusterSettings, Log
from pytest_drainwatch.cluster.embedded import cgroups, machine, pki, slots
from pytest_drainwatch.cluster.embedded.addresses import BLOCK_BITS, SERVICE_RANGE, POD_RANGE, Block, pod_range
from pytest_drainwatch.cluster.embedded.api import ApiClient
from pytest_drainwatch.cluster.embedded.binary import find_binary
from pytest_drainwatch.cluster.embedded.configuration import (
    CONTAINERD_SOCKET,
    NodeConfiguration,
    import_command,
)
from pytest_drainwatch.cluster.embedded.directories import state_dir
from pytest_drainwatch.cluster.embedded.image import Image, pause_image, probe_image
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.plan import Plan

READY_TIMEOUT_S = 90.0
CLOSE_TIMEOUT_S = 15.0
_POLL_S = 0.02
_LOG_TAIL_LINES = 12


@dataclass(slots=True, kw_only=True)
class EmbeddedCluster:
    """One running embedded cluster. See `pytest_drainwatch.cluster.Cluster`."""

    name: str
    why: str
    settings: ClusterSettings
    layout: Layout
    block: Block
    log: Log
    deviations: tuple[str, ...]
    _reaper: subprocess.Popen[bytes]
    _lifeline: int | None
    provider: str = "embedded"
    context: str | None = None
    _loaded: set[str] = field(default_factory=set)
    _facts: ClusterFacts | None = field(default=None)

    @property
    def kubeconfig(self) -> Path:
        return self.layout.kubeconfig

    @property
    def node_address(self) -> str:
        return str(self.block.node)

    @property
    def source_addresses(self) -> tuple[str, ...]:
        return tuple(str(source) for source in self.block.sources)

    @property
    def node_name(self) -> str:
        return _node_name(self.block)

    def ensure_probe_image(self) -> str:
        image = probe_image(self.log)
        if image.reference not in self._loaded:
            self._load(image)
            self._loaded.add(image.reference)
        return image.reference

    def _load(self, image: Image) -> None:
        # containerd's socket lies in the node's private /run; this is the way in.
        socket = f"/proc/{self.layout.node_pid.read_text()}/root{CONTAINERD_SOCKET}"
        done = subprocess.run(
            import_command(socket, image.archive), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            self.check()
            raise ClusterError(
                f"containerd did not take {image.archive}: {done.stderr.strip()}. Expected an image"
                f" archive; delete that file to have it made again. Log: {self.layout.log('containerd')}"
            )

    def agent_command(self, argv: Sequence[str]) -> list[str]:
        # The host's end of the link is in this process's own network namespace.
        return list(argv)

    def facts(self) -> ClusterFacts:
        if self._facts is None:
            self._facts = self._read_facts()
        return self._facts

    def check(self) -> None:
        if self._reaper.poll() is not None or self.layout.ended.exists():
            raise ClusterError(f"cluster {self.name} has died: {_what_died(self.layout)}")

    def close(self) -> None:
        if self._lifeline is None:
            return
        os.close(self._lifeline)
        self._lifeline = None
        try:
            self._reaper.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.log(f"cluster {self.name} is slow to end; its reaper goes on without us")

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until the node reports Ready.

        Raises:
            ClusterError: a component died, or the time is up.
        """
        deadline = time.monotonic() + timeout_s
        api = ApiClient(self.node_address, self.layout.pki)
        while not _is_ready(api.get_json(f"/api/v1/nodes/{self.node_name}")):
            self.check()
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"cluster {self.name} has no Ready node after {timeout_s:.0f} s: {_progress(self.layout, api)}"
                )
            time.sleep(_POLL_S)
        api.close()

    def _read_facts(self) -> ClusterFacts:
        api = ApiClient(self.node_address, self.layout.pki)
        node = api.get_json(f"/api/v1/nodes/{self.node_name}") or {}
        version = api.get_json("/version") or {}
        api.close()
        return ClusterFacts(
            provider=self.provider,
            kubernetes=version.get("gitVersion"),
            proxy_mode=self.settings.proxy_mode,
            min_sync_period_ms=self.settings.min_sync_period_ms,
            container_runtime=node.get("status", {})
            .get("nodeInfo", {})
            .get("containerRuntimeVersion"),
            cgroup=cgroups.flavour(cgroups.hierarchies()),
            deviations=self.deviations,
        )


def start_embedded(
    settings: ClusterSettings,
    *,
    why: str,
    log: Log,
    logs_dir: Path | None = None,
    name: str | None = None,
    detached: bool = False,
) -> EmbeddedCluster:
    """Start a cluster and return when its node is Ready.

    Args:
        settings, why, log, logs_dir: see `open_cluster`.
        name: for people and for `drainwatch cluster down`; made up if `None`.
        detached: let it live on when this process ends.

    Raises:
        ClusterError: see its message; nothing is left running, logs are kept.
    """
    machine.check()
    binary = find_binary(settings.kube_version, given=settings.kube_bin, log=log)
    name = name or f"dw-{uuid.uuid4().hex[:8]}"
    root = state_dir()
    state = root / "clusters" / name
    logs = (logs_dir or root / "logs" / name).absolute()
    layout = Layout(state=state, logs=logs)
    for folder in (state, layout.pki, layout.config / "cni", logs):
        folder.mkdir(parents=True, exist_ok=True)
    state.chmod(0o700)
    lock = slots.try_lock(layout.lock)
    if lock is None:
        raise ClusterError(f"a cluster named {name} is running: stop it (drainwatch cluster down --name {name})")
    slot = slots.acquire(root / "slots")
    configuration = NodeConfiguration(
        layout=layout,
        binary=binary,
        node_address=str(slot.block.node),
        node_name=_node_name(slot.block),
        pods=str(pod_range(0)),
        cgroup=f"/{cgroups.PARENT}/{name}",
        proxy_mode=settings.proxy_mode,
        min_sync_period_ms=settings.min_sync_period_ms,
        cni_bin=machine.cni_bin(),
        restrict_oom=machine.lacks_sys_resource(),
        images=(pause_image(log).archive,),
    )
    for file, content in configuration.files().items():
        (layout.config / file).write_text(content)
    _write_pki(layout, slot.block, configuration.node_name, name)
    plan = _plan(configuration, slot.block)
    plan.write(layout.plan)
    reaper, lifeline = _spawn_reaper(layout, detached=detached, locks=(lock, slot.lock))
    os.close(lock)
    os.close(slot.lock)
    cluster = EmbeddedCluster(
        name=name,
        why=why,
        settings=settings,
        layout=layout,
        block=slot.block,
        log=log,
        deviations=configuration.deviations(),
        _reaper=reaper,
        _lifeline=lifeline,
    )
    try:
        cluster.wait_ready()
    except BaseException:
        cluster.close()
        raise
    return cluster


def _node_name(block: Block) -> str:
    return f"dw-node-{block.slot}"


def _plan(configuration: NodeConfiguration, block: Block) -> Plan:
    layout = configuration.layout
    return Plan(
        state=str(layout.state),
        logs=str(layout.logs),
        link=block.link,
        sources=tuple(f"{source}/{BLOCK_BITS}" for source in block.sources),
        node_address=f"{block.node}/{BLOCK_BITS}",
        node_name=configuration.node_name,
        service_range=str(SERVICE_RANGE),
        pod_range=str(POD_RANGE),
        cgroup=configuration.cgroup,
        volatile="",
        components=configuration.components(),
    )


def _write_pki(layout: Layout, block: Block, node_name: str, context: str) -> None:
    authority = pki.Authority("drainwatch")
    (layout.pki / "ca.crt").write_bytes(authority.certificate)
    address = str(block.node)
    service = str(SERVICE_RANGE.network_address + 1)
    names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
    pki.write_pair(layout.pki, "apiserver", authority.server("kube-apiserver", (address, "127.0.0.1", service, *names)))
    pki.write_pair(layout.pki, "kubelet", authority.server(f"system:node:{node_name}", (address, node_name)))
    pki.write_pair(layout.pki, "kubelet-client", authority.client("kube-apiserver-kubelet-client", "system:masters"))
    pki.write_pair(layout.pki, "sa", pki.signing_pair(), public_suffix="pub")
    admin = authority.client("drainwatch-admin", "system:masters")
    pki.write_pair(layout.pki, "admin", admin)
    inside, outside = "https://127.0.0.1:6443", f"https://{address}:6443"
    users = {
        "controller-manager": ("system:kube-controller-manager",),
        "scheduler": ("system:kube-scheduler",),
        "kubelet": (f"system:node:{node_name}", "system:nodes"),
        "proxy": ("system:kube-proxy",),
    }
    for file, user in users.items():
        text = pki.kubeconfig(inside, authority.certificate, user[0], authority.client(*user), context=context)
        pki.write_secret(layout.config / f"{file}.kubeconfig", text.encode())
    text = pki.kubeconfig(outside, authority.certificate, "drainwatch-admin", admin, context=context)
    pki.write_secret(layout.kubeconfig, text.encode())


def _spawn_reaper(layout: Layout, *, detached: bool, locks: tuple[int, ...]) -> tuple[subprocess.Popen[bytes], int | None]:
    read = write = None
    lifeline, passed = "none", list(locks)
    if not detached:
        read, write = os.pipe()  # close-on-exec: no other child keeps the write end
        lifeline = f"{read}:{os.getpid()}"
        passed.append(read)
    package_parent = Path(pytest_drainwatch.__file__).parents[1]
    environment = {"PYTHONPATH": str(package_parent), "PATH": os.environ.get("PATH", os.defpath)}
    with layout.log("node").open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-S", "-P", "-m", "pytest_drainwatch.cluster.embedded.reaper", str(layout.plan), lifeline],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=environment,
            pass_fds=passed,
            start_new_session=True,
        )
    if read is not None:
        os.close(read)
    return process, write


def _is_ready(node: dict[str, object] | None) -> bool:
    if node is None:
        return False
    conditions = node.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _what_died(layout: Layout) -> str:
    return str(layout.ended.read_text() if layout.ended.exists() else "the reaper ended")


def _progress(layout: Layout, api: ApiClient) -> str:
    return layout.log("node").read_text()
