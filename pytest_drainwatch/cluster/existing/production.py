"""Whether a place looks like production: pods are going to be terminated there (pure)."""

from __future__ import annotations

import re

from pytest_drainwatch.cluster.existing.unmet import unmet

# A word of its own: not the "prod" of "product", nor the "live" of "liveness" or "alive".
_WORD = re.compile(r"(?<![a-z])(?:prod|production|live)(?![a-z])", re.IGNORECASE)


def looks_like_production(names: dict[str, str]) -> str | None:
    """Which of the named texts has such a word in it, as ``what 'text'``; None if none has."""
    for what, text in names.items():
        if _WORD.search(text):
            return f"{what} {text!r}"
    return None


def refuse_production(names: dict[str, str], context: str, allowed: str | None) -> None:
    """Raise ClusterError if one of ``names`` looks like production, unless ``context`` is allowed.

    ``allowed`` is the one context that may be used although it does.
    """
    found = looks_like_production(names)
    if found is None or allowed == context:
        return
    other = f"; --dw-allow-context={allowed} names another one" if allowed else ""
    *first, last = names
    raise unmet(
        "context-allowed",
        "no trial runs where real users may be: it terminates pods",
        f"{found} has the word prod, production or live in it{other}",
        expected=f"a {', '.join(first)}{' and ' if first else ''}{last} without such a word, or "
        "your word for it",
        look_at=f"kubectl config get-contexts; if it is meant: --dw-allow-context {context}",
    )
