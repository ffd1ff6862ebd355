"""Container images as files, written without a registry or a daemon.

Everything is deterministic: the same content gives the same bytes, hence the same
digest, on every machine and at any time.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_BLOCK = 1 << 20
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
        for entry in sorted(old.getmembers(), key=lambda member: member.name):
            name = entry.name.removeprefix("./")
            # Device nodes are the runtime's business.
            if re.match(dropped, name) or entry.isdev():
                continue
            entry.mtime = 0
            entry.pax_headers = {}
            entry.uname = entry.gname = ""
            new.addfile(entry, old.extractfile(entry) if entry.isreg() else None)


def image_config(
    digests: Iterable[str], *, entrypoint: Sequence[str], environment: Sequence[str] = ()
) -> bytes:
    """The image's configuration; its digest is the image's identity."""
    document: dict[str, Any] = {
        "architecture": architecture(),
        "os": "linux",
        "config": {"Entrypoint": list(entrypoint), "Env": list(environment)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def write_archive(target: Path, reference: str, layers: Sequence[Layer], config: bytes) -> None:
    """Write a docker-archive, as `ctr images import` and `docker load` take it."""
    name = hashlib.sha256(config).hexdigest()
    manifest = [
        {
            "Config": f"{name}.json",
            "RepoTags": [reference],
            "Layers": [f"{layer.digest}.tar" for layer in layers],
        }
    ]
    with tarfile.open(target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for layer in layers:
            entry = tarfile.TarInfo(f"{layer.digest}.tar")
            entry.size = layer.path.stat().st_size
            with layer.path.open("rb") as content:
                tar.addfile(entry, content)
        for file, data in (
            (f"{name}.json", config),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            entry = tarfile.TarInfo(file)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
