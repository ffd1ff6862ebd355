"""The owner's side: prepare everything, have it started, wait until it is whole."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError, ClusterFacts, ClusterSettings, Log, Seat
from pytest_drainwatch.cluster.embedded import (
    cgroups,
    diagnosis,
    inotify,
    kill,
    machine,
    netstate,
    readiness,
    records,
    seat,
    slots,
    starts,
)
from pytest_drainwatch.cluster.embedded.addresses import Block
from pytest_drainwatch.cluster.embedded.archive import reference_of
from pytest_drainwatch.cluster.embedded.binary import find_binary
from pytest_drainwatch.cluster.embedded.configuration import NodeConfiguration
from pytest_drainwatch.cluster.embedded.directories import writing_to_cache, writing_to_state
from pytest_drainwatch.cluster.embedded.image import (
    Image,
    base_image,
    pause_image,
    probe_image,
    probe_image_if_cached,
)
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.lifeline import Lifeline
from pytest_drainwatch.cluster.embedded.loading import Loaded
from pytest_drainwatch.cluster.embedded.preparation import prepare
from pytest_drainwatch.cluster.embedded.rootfs import cached_root_filesystem
from pytest_drainwatch.cluster.embedded.store import begin_from, image_store
from pytest_drainwatch.cluster.network import NodeNetwork
from pytest_drainwatch.cluster.possible import check_settings

READY_TIMEOUT_S = 90.0


class EmbeddedCluster:
    """One running embedded cluster. See `pytest_drainwatch.cluster.Cluster`."""

    provider = "embedded"
    context: str | None = None

    def __init__(
        self,
        name: str,
        settings: ClusterSettings,
        layout: Layout,
        block: Block,
        nodes: Sequence[NodeConfiguration],
        lifeline: Lifeline,
        *,
        why: str,
        log: Log,
        images: Sequence[Image],
        has_base: bool,
    ) -> None:
        self.name = name
        self.why = why
        self.layout = layout
        self._settings = settings
        self._block = block
        self._nodes = nodes
        self._lifeline = lifeline
        self._log = log
        self._has_base = has_base
        self._images = Loaded([node.layout for node in nodes], images, self.check)
        self._whole: readiness.Whole | None = None

    @property
    def whole(self) -> readiness.Whole:
        """How its start went; there is no cluster to ask before `wait_whole` has returned."""
        assert self._whole is not None
        return self._whole

    @property
    def kubeconfig(self) -> Path:
        return self.layout.kubeconfig

    @property
    def node_address(self) -> str:
        return str(self._block.node)

    @property
    def node_addresses(self) -> Mapping[str, str]:
        return {node.node_name: node.node_address for node in self._nodes}

    @property
    def source_addresses(self) -> tuple[str, ...]:
        return tuple(str(source) for source in self._block.sources)

    @property
    def reaper(self) -> int:
        """Process id of the reaper, which outlives this process."""
        return self._lifeline.reaper

    def ensure_probe_image(self) -> str:
        with writing_to_cache():
            image = probe_image(self._log, thin=self._has_base)
        return self._images.ensure(image)

    def load_image(self, archive: Path) -> str:
        return self._images.ensure(Image(reference=reference_of(archive), archive=archive))

    def agent_command(self, argv: Sequence[str]) -> list[str]:
        # The host's end of the link is in this process's own network namespace.
        return list(argv)

    def enter_pod(self, uid: str) -> Seat:
        self.check()
        nodes = {IPv4Network(node.pods): node.layout.node_pid for node in self._nodes}
        return seat.take(uid, nodes=nodes, cluster=self.name)

    def killer(self, uid: str, container_id: str) -> Callable[[], None]:
        self.check()
        return kill.find(uid, container_id, cluster=self.name)

    def facts(self) -> ClusterFacts:
        return ClusterFacts(
            provider=self.provider,
            kube_version=self.whole.kube_version,
            proxy_mode=self._settings.proxy_mode,
            min_sync_period_ms=self._settings.min_sync_period_ms,
            nodes=len(self._nodes),
            cgroup=cgroups.flavour(cgroups.hierarchies()),
            deviations=self._nodes[0].deviations(),
        )

    def node_network(self, sources: Collection[str], node: str | None = None) -> NodeNetwork | None:
        named = {each.node_name: each for each in self._nodes}
        asked = self._entered_by(sources) if node is None else named.get(node)
        if asked is None:
            return None
        into = netstate.enter(asked.layout.node_pid)
        return netstate.look(into, self._settings.proxy_mode, sources)

    def _entered_by(self, sources: Collection[str]) -> NodeConfiguration:
        """Where what they open meets kube-proxy's rules: a pod's on its own node."""
        addresses = [IPv4Address(each) for each in sources]
        for node in self._nodes:
            if any(each in IPv4Network(node.pods) for each in addresses):
                return node
        return self._nodes[0]

    def admit(self, namespace: str) -> None:
        """Every one: real users are nowhere in it."""

    @contextmanager
    def hasten(self) -> Iterator[None]:
        own, found = f"/{cgroups.PARENT}/{self.name}", cgroups.hierarchies()
        with suppress(OSError):  # its node could not have a share of its own, and has said so
            cgroups.weigh(own, cgroups.HASTENED, found)
        try:
            yield
        finally:
            with suppress(OSError):
                cgroups.weigh(own, cgroups.ORDINARY, found)

    def check(self) -> None:
        ended = [node.layout for node in self._nodes if node.layout.ended.exists()]
        if ended or not self._lifeline.alive:
            cause = diagnosis.cause_of_death(ended[0] if ended else self.layout)
            raise ClusterError(f"cluster {self.name} has died: {cause}")

    def close(self) -> None:
        if not self._lifeline.end():
            self._log(
                f"cluster {self.name} is slow to end: its reaper (process"
                f" {self._lifeline.reaper}) goes on without us"
            )

    def detach(self) -> None:
        """Let the cluster live on when this process ends."""
        records.detached(self.layout)
        self._lifeline.detach()

    def wait_whole(self, timeout_s: float) -> None:
        """Wait until the nodes are Ready, take pods, and have the images they were started with.

        Raises:
            ClusterError: a component died, or the time is up.
        """
        whole = self._whole = readiness.wait(
            self.name,
            self.layout,
            address=self.node_address,
            node_names=[node.node_name for node in self._nodes],
            has_images=self._images.started,
            check=self.check,
            timeout_s=timeout_s,
        )
        those = "node" if len(self._nodes) == 1 else f"{len(self._nodes)} nodes"
        self._log(
            f"cluster {self.name}: {those} Ready after {whole.ready_s:.1f} s,"
            f" takes pods after {whole.whole_s:.1f} s"
        )


def start_embedded(
    settings: ClusterSettings,
    *,
    why: str,
    log: Log,
    logs_dir: Path | None = None,
    name: str | None = None,
) -> EmbeddedCluster:
    """Start a cluster and return when it is whole.

    Args:
        settings, why, log, logs_dir: see `open_cluster`.
        name: for people and for `drainwatch cluster down`; made up if `None`.

    Raises:
        ClusterError: see its message; nothing is left running, logs are kept.
    """
    check_settings(settings)
    machine.check()
    records.sweep(log)
    with writing_to_cache():
        binary = find_binary(settings.kube_version, given=settings.kube_bin, log=log)
        pause = pause_image(log)
        base = cached_root_filesystem()
        store = image_store((pause, base_image(base)), log) if base else None
    name = name or f"dw-{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        with writing_to_state():
            starting = stack.enter_context(starts.STARTS.turn(log))
        inotify.check(starting, settings.nodes)
        layout, lock = records.new_layout(name, logs_dir)
        with writing_to_state():
            cluster = _launch(name, settings, layout, lock, binary, pause, store, why=why, log=log)
        try:
            _record(cluster, settings)
            cluster.wait_whole(READY_TIMEOUT_S)
        except BaseException as error:
            cluster.close()
            if isinstance(error, OSError):
                cluster.check()  # its files went with it: say why, not which
            raise
    return cluster


def _launch(
    name: str,
    settings: ClusterSettings,
    layout: Layout,
    lock: int,
    binary: Path,
    pause: Image,
    store: Path | None,
    *,
    why: str,
    log: Log,
) -> EmbeddedCluster:
    locks = [lock]
    try:
        slot = slots.acquire()
        locks.append(slot.lock)
        layouts = [layout.of_node(index) for index in range(settings.nodes)]
        has_base = store is not None and all(begin_from(store, each) for each in layouts)
        # The probe comes along if it is at hand: while the node starts, there is time for it.
        images = (*([] if has_base else [pause]), *probe_image_if_cached(thin=has_base))
        archives = tuple(image.archive for image in images)
        nodes = prepare(name, layout, slot.block, settings, binary=binary, images=archives)
        lifeline = Lifeline(layout, locks)
    except BaseException:
        layout.remove_state()
        raise
    finally:
        # The reaper has its own by now.
        for descriptor in locks:
            os.close(descriptor)
    return EmbeddedCluster(
        name,
        settings,
        layout,
        slot.block,
        nodes,
        lifeline,
        why=why,
        log=log,
        images=images,
        has_base=has_base,
    )


def _record(cluster: EmbeddedCluster, settings: ClusterSettings) -> None:
    records.Record(
        name=cluster.name,
        created=time.time(),
        owner=os.getpid(),
        reaper=cluster.reaper,
        kube_version=settings.kube_version,
        proxy_mode=settings.proxy_mode,
        node_address=cluster.node_address,
        kubeconfig=str(cluster.kubeconfig),
        logs=str(cluster.layout.logs),
        nodes=settings.nodes,
    ).write(cluster.layout)
