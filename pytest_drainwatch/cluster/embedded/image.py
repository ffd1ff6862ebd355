"""The images a cluster needs, the pod's pause program and the probe, and others of packages."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest_drainwatch
from pytest_drainwatch.cluster import ClusterError, Log
from pytest_drainwatch.cluster.embedded import runtime
from pytest_drainwatch.cluster.embedded.archive import (
    Layer,
    image_config,
    layer_bytes,
    write_archive,
)
from pytest_drainwatch.cluster.embedded.binary import find_pause
from pytest_drainwatch.cluster.embedded.directories import cache_dir, writing_to_cache
from pytest_drainwatch.cluster.embedded.rootfs import (
    Recipe,
    cached_root_filesystem,
    root_filesystem,
)

_REPOSITORY = "docker.io/drainwatch/probe"
_BASE_REPOSITORY = "docker.io/drainwatch/base"
_ARCHIVES_KEPT = 4
_SCRATCH = ".build-"
_ABANDONED_S = 3600.0
_ENVIRONMENT = ("PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8")
_PROBE = ["/usr/bin/python3", "-u", "/probe.py"]
_AGENT_ROOT = "opt/drainwatch"
_AGENT_PARTS = ("__init__.py", "core", "flows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image as a file, under the reference that pods name it by."""

    reference: str
    archive: Path


def pause_image(log: Log) -> Image:
    """The image that holds a pod's namespaces open."""
    program = find_pause(log)
    layer = layer_bytes({"pause": (program.read_bytes(), 0o755)})
    return _image(runtime.PAUSE_IMAGE, [layer], entrypoint=["/pause"], environment=[])


def base_image(base: Layer) -> Image:
    """The probe's root file system as an image of its own, to be unpacked ahead."""
    return _image(_BASE_REPOSITORY, [base], entrypoint=[], environment=[])


def probe_image(log: Log, *, thin: bool = False) -> Image:
    """The probe's image, which carries the flow agent as well.

    Args:
        log: takes progress.
        thin: leave out what `base_image` has; the reference is the same.

    Raises:
        ClusterError: the probe's sources or the root file system can't be had.
    """
    return _probe_image(root_filesystem(log), thin=thin)


def probe_image_if_cached(*, thin: bool) -> tuple[Image, ...]:
    """The probe's image if that costs no time to speak of, else nothing."""
    base = cached_root_filesystem()
    try:
        return () if base is None else (_probe_image(base, thin=thin),)
    except ClusterError:
        return ()  # who needs it will hear why


def package_image(name: str, recipe: Recipe, log: Log, *, stop_signal: str | None = None) -> Image:
    """An image of the distribution's packages and nothing else; a pod says what runs in it.

    Args:
        name: a repository without a tag; the tag is the content's.
        recipe: which packages.
        log: takes progress.
        stop_signal: see `image_config`.

    Raises:
        ClusterError: the packages can't be had.
    """
    with writing_to_cache():
        base = root_filesystem(log, recipe)
        return _image(
            name, [base], entrypoint=[], environment=_ENVIRONMENT, stop_signal=stop_signal
        )


def _probe_image(base: Layer, *, thin: bool) -> Image:
    content = layer_bytes(_probe_files(_probe_source(), Path(pytest_drainwatch.__file__).parent))
    return _image(
        _REPOSITORY,
        [base, content],
        entrypoint=_PROBE,
        environment=[
            *("PATH=/usr/bin:/bin", f"PYTHONPATH=/{_AGENT_ROOT}", "LANG=C.UTF-8"),
            # Says how to start the probe where something else is to be PID 1.
            f"DRAINWATCH_PROBE={' '.join(_PROBE)}",
        ],
        omitted=[base] if thin else [],
    )


def _image(
    name: str,
    parts: Sequence[Layer | bytes],
    *,
    entrypoint: list[str],
    environment: Sequence[str],
    omitted: Sequence[Layer] = (),
    stop_signal: str | None = None,
) -> Image:
    folder = cache_dir() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    # Workers of one run build side by side: in folders of their own.
    with tempfile.TemporaryDirectory(dir=folder, prefix=_SCRATCH) as scratch:
        layers = [_as_layer(part, Path(scratch)) for part in parts]
        digests = [layer.digest for layer in layers]
        config = image_config(
            digests, entrypoint=entrypoint, environment=environment, stop_signal=stop_signal
        )
        identity = hashlib.sha256(config).hexdigest()[:12]
        # A name without a tag gets its content's: another probe is another image.
        reference = name if ":" in name else f"{name}:{identity}"
        kind = ("thin-" if omitted else "") + name.split(":")[0].rsplit("/", 1)[1]
        archive = folder / f"{kind}-{identity}.tar"
        if not archive.exists():
            partial = Path(scratch) / "image"
            write_archive(partial, reference, layers, config, omitted=omitted)
            partial.replace(archive)
            _prune(archive)
    return Image(reference=reference, archive=archive)


def _as_layer(part: Layer | bytes, scratch: Path) -> Layer:
    if isinstance(part, Layer):
        return part
    digest = hashlib.sha256(part).hexdigest()
    path = scratch / digest
    path.write_bytes(part)
    return Layer(path=path, digest=digest)


def _prune(newest: Path) -> None:
    """Every edit of the probe leaves an archive: keep the last few of this name."""
    family = newest.parent.glob(f"{newest.stem.rpartition('-')[0]}-*.tar")
    for old in sorted(family, key=lambda path: path.stat().st_mtime)[:-_ARCHIVES_KEPT]:
        old.unlink(missing_ok=True)
    for abandoned in newest.parent.glob(f"{_SCRATCH}*"):
        if time.time() - abandoned.stat().st_mtime > _ABANDONED_S:
            shutil.rmtree(abandoned, ignore_errors=True)


def _probe_source() -> Path:
    package = Path(pytest_drainwatch.__file__).parent
    # In a wheel the folder lies inside the package, in the repository beside it.
    candidates = [root / "probe_image" / "probe.py" for root in (package, package.parent)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise ClusterError(
        f"the probe's source is missing: expected {' or '.join(map(str, candidates))}."
        " Install pytest-drainwatch again, or restore probe_image/ from the repository"
    )


def _probe_files(probe: Path, package: Path) -> Mapping[str, tuple[bytes, int]]:
    files = {"probe.py": (probe.read_bytes(), 0o755)}
    for part in _AGENT_PARTS:
        top = package / part
        for file in [top] if top.is_file() else sorted(top.rglob("*.py")):
            name = f"{_AGENT_ROOT}/{package.name}/{file.relative_to(package)}"
            files[name] = (file.read_bytes(), 0o644)
    return files
