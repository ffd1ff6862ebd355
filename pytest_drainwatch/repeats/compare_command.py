"""``drainwatch compare``: a run against a baseline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_drainwatch import option_values
from pytest_drainwatch.output import BROKEN, CANNOT, DONE, fail, write, write_json


def register(subparsers: Any) -> None:
    """Add the command to an argparse subparsers object; it sets `run`."""
    compare = subparsers.add_parser(
        "compare", help="two runs -> what became worse, better, or cannot be told"
    )
    compare.add_argument("baseline", type=Path, metavar="A", help="a run: the baseline")
    compare.add_argument("compared", type=Path, metavar="B", help="the run held against it")
    printed = compare.add_mutually_exclusive_group()
    printed.add_argument("--json", action="store_true", help="for machines: all values, p, bounds")
    printed.add_argument("--markdown", action="store_true", help="for a job summary")
    compare.add_argument(
        "--fail-on",
        type=_verdicts,
        default=frozenset({"regression"}),
        metavar="VERDICTS",
        help="exit with 1 on these: regression (default), insufficient-evidence, or both with a "
        "comma between them (insufficient-evidence implies regression); never: none",
    )
    compare.add_argument(
        "--across",
        action="append",
        default=[],
        metavar="FIELD",
        help="compare although this condition differs, such as environment.kubernetes_version; "
        "may be repeated",
    )
    compare.set_defaults(run=_compare)


def _verdicts(text: str) -> frozenset[str]:
    try:
        return option_values.verdicts(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}, or never") from None


def _compare(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch.render import compare, compare_markdown
    from pytest_drainwatch.repeats.comparison import ComparisonError, against, dumps, failing

    try:
        found = against(arguments.baseline, arguments.compared, arguments.across)
    except ComparisonError as error:
        return fail(CANNOT, str(error))
    if arguments.json:
        write_json(dumps(found))
    else:
        write((compare_markdown if arguments.markdown else compare).show(found))
    return BROKEN if failing(found, arguments.fail_on) else DONE
