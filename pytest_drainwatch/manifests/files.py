"""Manifests as text: files and standard input, of a size that somebody wrote."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch.manifests.errors import ManifestError

STDIN = "-"
# What `helm template` makes of a large chart is about 1 MB.
LARGEST_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file's text; its lines are counted from 1."""

    file: str
    text: str
    lines: tuple[str, ...]

    def line(self, number: int) -> str:
        """That line; empty where there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def error(self, number: int, text: str) -> ManifestError:
        """The error about that line."""
        return ManifestError(self.file, number, text, self.line(number))


def sources(paths: Sequence[str]) -> Iterator[Source]:
    """The text of each. Raises :class:`ManifestError`."""
    if sum(path == STDIN for path in paths) > 1:
        raise ManifestError(STDIN, None, "standard input was given twice, expected it once")
    for path in paths:
        yield source_of(path, _bytes_of(path))


def source_of(file: str, raw: bytes) -> Source:
    """The text of bytes. Raises :class:`ManifestError`."""
    if len(raw) > LARGEST_BYTES:
        raise ManifestError(
            file, None, f"over {LARGEST_BYTES >> 20} MiB, expected a manifest; give fewer objects"
        )
    if b"\0" in raw:
        raise ManifestError(file, None, "holds bytes 0, so it is no text; expected YAML or JSON")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise ManifestError(
            file,
            number,
            f"byte {raw[error.start]:#04x} is no UTF-8; expected YAML or JSON",
            raw.split(b"\n")[number - 1].decode("utf-8", errors="replace"),
        ) from error
    if not text.strip():
        raise ManifestError(file, None, "is empty, expected YAML or JSON of Kubernetes objects")
    text = text.replace("\r\n", "\n")
    return Source(file=file, text=text, lines=tuple(text.split("\n")))


def _bytes_of(path: str) -> bytes:
    if not path:
        raise ManifestError('""', None, "is no file name, expected a file, or - for standard input")
    try:
        if path != STDIN:
            with Path(path).open("rb") as opened:
                return opened.read(LARGEST_BYTES + 1)
        if sys.stdin is None:
            raise ManifestError(STDIN, None, "standard input is closed, expected manifests there")
        return sys.stdin.buffer.read(LARGEST_BYTES + 1)
    except IsADirectoryError as error:
        raise ManifestError(
            path, None, f"is a folder, expected files; try: drainwatch advise {path}/*.yaml"
        ) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ManifestError(path, None, f"{why}, expected a manifest") from error
