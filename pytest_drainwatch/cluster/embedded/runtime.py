"""containerd and its network: configuration, and how it is given images. Pure."""

from __future__ import annotations

import json
from pathlib import Path

# In the node's private /run, which ends with the node.
SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "docker.io/drainwatch/pause:1"
BRIDGE = "cni0"
NETWORK = "drainwatch"
# Where host-local keeps a file for each address that it has handed out.
IPAM = "/run/cni/ipam"


def import_name(archive: Path) -> str:
    """The name of the job that imports *archive*."""
    return f"import-{archive.stem}"


def import_command(socket: str, archive: Path) -> tuple[str, ...]:
    """The command that gives containerd the images in *archive*."""
    return ("ctr", "--address", socket, "--namespace=k8s.io", "images", "import", str(archive))


def network_configuration(pods: str) -> str:
    """A bridge for the pods of one node, which have the range *pods*."""
    document = {
        "cniVersion": "0.4.0",
        "name": NETWORK,
        "plugins": [
            {
                "type": "bridge",
                "bridge": BRIDGE,
                "isGateway": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": IPAM,
                    "ranges": [[{"subnet": pods}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
    return json.dumps(document, indent=1)


def containerd_configuration(
    root: Path, *, cni_config: Path, cni_bin: Path, restrict_oom: bool
) -> str:
    """containerd.toml, in the form that containerd 1.6 to 2.x read.

    Args:
        root: where images and containers are kept.
        cni_config, cni_bin: folders of the network's configuration and plugins.
        restrict_oom: never lower an oom_score_adj: not permitted here (FACTS M4).
    """

    def quoted(value: object) -> str:
        return json.dumps(str(value))

    return f"""\
version = 2
root = {quoted(root)}
state = "/run/containerd/state"

[grpc]
  address = {quoted(SOCKET)}

[plugins."io.containerd.internal.v1.opt"]
  path = "/run/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = {quoted(PAUSE_IMAGE)}
  disable_apparmor = true
  restrict_oom_score_adj = {str(restrict_oom).lower()}

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = {quoted(cni_bin)}
    conf_dir = {quoted(cni_config)}

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""
