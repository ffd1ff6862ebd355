"""``drainwatch advise``: whether a workload's shutdown fits into what its manifest gives it."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_drainwatch import __version__, option_values
from pytest_drainwatch.core.advisor.balancers import Balancer, Kind, Number
from pytest_drainwatch.output import BROKEN, CANNOT, DONE, USAGE, fail, write, write_json

if TYPE_CHECKING:
    from pytest_drainwatch.core.advisor.measured import Measured
    from pytest_drainwatch.core.advisor.told import Told

# What a manifest does not say: flag, and what it means. The field is the flag's name.
DURATIONS = (
    ("propagation", "how long new connections still come after a deletion (measure it)"),
    ("wait", "how long the application goes on accepting after SIGTERM"),
    ("drain", "its shutdown timeout: how long it finishes what runs, after the wait"),
    ("close", "how long it then takes to close its resources"),
    ("flush", "how long it takes to flush logs and traces"),
    ("reserve", "what must be left over in the end"),
    ("longest-request", "the longest request that must be answered"),
    ("keep-alive", "for how long an idle connection is kept"),
    ("max-connection-age", "after how long any connection is ended"),
    ("max-connection-age-grace", "how long its streams may go on after that"),
    ("dns-ttl", "for how long an answer of DNS is kept"),
    ("resolve-period", "how often clients ask DNS again"),
)
# Of the load balancer: flag, field of a Balancer, and what it means.
BALANCER = (
    ("lb-lag", "lag", "from the deletion to its API"),
    ("lb-spread", "spread", "from there until it sends no new connections"),
    ("lb-delay", "delay", "its deregistration or draining delay, as configured"),
    ("lb-floor", "floor", "what that never stays under"),
    ("lb-jitter", "jitter", "what may come on top, from 0 on"),
    ("lb-health-interval", "interval", "between two of its health checks"),
    ("lb-health-timeout", "timeout", "how long a check waits"),
)
QUANTILE, CONFIDENCE = Fraction(99, 100), Fraction(95, 100)
LONGEST_NS = 24 * 3600 * 10**9


def register(subparsers: Any) -> None:
    """Add the command to an argparse subparsers object; it sets `run`."""
    advise = subparsers.add_parser(
        "advise",
        help="does the shutdown fit into what a manifest gives it? exit 1 if it does not",
    )
    advise.add_argument(
        "manifests",
        nargs="+",
        metavar="MANIFEST",
        help="files of Kubernetes objects, rendered; - is standard input",
    )
    for flag, meaning in DURATIONS:
        advise.add_argument(f"--{flag}", type=_duration, metavar="TIME", help=meaning)
    advise.add_argument(
        "--lb",
        choices=[str(kind) for kind in Kind],
        help="the load balancer in front; its numbers are assumed where they are not given",
    )
    for flag, _, meaning in BALANCER:
        advise.add_argument(f"--{flag}", type=_duration, metavar="TIME", help=f"--lb: {meaning}")
    advise.add_argument(
        "--lb-health-threshold",
        type=_threshold,
        metavar="N",
        help="--lb: failed checks until it is unhealthy",
    )
    advise.add_argument(
        "--kubernetes", type=_minor, metavar="VERSION", help="the cluster's version, such as 1.34"
    )
    advise.add_argument(
        "--from",
        dest="results",
        action="append",
        default=[],
        type=_results,
        metavar="RESULTS",
        help="measured trials: --propagation and the drain are taken from them where not given; "
        "may be repeated",
    )
    advise.add_argument(
        "--quantile",
        type=_share,
        metavar="Q",
        help="--from: of all such trials so many shall take no longer (default: 0.99)",
    )
    advise.add_argument(
        "--confidence",
        type=_share,
        metavar="C",
        help="--from: how sure that shall be (default: 0.95)",
    )
    advise.add_argument("--json", action="store_true", help="for machines: all values")
    advise.set_defaults(run=_advise)


def _advise(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict
    from json import dumps

    from pytest_drainwatch.core.advisor.advice import advise
    from pytest_drainwatch.core.advisor.finding import Level
    from pytest_drainwatch.core.advisor.measured import MeasuredError
    from pytest_drainwatch.given import GivenError
    from pytest_drainwatch.manifests import ManifestError, read
    from pytest_drainwatch.render.advising import show

    try:
        told = told_by(arguments)
    except ValueError as error:
        return fail(USAGE, str(error))
    try:
        found = read(arguments.manifests)
        measured = _measured(arguments)
    except (ManifestError, GivenError, MeasuredError) as error:
        return fail(CANNOT, str(error))
    if measured is not None:
        told = with_measured(told, measured)
    advice = advise(found.subjects, found.findings, told, __version__, measured)
    if arguments.json:
        # Quantiles and confidences are fractions.
        write_json(dumps(asdict(advice), indent=2, ensure_ascii=False, default=float) + "\n")
    else:
        write(show(advice))
    return BROKEN if advice.count(Level.BROKEN) else DONE


def _measured(arguments: argparse.Namespace) -> Measured | None:
    from pytest_drainwatch.core.advisor.measured import measured
    from pytest_drainwatch.given import paths_of, read

    if not arguments.results:
        return None
    # A trial that is given twice is one trial all the same.
    found = (path for folder in arguments.results for path in paths_of(folder))
    paths = list({path.resolve(): path for path in found}.values())
    named = ((str(path), read(path)) for path in paths)
    return measured(named, arguments.quantile or QUANTILE, arguments.confidence or CONFIDENCE)


def with_measured(told: Told, measured: Measured) -> Told:
    """Where the owner says nothing, the upper tolerance limits, if there are any."""
    from dataclasses import replace

    from pytest_drainwatch.core.advisor.measured import Name
    from pytest_drainwatch.render.measured import says

    propagation, shutdown = map(measured.figure, (Name.PROPAGATION, Name.SHUTDOWN))
    if told.propagation_ns is None and propagation.limit.value is not None:
        told = replace(
            told,
            propagation_ns=_whole_ms(propagation.limit.value),
            propagation_source=says(propagation),
        )
    if shutdown.limit.value is not None:
        told = replace(
            told, shutdown_ns=_whole_ms(shutdown.limit.value), shutdown_source=says(shutdown)
        )
    return told


def _whole_ms(ns: int) -> int:
    """Rounded up: it stays an upper limit, and people can read it."""
    from pytest_drainwatch.core.interval import NS_PER_MS

    return -(-ns // NS_PER_MS) * NS_PER_MS


def told_by(arguments: argparse.Namespace) -> Told:
    """What the flags say; None for each that was not given. Raises ValueError."""
    from pytest_drainwatch.core.advisor.told import Told

    for option, base in (
        ("--max-connection-age-grace", "--max-connection-age"),
        ("--quantile", "--from"),
        ("--confidence", "--from"),
    ):
        if _given(arguments, option) and not _given(arguments, base):
            raise ValueError(f"{option} is about what {base} says; expected {base} beside it")
    names = [flag.replace("-", "_") for flag, _ in DURATIONS]
    return Told(
        **{f"{name}_ns": getattr(arguments, name) for name in names},
        kubernetes_minor=arguments.kubernetes,
        balancer=_balancer(arguments),
    )


def _given(arguments: argparse.Namespace, option: str) -> bool:
    name = "results" if option == "--from" else option.removeprefix("--").replace("-", "_")
    return getattr(arguments, name) not in (None, [])


def _balancer(arguments: argparse.Namespace) -> Balancer | None:
    flags = {flag: field for flag, field, _ in BALANCER} | {"lb-health-threshold": "threshold"}
    given = {
        field: Number(value=value, origin=f"--{flag}")
        for flag, field in flags.items()
        if (value := getattr(arguments, flag.replace("-", "_"))) is not None
    }
    if arguments.lb is None:
        if given:
            first = next(iter(given.values())).origin
            raise ValueError(f"{first} is about a load balancer; expected --lb beside it")
        return None
    return Balancer(kind=Kind(arguments.lb), **given)


def _duration(text: str) -> int:
    try:
        ns = option_values.parse_duration_ns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    if ns > LONGEST_NS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected at most 1440m, a day")
    return ns


def _threshold(text: str) -> int:
    try:
        number = option_values.count_from_one(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    if number > 100:
        raise argparse.ArgumentTypeError(f"{text!r}: expected at most 100")
    return number


def _results(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("expected a folder of results, or a report.json")
    return Path(text)


def _share(text: str) -> Fraction:
    from pytest_drainwatch.core.repeats.tolerance import HIGHEST

    if not re.fullmatch(r"0?\.\d{1,9}", text.strip()) or not 0 < Fraction(text) <= HIGHEST:
        raise argparse.ArgumentTypeError(f"{text!r}: expected above 0, up to {float(HIGHEST)}")
    return Fraction(text)


def _minor(text: str) -> int:
    found = re.fullmatch(r"v?1\.(\d{1,3})(?:\.\d+)?", text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a version such as 1.34")
    return int(found[1])
