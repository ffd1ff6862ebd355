"""Container images as files, written without a registry or a daemon.

Everything is deterministic: the same content gives the same bytes, hence the same
digest, on every machine and at any time.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import platform
import re
import tarfile
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pytest_drainwatch.cluster import ClusterError

_BLOBS = "blobs/sha256"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_NAME = "io.containerd.image.name"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer: an uncompressed tar file and its digest."""

    path: Path
    digest: str


def architecture() -> str:
    """This machine's architecture in the words of image formats and of Debian."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def layer_digest(path: Path) -> str:
    """The sha256 of *path* in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def layer_bytes(files: Mapping[str, tuple[bytes, int]]) -> bytes:
    """A tar of *files*: path in the image → content and permission bits."""
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(folders | set(files)):
            entry = tarfile.TarInfo(name)
            if name in files:
                content, entry.mode = files[name]
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
    return buffer.getvalue()


def normalise(source: BinaryIO, target: Path, *, dropped: str) -> None:
    """Copy the tar *source* to *target*, sorted, without times, owners as they are.

    Args:
        dropped: what is left out: a pattern for the beginning of a path without `./`.
    """
    with (
        tarfile.open(fileobj=source, mode="r:") as old,
        tarfile.open(target, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        # A hard link must come after the file that it names.
        for entry in sorted(old.getmembers(), key=lambda member: (member.islnk(), member.name)):
            name = entry.name.removeprefix("./")
            # Device nodes are the runtime's business.
            if re.match(dropped, name) or entry.isdev():
                continue
            entry.mtime = 0
            entry.pax_headers = {}
            entry.uname = entry.gname = ""
            new.addfile(entry, old.extractfile(entry) if entry.isreg() else None)


def image_config(
    digests: Iterable[str],
    *,
    entrypoint: Sequence[str],
    environment: Sequence[str] = (),
    stop_signal: str | None = None,
) -> bytes:
    """The image's configuration; its digest is the image's identity.

    Args:
        stop_signal: what a container is sent to end it, such as `SIGQUIT`; `None` leaves it to
            the runtime, which sends SIGTERM.
    """
    config = {"Entrypoint": list(entrypoint), "Env": list(environment)}
    document: dict[str, Any] = {
        "architecture": architecture(),
        "os": "linux",
        "config": config | ({"StopSignal": stop_signal} if stop_signal else {}),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
    }
    return _json(document)


def write_archive(
    target: Path,
    reference: str,
    layers: Sequence[Layer],
    config: bytes,
    *,
    omitted: Collection[Layer] = (),
) -> None:
    """Write an image archive, as `ctr images import` and `docker load` take it.

    It is an OCI layout with Docker's manifest beside, as `docker save` writes it.

    Args:
        omitted: layers that whoever imports it has already; such an archive is for
            containerd only.
    """
    described = _described(config, "application/vnd.oci.image.config.v1+json")
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": described,
            "layers": [
                {
                    "mediaType": "application/vnd.oci.image.layer.v1.tar",
                    "digest": f"sha256:{layer.digest}",
                    "size": layer.path.stat().st_size,
                }
                for layer in layers
            ],
        }
    )
    blobs = {hashlib.sha256(content).hexdigest(): content for content in (config, manifest)}
    named = {**_described(manifest, _MANIFEST), "annotations": {_NAME: reference}}
    for_docker = {
        "Config": f"{_BLOBS}/{hashlib.sha256(config).hexdigest()}",
        "RepoTags": [reference],
        "Layers": [f"{_BLOBS}/{layer.digest}" for layer in layers],
    }
    files = {f"{_BLOBS}/{digest}": content for digest, content in blobs.items()} | {
        "index.json": _json({"schemaVersion": 2, "manifests": [named]}),
        "manifest.json": _json([for_docker]),
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
    }
    with tarfile.open(target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for layer in layers:
            if layer not in omitted:
                entry = tarfile.TarInfo(f"{_BLOBS}/{layer.digest}")
                entry.size = layer.path.stat().st_size
                with layer.path.open("rb") as content:
                    tar.addfile(entry, content)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def reference_of(archive: Path) -> str:
    """The reference of the one image in *archive*, which may be of `docker save`.

    Raises:
        ClusterError: it is no image archive, or has no name, or several.
    """
    try:
        with tarfile.open(archive) as tar:
            member = tar.extractfile("manifest.json")
            names = [name for image in json.load(member) for name in image["RepoTags"] or ()]  # type: ignore[arg-type]
    except (
        *(OSError, EOFError, tarfile.TarError, zlib.error, lzma.LZMAError),
        *(KeyError, TypeError, ValueError, AttributeError),
    ) as error:
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise ClusterError(
            f"{archive} is no image archive: {why}. Expected one as `docker save` writes it."
            f" Try: docker save -o {archive} NAME:TAG"
        ) from error
    if len(names) != 1:
        raise ClusterError(
            f"{archive} has {len(names)} image names: expected one. Try:"
            f" docker save -o {archive} NAME:TAG"
        )
    return str(names[0])


def _described(content: bytes, kind: str) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return {"mediaType": kind, "digest": digest, "size": len(content)}


def _json(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
