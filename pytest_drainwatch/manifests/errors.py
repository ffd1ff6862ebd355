"""A manifest that cannot be read: which line it is, and what to do about it."""

from __future__ import annotations

HELM = (
    "this is a Helm template, expected what it renders to; "
    "try: helm template CHART | drainwatch advise -"
)
KUSTOMIZE = (
    "expected the whole object that Kustomize makes of it; "
    "try: kubectl kustomize FOLDER | drainwatch advise -"
)
_LONGEST = 120


class ManifestError(ValueError):
    """Says file and line, shows the line, and what was expected there."""

    def __init__(self, file: str, line: int | None, text: str, shown: str = "") -> None:
        place = file if line is None else f"{file}:{line}"
        shown = "".join(each if each.isprintable() else " " for each in shown).rstrip()
        shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
        super().__init__(f"{place}: {text}" + (f"\n    {shown}" if shown else ""))
