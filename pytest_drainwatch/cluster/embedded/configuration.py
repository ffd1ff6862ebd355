"""Flags and configuration files of every component. Pure: text from settings.

Whatever differs from Kubernetes' defaults is either forced by one machine without a
network, or recorded in `deviations`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_drainwatch.cluster import PROXY_MODES
from pytest_drainwatch.cluster.embedded import runtime
from pytest_drainwatch.cluster.embedded.addresses import POD_RANGE, SERVICE_RANGE
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.plan import Component, Gate

SYNC_PERIOD_MS = 30_000
ETCD_PORT = 2379
API_PORT = 6443


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfiguration:
    """What the files and flags are made from.

    Attributes:
        layout: this node's own files.
        binary: the kubenode binary.
        node_address, node_name: of this node.
        pods: this node's pod range.
        cgroup: this node's cgroup root.
        api: where the API server answers; None: on this node, which has the control plane.
        nodes: how many the cluster has.
        proxy_mode, min_sync_period_ms: see `ClusterSettings`.
        cni_bin: folder of the CNI plugins.
        restrict_oom: this machine lacks CAP_SYS_RESOURCE (FACTS M4).
        filters_bridges: bridged packets pass the packet filter on this machine.
        images: archives that the node imports while it starts.
    """

    layout: Layout
    binary: Path
    node_address: str
    node_name: str
    pods: str
    cgroup: str
    proxy_mode: str
    min_sync_period_ms: int
    cni_bin: Path
    restrict_oom: bool
    api: str | None = None
    nodes: int = 1
    filters_bridges: bool = True
    images: tuple[Path, ...] = ()

    def components(self) -> tuple[Component, ...]:
        """Every process of the node in the order of its start."""
        containerd = Component(
            name="containerd",
            argv=("containerd", "--config", str(self.layout.config / "containerd.toml")),
        )
        imports = (
            Component(
                name=runtime.import_name(archive),
                argv=runtime.import_command(runtime.SOCKET, archive),
                # Not earlier: while the API server starts, it needs every core.
                gates=(Gate.API_ANSWERS, Gate.CONTAINERD),
                passing=True,
            )
            for archive in self.images
        )
        kubelet = Component(
            name="kubelet",
            argv=self._kubenode("kubelet", *self._kubelet()),
            gates=(Gate.API_ANSWERS, Gate.CONTAINERD),
        )
        proxy = Component(
            name="kube-proxy",
            argv=self._kubenode(
                "kube-proxy",
                f"--config={self.layout.config / 'kube-proxy.json'}",
            ),
            gates=(Gate.API_READY,),
        )
        if self.api is not None:
            return containerd, *imports, kubelet, proxy
        return (
            Component(name="etcd", argv=self._kubenode("etcd", *self._etcd()), control_plane=True),
            containerd,
            *imports,
            Component(
                name="kube-apiserver",
                argv=self._kubenode("kube-apiserver", *self._apiserver()),
                gates=(Gate.ETCD,),
                control_plane=True,
            ),
            kubelet,
            Component(
                name="kube-controller-manager",
                argv=self._kubenode("kube-controller-manager", *self._controller_manager()),
                gates=(Gate.API_READY,),
                control_plane=True,
            ),
            Component(
                name="kube-scheduler",
                argv=self._kubenode("kube-scheduler", *self._scheduler()),
                gates=(Gate.API_READY,),
                control_plane=True,
            ),
            proxy,
        )

    def files(self) -> dict[str, str]:
        """Content of every file in the layout's `config` folder, by name."""
        return {
            "containerd.toml": runtime.containerd_configuration(
                self.layout.containerd,
                cni_config=self.layout.config / "cni",
                cni_bin=self.cni_bin,
                restrict_oom=self.restrict_oom,
            ),
            "cni/10-drainwatch.conflist": runtime.network_configuration(self.pods),
            "kubelet.json": json.dumps(self._kubelet_configuration(), indent=1),
            "kube-proxy.json": json.dumps(self._proxy_configuration(), indent=1),
        }

    def deviations(self) -> tuple[str, ...]:
        """Every difference from Kubernetes' defaults that a reader of a report may ask for."""
        named = [
            "kubelet: eviction thresholds and image garbage collection off, as in kind",
            "kubelet: host-wide sysctls masked (vm.overcommit_memory, vm.panic_on_oom,"
            " kernel.panic, kernel.panic_on_oops, kernel.keys.root_max*)",
            "kube-proxy: nf_conntrack_max left as it is (conntrack.maxPerCore 0), as in kind",
            "kube-controller-manager: client rate limit raised (500/1000) for a faster start",
            "kube-controller-manager, kube-scheduler: no port of their own (--secure-port=0)",
            "kube-apiserver: no front proxy, so no aggregated APIs",
            "etcd: no fsync, heartbeat 50 ms, election timeout 250 ms (one member)",
            "no cluster DNS, no default route",
        ]
        default_ms = PROXY_MODES[self.proxy_mode]
        if self.min_sync_period_ms != default_ms:
            named.append(
                f"kube-proxy: minSyncPeriod {self.min_sync_period_ms} ms, not {default_ms} ms"
            )
        if self.nodes > 1:
            named.append(
                f"{self.nodes} nodes on one machine: each says that it has all of the machine's"
                " CPU and memory, and a bridge in a network namespace of its own joins them"
            )
            named.append(
                "pods reach those of other nodes by static routes, unmasqueraded, as in kind;"
                " the node with the control plane takes pods as well"
            )
        if not self.filters_bridges:
            named.append("bridged packets bypass the packet filter (no br_netfilter here)")
        if self.restrict_oom:
            named.append("containerd: restrict_oom_score_adj (no CAP_SYS_RESOURCE here)")
        return tuple(named)

    def _kubenode(self, component: str, *flags: str) -> tuple[str, ...]:
        return (str(self.binary), component, *flags)

    def _pki(self, name: str) -> str:
        return str(self.layout.pki / name)

    def _kubeconfig(self, component: str) -> str:
        return str(self.layout.config / f"{component}.kubeconfig")

    def _etcd(self) -> tuple[str, ...]:
        # Plain HTTP, but only on the loopback of the node's own network namespace,
        # which pods do not share.
        client, peer = (f"http://127.0.0.1:{port}" for port in (ETCD_PORT, ETCD_PORT + 1))
        return (
            f"--data-dir={self.layout.etcd}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            "--unsafe-no-fsync",
            # The only member elects itself after one to five heartbeats; each costs a wake-up.
            "--heartbeat-interval=50",
            "--election-timeout=250",
        )

    def _apiserver(self) -> tuple[str, ...]:
        return (
            f"--etcd-servers=http://127.0.0.1:{ETCD_PORT}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            f"--advertise-address={self.node_address}",
            f"--secure-port={API_PORT}",
            f"--tls-cert-file={self._pki('apiserver.crt')}",
            f"--tls-private-key-file={self._pki('apiserver.key')}",
            f"--client-ca-file={self._pki('ca.crt')}",
            f"--kubelet-certificate-authority={self._pki('ca.crt')}",
            f"--kubelet-client-certificate={self._pki('kubelet-client.crt')}",
            f"--kubelet-client-key={self._pki('kubelet-client.key')}",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={self._pki('sa.pub')}",
            f"--service-account-signing-key-file={self._pki('sa.key')}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--anonymous-auth=false",
            "--allow-privileged=true",
        )

    def _controller_manager(self) -> tuple[str, ...]:
        return (
            f"--kubeconfig={self._kubeconfig('controller-manager')}",
            f"--root-ca-file={self._pki('ca.crt')}",
            f"--service-account-private-key-file={self._pki('sa.key')}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            # Nobody asks it, and it would make an RSA key first.
            "--secure-port=0",
            "--flex-volume-plugin-dir=/var/lib/kubelet/volume-plugins",
            # It makes forty accounts first; at the default 20 a second that takes two seconds.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        )

    def _scheduler(self) -> tuple[str, ...]:
        return (
            f"--kubeconfig={self._kubeconfig('scheduler')}",
            "--leader-elect=false",
            "--secure-port=0",
        )

    def _kubelet(self) -> tuple[str, ...]:
        return (
            f"--config={self.layout.config / 'kubelet.json'}",
            f"--kubeconfig={self._kubeconfig('kubelet')}",
            f"--node-ip={self.node_address}",
            f"--hostname-override={self.node_name}",
        )

    def _kubelet_configuration(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.cgroup,
            # Kubernetes 1.35 and later refuse cgroup v1 unless told not to.
            "failCgroupV1": False,
            "failSwapOn": False,
            "containerRuntimeEndpoint": f"unix://{runtime.SOCKET}",
            "tlsCertFile": self._pki("kubelet.crt"),
            "tlsPrivateKeyFile": self._pki("kubelet.key"),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": self._pki("ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "resolvConf": "",
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
            # The disk is the developer's: how full it is must not evict pods.
            "evictionHard": {
                "memory.available": "0%",
                "nodefs.available": "0%",
                "nodefs.inodesFree": "0%",
                "imagefs.available": "0%",
                "imagefs.inodesFree": "0%",
            },
            "imageGCHighThresholdPercent": 100,
        }

    def _proxy_configuration(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": self._kubeconfig("proxy")},
            "mode": self.proxy_mode,
            "clusterCIDR": str(POD_RANGE),
            "hostnameOverride": self.node_name,
            # nf_conntrack_max belongs to the whole machine.
            "conntrack": {"maxPerCore": 0},
            self.proxy_mode: {
                "minSyncPeriod": f"{self.min_sync_period_ms}ms",
                # kube-proxy refuses to start with a shorter one; 30 s is its default.
                "syncPeriod": f"{max(self.min_sync_period_ms, SYNC_PERIOD_MS)}ms",
            },
        }
