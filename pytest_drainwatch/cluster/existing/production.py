"""Whether a context looks like production: pods are going to be terminated there (pure)."""

from __future__ import annotations

import re

# A word of its own: not the "prod" of "product", nor the "live" of "liveness" or "alive".
_WORD = re.compile(r"(?<![a-z])(?:prod|production|live)(?![a-z])", re.IGNORECASE)


def looks_like_production(names: dict[str, str]) -> str | None:
    """Which of the named texts has such a word in it, as ``what 'text'``; None if none has."""
    for what, text in names.items():
        if _WORD.search(text):
            return f"{what} {text!r}"
    return None
