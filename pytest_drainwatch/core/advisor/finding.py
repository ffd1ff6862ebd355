"""What the advisor has to say of one place in a manifest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is. Only BROKEN is a verdict; a NOTE says what cannot be known from here."""

    BROKEN = "broken"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One statement, with everything that a reader needs to judge it himself."""

    level: Level
    # The check that made it: a word that scripts may rely on.
    code: str
    # "file:line Kind/name container"
    where: str
    # What was found, with its numbers; what would be right; why that matters.
    says: str
    expected: str
    because: str
    # What to write instead; empty where nothing is to be changed.
    fix: str = ""
    # What would make this advice wrong; empty where nothing would.
    breaks: str = ""
    # Where the rule is from: a page, an issue, a line of Kubernetes.
    source: str = ""
