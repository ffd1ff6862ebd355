"""Images of real servers from Debian's packages: no registry, no Docker daemon.

The official images of nginx and HAProxy name the signal that ends them gracefully; SIGTERM,
which Kubernetes sends unless the image says otherwise, makes both quit at once. Each server
is here with its official image's stop signal, those two without it as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.cluster import Cluster, ClusterError, Log
from pytest_drainwatch.cluster.embedded.image import Image, package_image
from pytest_drainwatch.cluster.embedded.rootfs import SHELL, Recipe

_BASE = ("base-files", "dash")
# Python's maintainer scripts would have done it; without it each start compiles everything.
_COMPILE = (
    'chroot "$1" /usr/bin/python3 -m compileall -q'
    " --invalidation-mode unchecked-hash /usr/lib/python3.* /usr/lib/python3 >/dev/null || true"
)


class NotHad(Exception):
    """An image can't be had here; the text says why, and what would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerImage:
    """One server's image.

    Attributes:
        name: the image's, and the packages'.
        stop_signal: what the image says is to end it; `None` is SIGTERM.
        packages: Debian's names.
        hooks: see `Recipe`.
    """

    name: str
    packages: tuple[str, ...]
    stop_signal: str | None = None
    hooks: tuple[str, ...] = (SHELL,)

    def load(self, cluster: Cluster, log: Log) -> str:
        """Make the image, once, and load it into *cluster*; returns its reference.

        Raises:
            NotHad: the packages can't be had here, or the cluster takes no image from us.
            ClusterError: it takes images, and did not take this one.
        """
        try:
            archive = self._made(log).archive
        except ClusterError as error:
            raise NotHad(str(error)) from error
        try:
            return cluster.load_image(archive)
        except ClusterError as error:
            if cluster.provider == "existing":
                raise NotHad(str(error)) from error
            raise

    def _made(self, log: Log) -> Image:
        recipe = Recipe(
            purpose=f"{self.name}'s",
            packages=(*self.packages, *_BASE),
            hooks=self.hooks,
            about="under a minute",
        )
        name = f"docker.io/drainwatch/{self.name}"
        return package_image(name, recipe, log, stop_signal=self.stop_signal)


NGINX = ServerImage(name="nginx", packages=("nginx",), stop_signal="SIGQUIT")
NGINX_TERM = ServerImage(name="nginx", packages=("nginx",))
HAPROXY = ServerImage(name="haproxy", packages=("haproxy",), stop_signal="SIGUSR1")
HAPROXY_TERM = ServerImage(name="haproxy", packages=("haproxy",))
PYTHON = ServerImage(
    name="python",
    packages=("python3", "gunicorn", "python3-gevent"),
    hooks=(SHELL, _COMPILE),
)
NODE = ServerImage(name="node", packages=("nodejs",))
