"""What a reader of the pages may type: commands, options, and code, as the pages show them."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_drainwatch.cli import build_parser
from pytest_drainwatch.options import OPTIONS
from pytest_drainwatch.settings import resolve

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*(ROOT / "docs").glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
)
# In examples: where a reader's own scenarios are.
YOURS = "tests/drain"
# Written from the parser and from docstrings, with placeholders; they have tests of their own.
GENERATED = ("commands.md", "house.md")


class Line(NamedTuple):
    """A command, and the page that shows it; ``whole``: in a block, to be typed as it stands."""

    page: str
    text: str
    whole: bool


class Block(NamedTuple):
    """A fenced block of Python, the how-many-th of its page, and what was imported before it."""

    page: str
    number: int
    text: str
    imported: str


def lines(page: Path) -> Iterator[Line]:
    """The command lines of a page: those of indented or fenced blocks, and of code in a row."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ").replace("\\|", "|")
    blocks = [line for line in text.splitlines() if line.startswith("    ")]
    for fenced in re.findall(r"^```(?:console|sh|yaml)\n(.*?)^```", text, re.M | re.S):
        # What YAML folds is one line.
        blocks += re.sub(r"\n\s+(?=pytest|--)", " ", fenced.replace("run: >", "run:")).splitlines()
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    for line in blocks:
        yield from (Line(page.name, command, True) for command in commands(line))
    for code in inline:
        yield from (Line(page.name, command, False) for command in commands(code))


def commands(line: str) -> Iterator[str]:
    """The commands in a line of shell; words in a column beside them are none."""
    for column in re.split(r"\s{2,}|[;|]|&&", line.strip()):
        bare = re.sub(r"^(?:[$-]|run:|\s|[A-Z_]+=\S+ |\.venv/bin/)*", "", column)
        bare = re.sub(r"\s+(?:#|&?>).*$", "", bare).strip()
        if re.match(r"drainwatch [a-z][a-z-]*|pytest [^ ]", bare) and ": " not in bare:
            yield bare


def problem(config: pytest.Config, line: Line) -> str | None:
    """What the real parser has against a command; None: it can be typed.

    In a sentence a command may stand for itself, without what it is about.
    """
    program, *arguments = shlex.split(line.text)
    if program == "pytest":
        return _of_pytest(config, arguments)
    found = _of_drainwatch(arguments)
    named = found is not None and "arguments are required" in found
    return None if named and not line.whole else found


@cache
def _parser() -> argparse.ArgumentParser:
    return build_parser()


def _of_drainwatch(arguments: list[str]) -> str | None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            _parser().parse_args(arguments)
    except SystemExit as left:
        return said.getvalue().strip().splitlines()[-1] if left.code else None
    return None


def _of_pytest(config: pytest.Config, arguments: list[str]) -> str | None:
    try:
        told, unknown = config._parser.parse_known_and_unknown_args(arguments)
    except pytest.UsageError as error:
        return str(error)
    if unknown:
        return f"pytest has no {' '.join(unknown)}"
    try:
        resolve({"command line": lambda option: getattr(told, option.dest, None)})
    except ValueError as error:
        return str(error)
    for given in told.file_or_dir:
        path = given.partition("::")[0]
        if path == YOURS:
            continue
        if path.startswith(("scenarios", "tests", "docs")) and not (ROOT / path).exists():
            return f"{path} is not there"
    return None


def options(page: Path) -> set[str]:
    """The options of pytest's that a page names anywhere."""
    return set(re.findall(r"--dw-[a-z]+(?:-[a-z]+)*", page.read_text(encoding="utf-8")))


def known_options() -> set[str]:
    """Those that there are."""
    return {f"--dw-{option.name}" for option in OPTIONS}


def blocks(page: Path) -> list[Block]:
    """The Python of a page; what a block imports holds for those that follow."""
    text = page.read_text(encoding="utf-8")
    found, imported = [], ""
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S), 1):
        found.append(Block(page.name, number, code, imported))
        imported += "".join(re.findall(r"^(?:import|from) .*\n", code, re.MULTILINE))
    return found
