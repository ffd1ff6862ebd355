"""Writes docs/fidelity.md from the runs in results/sample/: ``make docs``."""

from __future__ import annotations

from pathlib import Path

from pytest_drainwatch.core.fidelity.document import Fidelity
from pytest_drainwatch.fidelity import compared
from pytest_drainwatch.render import fidelity_markdown

TARGET = Path(__file__).with_name("fidelity.md")
WORDS = Path(__file__).with_name("fidelity_words.md")
SAMPLE = Path(__file__).resolve().parents[1] / "results" / "sample"
RUNS = (SAMPLE / "kubernetes-1.37", SAMPLE / "kubernetes-1.34", SAMPLE / "load-balancer")


def page(found: Fidelity | None = None) -> str:
    """The whole page."""
    verdict, _, tables = fidelity_markdown.show(found or compared(RUNS)).partition("## ")
    words = WORDS.read_text(encoding="utf-8")
    words = words.replace("<!-- verdict -->\n", verdict.strip() + "\n")
    return words.replace("<!-- tables -->\n", f"## {tables}")


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
