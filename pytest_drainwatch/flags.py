"""The options as flags of a command that measures one trial."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from pytest_drainwatch.options import OPTIONS, Option

OF_ONE_TRIAL = tuple(option for option in OPTIONS if not option.pytest_only)


def add_flags(
    parser: argparse.ArgumentParser, options: Iterable[Option], *, before: str = ""
) -> None:
    """A flag for each option, its help with ``before`` in front.

    The ancestor's flags have no prefix; both spellings mean the same.
    """
    for option in options:
        parser.add_argument(
            f"--{option.name}",
            f"--dw-{option.name}",
            dest=option.dest,
            metavar=option.metavar,
            help=before + option.help.replace("scenario's own, or ", ""),
        )


def told_by(arguments: argparse.Namespace) -> Callable[[Option], object]:
    """The source of settings ``command line``."""
    return lambda option: getattr(arguments, option.dest, None)
