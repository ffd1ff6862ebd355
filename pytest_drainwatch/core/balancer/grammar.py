"""A line of text as a command to a balancer, and what the balancer answers to it.

docs/balancer.md describes the commands one by one. Words are separated by blanks, a word that
begins with ``#`` begins a comment, a blank line is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from pytest_drainwatch.core.balancer.machine import Backend, Balancer, Refused

# What HAProxy takes as a server's name: so a stream can be played to either.
NAME = re.compile(r"[A-Za-z0-9_.:-]+")
LONGEST_NAME = 253
# Times and timeouts: what 64 bits hold with a sign.
LATEST = 2**63 - 1
COMMENT = "#"
CARRIAGE_RETURN = "\r"
# Of a line with an error so many characters are shown.
SHOWN = 60


class Verb(StrEnum):
    """What can be asked; in a line in capitals or not."""

    POOL = "POOL"
    NOW = "NOW"
    PICK = "PICK"
    DONE = "DONE"
    DRAIN = "DRAIN"
    UNDRAIN = "UNDRAIN"
    REMOVABLE = "REMOVABLE"
    REMOVE = "REMOVE"
    STATUS = "STATUS"


class Answer(NamedTuple):
    """The balancer after a command, and the lines that it answers; most answer none."""

    balancer: Balancer
    lines: tuple[str, ...] = ()


class Form(NamedTuple):
    """How a verb is used, with the fewest and most words after it, and what it does."""

    usage: str
    least: int
    most: int | None
    does: Callable[[Balancer, Sequence[str]], Answer]


def carry_out(balancer: Balancer, line: str) -> Answer:
    """What one line does. Raises :class:`Refused`, and then nothing happened."""
    if CARRIAGE_RETURN in line.rstrip():
        # Else a file with another system's line ends would be one long command.
        raise Refused("a carriage return within it, expected lines that end with LF or CR LF")
    words = words_of(line)
    if not words:
        return Answer(balancer)
    verb, *arguments = words
    form = FORMS.get(verb.upper())
    if form is None:
        raise Refused(f"no command {shown(verb)}, expected one of: {' '.join(Verb)}")
    if len(arguments) < form.least or (form.most is not None and len(arguments) > form.most):
        raise Refused(f"words after {verb.upper()}: {len(arguments)}, expected: {form.usage}")
    return form.does(balancer, arguments)


def words_of(line: str) -> list[str]:
    """The words of a line up to its comment; none: there is nothing to do."""
    words = line.split()
    first = next((at for at, word in enumerate(words) if word.startswith(COMMENT)), None)
    return words[:first]


def shown(text: str) -> str:
    """Somebody's text as an error shows it: on one line, and not for ever."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")


def _pool(balancer: Balancer, names: Sequence[str]) -> Answer:
    return Answer(balancer.pool([_name(each) for each in names]))


def _now(balancer: Balancer, arguments: Sequence[str]) -> Answer:
    return Answer(balancer.at(_number("time", arguments[0])))


def _pick(balancer: Balancer, arguments: Sequence[str]) -> Answer:
    after, chosen = balancer.pick()
    return Answer(after, (chosen,))


def _done(balancer: Balancer, arguments: Sequence[str]) -> Answer:
    return Answer(balancer.done(_name(arguments[0])))


def _drain(balancer: Balancer, arguments: Sequence[str]) -> Answer:
    name, *rest = arguments
    timeout = _number("timeout", rest[0]) if rest else None
    return Answer(balancer.drain(_name(name), timeout))


def _undrain(balancer: Balancer, arguments: Sequence[str]) -> Answer:
    return Answer(balancer.undrain(_name(arguments[0])))


def _removable(balancer: Balancer, arguments: Sequence[str]) -> Answer:
    marked = [f"{each.name}{'!' if each.forced else ''}" for each in balancer.removable()]
    return Answer(balancer, (" ".join(marked),) if marked else ())


def _remove(balancer: Balancer, arguments: Sequence[str]) -> Answer:
    after, killed = balancer.remove(_name(arguments[0]))
    return Answer(after, (f"killed {killed}",))


def _status(balancer: Balancer, arguments: Sequence[str]) -> Answer:
    return Answer(balancer, tuple(_row(each) for each in balancer.backends))


def _row(backend: Backend) -> str:
    words = [backend.name, str(backend.state), str(backend.in_flight)]
    if backend.since is not None:
        words.append(f"since {backend.since}")
    if backend.deadline is not None:
        words.append(f"deadline {backend.deadline}")
    return " ".join(words)


def _name(word: str) -> str:
    if len(word) > LONGEST_NAME or not NAME.fullmatch(word):
        raise Refused(
            f"{shown(word)} is no name, expected at most {LONGEST_NAME} of: letters a-z,"
            " digits, and . _ : -"
        )
    return word


def _number(what: str, word: str) -> int:
    # Digits of other scripts are digits to int(), and a number can be too long for it.
    if word.isascii() and word.isdigit() and len(word.lstrip("0")) <= len(str(LATEST)):
        number = int(word.lstrip("0") or "0")
        if number <= LATEST:
            return number
    raise Refused(f"the {what} is {shown(word)}, expected a whole number from 0 to {LATEST}")


FORMS: dict[str, Form] = {
    Verb.POOL: Form("POOL NAME…", 1, None, _pool),
    Verb.NOW: Form("NOW TIME", 1, 1, _now),
    Verb.PICK: Form("PICK", 0, 0, _pick),
    Verb.DONE: Form("DONE NAME", 1, 1, _done),
    Verb.DRAIN: Form("DRAIN NAME [TIMEOUT]", 1, 2, _drain),
    Verb.UNDRAIN: Form("UNDRAIN NAME", 1, 1, _undrain),
    Verb.REMOVABLE: Form("REMOVABLE", 0, 0, _removable),
    Verb.REMOVE: Form("REMOVE NAME", 1, 1, _remove),
    Verb.STATUS: Form("STATUS", 0, 0, _status),
}
