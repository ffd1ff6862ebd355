"""Manifests as text, read as the command reads them."""

from __future__ import annotations

from pathlib import Path

from pytest_drainwatch.manifests import Manifests, read_sources
from pytest_drainwatch.manifests.files import source_of

FOLDER = Path(__file__).parents[1] / "advise" / "manifests"
CORRECT = (FOLDER / "correct.yaml").read_text(encoding="utf-8")


def read_text(text: str | bytes) -> Manifests:
    raw = text if isinstance(text, bytes) else text.encode()
    return read_sources([source_of("x.yaml", raw)], ["x.yaml"])


def changed(*pairs: tuple[str, str]) -> str:
    """The correct manifest with these texts replaced; each must be there."""
    text = CORRECT
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text
