"""Durations and tables as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds

NOT_MEASURED = "not measured"
GAP = "  "  # before each column
BREAKS = re.compile(r"(?<=[,;]) | (?=\()")


def duration(at: Bounds | None) -> str:
    """A duration with its uncertainty: ``25.04 s`` where the bounds are closer to each other
    than the last digit shown, else both: ``1.92–2.42 s``.
    """
    if at is None:
        return NOT_MEASURED
    lo, hi = at
    seconds = max(abs(lo), abs(hi)) >= NS_PER_S
    unit, scale, digits = ("s", NS_PER_S, 2) if seconds else ("ms", NS_PER_MS, 0)
    last_digit = scale // 10**digits
    if hi - lo < last_digit:
        return f"{round(hi / last_digit) * last_digit / scale:.{digits}f} {unit}"
    # Outward: what is shown holds what is meant.
    low = f"{lo // last_digit * last_digit / scale:.{digits}f}"
    high = f"{-(-hi // last_digit) * last_digit / scale:.{digits}f}"
    return f"{low} to {high} {unit}" if lo < 0 else f"{low}–{high} {unit}"


def plain(said: object) -> str:
    """A line of anybody's text for a terminal: reports may be files from elsewhere, and control
    characters move its cursor, or worse.
    """
    return "".join(letter if letter.isprintable() else "?" for letter in str(said))


def table(
    rows: Sequence[Sequence[str]], right: Sequence[int] = (), width: int | None = None
) -> list[str]:
    """Rows in aligned columns, indented by two; the last column is cut at ``width``."""
    if not rows:
        return []
    rows = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(widths[i]) if i in right else cell.ljust(widths[i])
            for i, cell in enumerate(row)
        ]
        line = (GAP + GAP.join(cells)).rstrip()
        lines.append(line if width is None or len(line) <= width else line[: width - 1] + "…")
    return lines


def fitted(rows: Sequence[Sequence[str]], width: int) -> list[Sequence[str]]:
    """The rows with their lists broken over lines, so that the columns before the last one
    fit into ``width``; as narrow as can be if they do not.
    """
    longest = max((len(cell) for row in rows for cell in row[:-1]), default=0)
    found = list(rows)
    for room in range(longest, 0, -1):
        found = [line for row in rows for line in _broken(row, room)]
        widths = [max(map(len, column)) for column in zip(*found, strict=True)]
        if sum(len(GAP) + each for each in widths[:-1]) <= width:
            break
    return found


def _broken(row: Sequence[str], room: int) -> Iterator[Sequence[str]]:
    """One row as several, with cells of at most ``room`` where they can be broken."""
    return zip_longest(*(_lines(cell, room) for cell in row[:-1]), row[-1:], fillvalue="")


def _lines(cell: str, room: int) -> list[str]:
    lines: list[str] = []
    for part in BREAKS.split(cell):
        if lines and len(lines[-1]) + 1 + len(part) <= room:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines
