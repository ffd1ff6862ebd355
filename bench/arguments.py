"""Kinds of command line arguments that benchmarks have in common."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """A count of at least one: of no rounds there is no median."""
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 on")
    return count
