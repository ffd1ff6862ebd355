"""``drainwatch aggregate`` and ``drainwatch schema``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pytest_drainwatch.output import CANNOT, DONE, fail, write, write_json
from pytest_drainwatch.report import SCHEMAS


def register(subparsers: Any) -> None:
    """Add the commands to an argparse subparsers object; each sets `run`."""
    aggregate = subparsers.add_parser(
        "aggregate", help="repeats -> their figures; reads drainwatch v0.1 results too"
    )
    aggregate.add_argument("folder", type=Path, metavar="DIR", help="a run, or a part of one")
    printed = aggregate.add_mutually_exclusive_group()
    printed.add_argument("--json", action="store_true", help="for machines, with all bounds")
    printed.add_argument(
        "--markdown",
        action="store_true",
        help="for a job summary: also what is missing or cannot be pooled",
    )
    aggregate.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the whole as summary.json there"
    )
    aggregate.add_argument(
        "--csv",
        type=Path,
        metavar="OUT",
        help="write OUT/trials.csv and OUT/flows.csv: a row a trial, a row a flow; nothing is "
        "pooled, each row carries its conditions",
    )
    aggregate.set_defaults(run=_aggregate)

    schema = subparsers.add_parser("schema", help="print a JSON Schema")
    schema.add_argument("which", choices=SCHEMAS)
    schema.set_defaults(run=_schema)


def _aggregate(arguments: argparse.Namespace) -> int:
    if arguments.csv is not None:
        code = _tables(arguments.folder, arguments.csv)
        if code != DONE:
            return code
    if arguments.output is not None or arguments.markdown:
        code = _summary(arguments)
        if code != DONE:
            return code
    if arguments.json or not (arguments.markdown or arguments.csv or arguments.output):
        return _figures(arguments.folder, as_json=arguments.json)
    return DONE


def _figures(folder: Path, *, as_json: bool) -> int:
    from pytest_drainwatch.core.repeats.aggregate import PoolError
    from pytest_drainwatch.render.aggregate import show
    from pytest_drainwatch.repeats.aggregation import AggregationError, aggregate, dumps

    try:
        found = aggregate(folder)
    except (AggregationError, PoolError) as error:
        return fail(CANNOT, str(error))
    if as_json:
        write_json(dumps(found))
    else:
        write(show(found))
    return DONE


def _tables(folder: Path, out: Path) -> int:
    from pytest_drainwatch.repeats.reading import AggregationError
    from pytest_drainwatch.repeats.tables import TableError, write_tables

    try:
        write_tables(folder, out)
    except (AggregationError, TableError, OSError) as error:
        return fail(CANNOT, str(error))
    return DONE


def _summary(arguments: argparse.Namespace) -> int:
    """All that is there; what cannot be read, or pooled, is an error still."""
    from pytest_drainwatch.recorder import write_atomic
    from pytest_drainwatch.render import markdown
    from pytest_drainwatch.repeats.summary import SummaryError, dumps, summarise

    try:
        found = summarise(arguments.folder)
        if arguments.output is not None:
            write_atomic(arguments.output, dumps(found))
    except (SummaryError, OSError) as error:
        return fail(CANNOT, str(error))
    if arguments.markdown:
        write(markdown.show(found))
    problems = [*found.unread, *(one.reason for one in found.refused)]
    return fail(CANNOT, "\n".join(problems)) if problems else DONE


def _schema(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch import report

    write_json(json.dumps(report.schema(arguments.which), indent=2) + "\n")
    return DONE
