"""How long a preStop hook takes, as far as its manifest shows.

Only a sleep shows it. A request, or a command that somebody wrote, takes as long as it
takes: at least what it sleeps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from pytest_drainwatch.core.advisor.subject import Action, Hook
from pytest_drainwatch.core.interval import NS_PER_S

SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh", "ksh"})

# GNU's and BusyBox' suffixes; more than ten digits nobody sleeps.
_SLEEP = re.compile(r"(?:exec\s+)?(?:\S*/)?sleep\s+(\d{1,10}(?:\.\d{1,9})?)([smhd]?)")
_FOREVER = re.compile(r"(?:exec\s+)?(?:\S*/)?sleep\s+inf(?:inity)?")
# Thirty years: what "infinity" counts as here, as at least that.
FOREVER_NS = 10**9 * NS_PER_S
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SEPARATORS = re.compile(r"&&|;|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasts:
    """``ns`` None: not known at all. Not ``exact``: at least ``ns``."""

    ns: int | None
    exact: bool
    shown: str


def lasts(hook: Hook | None) -> Lasts:
    """What the manifest shows of the hook's length."""
    if hook is None:
        return Lasts(ns=0, exact=True, shown="no preStop hook")
    if hook.action is Action.SLEEP:
        seconds = hook.sleep_s or 0
        # A negative one is refused, which a check says; it gives no time back.
        return Lasts(ns=max(0, seconds) * NS_PER_S, exact=True, shown=f"sleep action, {seconds} s")
    if hook.action is not Action.EXEC:
        return Lasts(ns=None, exact=False, shown=str(hook.action))
    shown = cut(" ".join(hook.command))
    pieces = script_of(hook.command)
    slept = [sleep_of(piece) for piece in pieces]
    known = [ns for ns in slept if ns is not None]
    if not known:
        return Lasts(ns=None, exact=False, shown=f"exec {shown}")
    return Lasts(
        ns=sum(known),
        exact=len(known) == len(slept) and FOREVER_NS not in known,
        shown=f"exec {shown}",
    )


def cut(text: str) -> str:
    """A command on one line, not too long for a sentence."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def script_of(command: Sequence[str]) -> list[str]:
    """The commands that a hook or a container carries out one after the other."""
    script = shell_script(command)
    if script is None:
        return [" ".join(command)]
    return [piece for piece in (part.strip() for part in _SEPARATORS.split(script)) if piece]


def shell_script(command: Sequence[str]) -> str | None:
    """What a shell is told by ``-c``; None where no shell is started that way."""
    if not command or command[0].rsplit("/", 1)[-1] not in SHELLS:
        return None
    for index, word in enumerate(command[1:], start=1):
        if not word.startswith("-"):
            return None
        if word.endswith("c") and not word.startswith("--"):
            return command[index + 1] if index + 1 < len(command) else None
    return None


def sleep_of(piece: str) -> int | None:
    """Nanoseconds of a ``sleep 5``; None for any other command."""
    if _FOREVER.fullmatch(piece.strip()):
        return FOREVER_NS
    found = _SLEEP.fullmatch(piece.strip())
    if found is None:
        return None
    return int(Decimal(found[1]) * _UNITS[found[2]] * NS_PER_S)
