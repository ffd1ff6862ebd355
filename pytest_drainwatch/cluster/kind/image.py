"""The probe's image in kind's nodes: what is at hand, else `docker build`, else from packages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest_drainwatch
from pytest_drainwatch.cluster import ClusterError, Log
from pytest_drainwatch.cluster.embedded.archive import layer_bytes
from pytest_drainwatch.cluster.embedded.directories import writing_to_cache
from pytest_drainwatch.cluster.embedded.image import Image, probe_image, probe_image_if_cached
from pytest_drainwatch.cluster.kind.programs import docker

_REPOSITORY = "docker.io/drainwatch/probe"
_DOCKERFILE = "probe_image/Dockerfile"
# What the Dockerfile copies, by its path in the repository.
_COPIED = ("probe_image/probe.py", "pytest_drainwatch/__init__.py")
_COPIED_FOLDERS = ("pytest_drainwatch/core", "pytest_drainwatch/flows")


def built_or_made(log: Log) -> Image | str:
    """The probe's image: an archive, or the reference of what the Docker daemon built.

    Raises:
        ClusterError: it can be had in no way; says what each of them lacks.
    """
    with writing_to_cache():
        ready = probe_image_if_cached(thin=False)
    if ready:
        return ready[0]
    try:
        return build(log)
    except ClusterError as not_built:
        log("the probe's image cannot be built with Docker; making it from packages")
        try:
            with writing_to_cache():
                return probe_image(log)
        except ClusterError as not_made:
            raise ClusterError(
                f"there is no way to the probe's image. Built: {not_built} Made: {not_made} Or"
                " name one that the nodes can pull: --dw-probe-image REGISTRY/NAME:TAG"
            ) from not_built


def build(log: Log) -> str:
    """Build the image with Docker, unless the daemon has it; returns its reference.

    Raises ClusterError.
    """
    context = layer_bytes(_context())
    reference = f"{_REPOSITORY}:{hashlib.sha256(context).hexdigest()[:12]}"
    if not in_daemon(reference):
        log("building the probe's image with Docker")
        docker(
            *("build", "--quiet", "--file", _DOCKERFILE, "--tag", reference, "-"),
            expected="its base image, python:3-slim, here or to be pulled: docker pull"
            " python:3-slim.",
            slow=True,
            said=context,
        )
    return reference


def in_daemon(reference: str) -> bool:
    """Whether the Docker daemon has an image of that name."""
    return daemon_id(reference) is not None


def daemon_id(reference: str) -> str | None:
    """What the Docker daemon calls the image of that name; None if it has none."""
    try:
        said = docker("image", "inspect", "--format", "{{.Id}}", reference, expected="an image")
    except ClusterError:
        return None  # if the daemon itself fails, whoever needs the image will hear why
    return said.strip()


def in_node(reference: str, execute: Callable[..., str], node: str) -> bool:
    """Whether the node's containerd has an image of that name."""
    listed = execute(
        node,
        *("ctr", "--namespace", "k8s.io", "images", "list", "--quiet", f"name=={reference}"),
    )
    return reference in listed.split()


def load_into_daemon(image: Image | str) -> str:
    """Have the Docker daemon know the image too; returns its reference."""
    if isinstance(image, str):
        return image
    if not in_daemon(image.reference):
        docker(
            *("load", "--quiet", "--input", image.archive),
            expected="a whole image archive; delete the file to have it made again",
            slow=True,
        )
    return image.reference


def _context() -> dict[str, tuple[bytes, int]]:
    """What the Dockerfile needs, and no more: the repository may hold gigabytes."""
    package = Path(pytest_drainwatch.__file__).parent
    # In a wheel probe_image/ lies inside the package, in the repository beside it.
    roots = (package.parent, package)
    files: dict[str, tuple[bytes, int]] = {}
    for name in (_DOCKERFILE, *_COPIED):
        found = next((root / name for root in roots if (root / name).is_file()), None)
        if found is None:
            raise ClusterError(
                f"{name} is missing: expected it beside or in {package}. Install"
                " pytest-drainwatch again, or restore it from the repository."
            )
        files[name] = (found.read_bytes(), 0o644)
    for folder in _COPIED_FOLDERS:
        for file in sorted((package.parent / folder).rglob("*.py")):
            files[str(file.relative_to(package.parent))] = (file.read_bytes(), 0o644)
    return files
