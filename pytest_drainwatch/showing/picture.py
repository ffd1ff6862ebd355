"""What a trial does, in a few lines that fit into a terminal (pure)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.output import PLAIN
from pytest_drainwatch.render.text import plain
from pytest_drainwatch.showing.happening import Happened
from pytest_drainwatch.showing.tty import Style

if TYPE_CHECKING:
    from pytest_drainwatch.flows.process import AgentStatus, ProtoStatus

EVENTS_SHOWN = 8
BAR_CELLS = 20
FULL, EMPTY, EIGHTHS = "█", "─", " ▏▎▍▌▋▊▉"

# Colours; each says what a word beside it says too.
NAME, BAR, BAD, DIM, END = "\x1b[1m", "\x1b[36m", "\x1b[31m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A trial as it stands; ``expected_ns`` is how long the phase will last, about.

    ``events`` are in the order in which they were seen.
    """

    trial: str
    phase: str
    elapsed_ns: int
    expected_ns: int | None = None
    note: str = ""
    status: AgentStatus | None = None
    since_trigger_ns: int | None = None
    events: Sequence[Happened] = ()


Part = tuple[str, str]  # a text and its colour


def lines(scene: Scene, width: int, rows: int, style: Style) -> list[str]:
    """At most ``rows`` lines, each narrower than ``width``: the most important ones."""
    found = [_best(_heads(scene, style), width)]
    counted = _best(_counts(scene), width)
    if counted:
        found.append(counted)
    shown = min(EVENTS_SHOWN, max(0, rows - len(found)))
    events = sorted(scene.events, key=lambda each: each.at_ns)[max(0, len(scene.events) - shown) :]
    found += [[(f"{when(each):>12}  ", DIM), (each.text, "")] for each in events]
    return [_painted(_cut(parts, width - 1, style), style) for parts in found[:rows]]


def in_a_line(scene: Scene) -> str:
    """The same in one line for somebody who has many to show; what matters most comes first."""
    counted = "".join(text for text, _ in next(_counts(scene), []))
    last = scene.events[-1] if scene.events else None
    event = f"{when(last)} {last.text}" if last else ""
    head = f"{scene.trial} {scene.phase}, {_elapsed(scene)}".strip()
    return " · ".join(each for each in (head, counted.strip(), event) if each)


def when(event: Happened) -> str:
    """``+5.03 s``; ``by +5.1 s`` where it was seen only later."""
    seconds = event.at_ns / NS_PER_S
    return f"by +{seconds:.1f} s" if event.by else f"+{seconds:.2f} s"


def fitted(text: str, width: int, style: Style) -> str:
    """One line narrower than ``width``, with nothing in it that moves a cursor."""
    return _painted(_cut([(text, "")], width - 1, style), style)


def cells(text: str) -> int:
    """How many columns a text takes on a terminal."""
    return sum(map(_cells, text))


def _cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _heads(scene: Scene, style: Style) -> Iterator[list[Part]]:
    """The first line, wordy to short."""
    name: Part = (f"{scene.trial}  " if scene.trial else "", NAME)
    phase, elapsed = f"{scene.phase}  ", _elapsed(scene)
    since = scene.since_trigger_ns
    after = f", {since / NS_PER_S:.1f} s after the trigger" if since is not None else ""
    bar: list[Part] = []
    if scene.expected_ns:
        bar = [(_bar(scene.elapsed_ns / scene.expected_ns, style) + "  ", BAR)]
    mark: Part = ("drainwatch: ", DIM)
    yield [mark, name, (phase, ""), *bar, (elapsed + after, "")]
    yield [mark, name, (phase, ""), *bar, (elapsed, "")]
    yield [name, (phase, ""), *bar, (elapsed, "")]
    yield [name, (phase + elapsed, "")]
    short = elapsed.replace(" of about ", "/")
    yield [name, (f"{scene.phase} {short}", "")]
    yield [(phase + short, "")]


def _elapsed(scene: Scene) -> str:
    """``4.2 of about 9 s``, and what it took where it takes longer."""
    elapsed = f"{scene.elapsed_ns / NS_PER_S:.1f}"
    if not scene.expected_ns:
        return f"{elapsed} s"
    return f"{elapsed} of about {scene.expected_ns / NS_PER_S:.0f} s"


def _bar(share: float, style: Style) -> str:
    filled = min(1.0, max(0.0, share)) * BAR_CELLS
    whole = int(filled)
    if not style.letters:
        return f"[{'#' * whole:-<{BAR_CELLS}}]"
    part = EIGHTHS[int((filled - whole) * 8)] if whole < BAR_CELLS else ""
    return f"{FULL * whole}{part.strip()}".ljust(BAR_CELLS, EMPTY)


def _counts(scene: Scene) -> Iterator[list[Part]]:
    """The second line, wordy to short; empty where there is nothing to count."""
    status = scene.status
    if scene.note or status is None:
        yield [(f"  {scene.note}", "")] if scene.note else []
        return
    for wordy in (True, False):
        groups = [*_flows(status, wordy=wordy), *_tried(status, wordy=wordy)]
        parts: list[Part] = []
        for group in groups:
            parts += [(" · " if parts else "  ", ""), *group]
        yield parts


def _flows(status: AgentStatus, *, wordy: bool) -> Iterator[list[Part]]:
    for name, proto in (("TCP", status.tcp), ("UDP", status.udp)):
        if not proto.wanted:
            continue
        alive = f"{name} {proto.alive:,} alive" if wordy else f"{name} {proto.alive:,}"
        yield [(alive, ""), *_gone(proto, wordy=wordy)]


def _gone(proto: ProtoStatus, *, wordy: bool) -> Iterator[Part]:
    for number, word, sign in (
        (proto.moved, "moved", "~"),
        (proto.ended, "ended", "-"),
        (proto.quiet + proto.refused, "unanswered", "?"),
    ):
        if number or (word == "ended" and wordy):
            yield (f", {number:,} {word}" if wordy else f" {sign}{number:,}"), BAD if number else ""


def _tried(status: AgentStatus, *, wordy: bool) -> Iterator[list[Part]]:
    """New connections of all probers together, and HTTP requests."""
    probers = status.probers.values()
    asked = [("new connections" if wordy else "new", [(p.attempts, p.failed) for p in probers])]
    if status.http is not None:
        asked.append(
            ("requests" if wordy else "http", [(status.http.requests, status.http.failed)])
        )
    for name, counts in asked:
        if not counts:
            continue
        tried, failed = (sum(column) for column in zip(*counts, strict=True))
        text = f", {failed:,} failed" if wordy else f" -{failed:,}"
        yield [(f"{name} {tried:,}", ""), (text if failed or wordy else "", BAD if failed else "")]


def _best(candidates: Iterator[list[Part]], width: int) -> list[Part]:
    """The first that fits; the last if none does."""
    found: list[Part] = []
    for found in candidates:
        if sum(cells(text) for text, _ in found) < width:
            break
    return found


def _cut(parts: Sequence[Part], width: int, style: Style) -> list[Part]:
    """Their texts in what the terminal has letters for, ending in a mark where cut."""
    shown = [(_said(text, style), color) for text, color in parts]
    if sum(cells(text) for text, _ in shown) <= width:
        return shown
    end = "…" if style.letters else "..."
    left, kept = width - cells(end), list[Part]()
    for text, color in shown:
        whole = ""
        for letter in text:
            left -= _cells(letter)
            if left < 0:
                return [*kept, (whole, color), (end, "")]
            whole += letter
        kept.append((whole, color))
    return kept


def _said(text: str, style: Style) -> str:
    text = plain(text)
    if style.letters:
        return text
    return "".join(c if c.isascii() else PLAIN.get(c, "?") for c in text)


def _painted(parts: Sequence[Part], style: Style) -> str:
    if not style.color:
        return "".join(text for text, _ in parts)
    return "".join(f"{color}{text}{END}" if color and text else text for text, color in parts)
