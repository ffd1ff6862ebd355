"""``drainwatch …``: the same instrument without pytest.

Exit codes: 0 done, 1 a judged promise is broken, 2 usage, 3 could not measure, read or
write, 130 interrupted, 141 the reader of our output went away before its end (| head).
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_drainwatch import __version__
from pytest_drainwatch.core.scenario import (
    Access,
    App,
    Behavior,
    Scenario,
    ScenarioError,
    Service,
    Trigger,
)
from pytest_drainwatch.flags import OF_ONE_TRIAL, add_flags, told_by
from pytest_drainwatch.options import OptionError
from pytest_drainwatch.output import (
    CANNOT,
    CUT_OFF,
    DONE,
    USAGE,
    OutputError,
    discard,
    discard_where_nobody_reads,
    fail,
    write,
    write_json,
    write_what_can_be_shown,
)
from pytest_drainwatch.settings import from_environment, resolve

# Rooms that bring commands of their own.
REGISTRARS = (
    "pytest_drainwatch.cluster.commands",
    "pytest_drainwatch.flows.commands",
    "pytest_drainwatch.attach_command",
    "pytest_drainwatch.doctor",
    "pytest_drainwatch.rights.commands",
    "pytest_drainwatch.repeats.commands",
    "pytest_drainwatch.repeats.compare_command",
    "pytest_drainwatch.advising",
    "pytest_drainwatch.balancing",
    "pytest_drainwatch.simulating",
    "pytest_drainwatch.fidelity",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    write_what_can_be_shown()
    try:
        try:
            arguments = build_parser().parse_args(argv)
            return int(arguments.run(arguments) or DONE)
        finally:
            write("")  # a buffer that cannot be emptied shows here, and not at exit
    except OutputError as error:
        discard(sys.stdout)
        return fail(CANNOT, f"cannot write the output: {error}")
    except Exception as error:
        # Where no reader left, a pipe of the measurement broke, which is another matter.
        if isinstance(error, BrokenPipeError) and discard_where_nobody_reads():
            return CUT_OFF
        # Python's own exit code for a crash is 1, and a crash is no verdict.
        traceback.print_exc()
        return CANNOT


def build_parser() -> argparse.ArgumentParser:
    """All commands."""
    parser = argparse.ArgumentParser(
        prog="drainwatch", description="What happens to live connections when a pod terminates?"
    )
    parser.add_argument("--version", action="version", version=f"drainwatch {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(commands)
    _add_show(commands)
    _add_derive(commands)
    for registrar in REGISTRARS:
        import_module(registrar).register(commands)
    return parser


def _add_run(commands: Any) -> None:
    run = commands.add_parser("run", help="one trial from the shell")
    run.add_argument(
        "--drain-behavior",
        choices=[str(b) for b in Behavior],
        default="drain",
        help="what the probe does on SIGTERM",
    )
    run.add_argument(
        "--trigger",
        choices=[str(t) for t in Trigger],
        default="delete",
        help="how pods are terminated",
    )
    run.add_argument(
        "--access",
        choices=[str(a) for a in Access],
        default="nodeport",
        help="how the Service is reached",
    )
    run.add_argument("--replicas", type=int, default=1, metavar="N", help="pods of the probe")
    run.add_argument("--targets", type=int, default=1, metavar="N", help="pods deleted at once")
    add_flags(run, OF_ONE_TRIAL)
    run.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch.once import measure

    try:
        settings = resolve({"command line": told_by(arguments), "environment": from_environment})
        asked = settings.apply(
            Scenario(
                app=App(behavior=Behavior(arguments.drain_behavior), replicas=arguments.replicas),
                service=Service(access=Access(arguments.access)),
                trigger=Trigger(arguments.trigger),
                targets=arguments.targets,
            )
        )
    except (OptionError, ScenarioError) as error:
        return fail(USAGE, str(error).replace("--dw-", "--"))
    return measure(settings, asked)


def _add_show(commands: Any) -> None:
    show = commands.add_parser("show", help="print a report: SUMMARY, TIMELINE, FLOWS")
    show.add_argument("results", nargs="+", type=Path, metavar="RESULT", help="file or folder")
    instead = show.add_mutually_exclusive_group()
    instead.add_argument(
        "--html",
        action="store_true",
        help="write them as one page for a browser, with its pictures, that needs nothing else",
    )
    instead.add_argument(
        "--trace",
        action="store_true",
        help="write all of them as one trace for ui.perfetto.dev or chrome://tracing",
    )
    show.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="where that goes, - prints it (default: report.html or trace.json in the folder "
        "given)",
    )
    show.add_argument(
        "--baseline",
        type=Path,
        metavar="DIR",
        help="with --html of a run: an earlier one that it is compared with",
    )
    show.add_argument(
        "--across",
        action="append",
        default=[],
        metavar="FIELD",
        help="as of drainwatch compare",
    )
    show.set_defaults(run=_show)


def _show(arguments: argparse.Namespace) -> int:
    if arguments.html:
        from pytest_drainwatch.pages.writing import show as show_page

        return show_page(arguments.results, arguments.output, arguments.baseline, arguments.across)
    if arguments.baseline is not None or arguments.across:
        return fail(USAGE, "--baseline and --across are about a page; expected --html beside them")
    if arguments.trace:
        from pytest_drainwatch.tracing import traced

        return traced(arguments.results, arguments.output)
    if arguments.output is not None:
        return fail(USAGE, "-o is about what is written; expected --html or --trace beside it")
    from pytest_drainwatch.given import GivenError, paths_of, read
    from pytest_drainwatch.render.terminal import show

    for given in arguments.results:
        try:
            for path in paths_of(given):
                write(show(read(path)) + "\n")
        except GivenError as error:
            return fail(CANNOT, str(error))
    return DONE


def _add_derive(commands: Any) -> None:
    derive = commands.add_parser("derive", help="judge a recording again")
    derive.add_argument("recording", type=Path, metavar="RECORDING", help="a recording.jsonl")
    derive.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: print it")
    derive.set_defaults(run=_derive)


def _derive(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch import report
    from pytest_drainwatch.core.clock import ClockError
    from pytest_drainwatch.core.derive import derive
    from pytest_drainwatch.core.recording import RecordingError, loads
    from pytest_drainwatch.core.start import CannotDerive
    from pytest_drainwatch.recorder import write_atomic

    try:
        text = report.dumps(derive(loads(arguments.recording.read_text(encoding="utf-8"))))
    except (OSError, UnicodeDecodeError, RecordingError, CannotDerive, ClockError) as error:
        return fail(CANNOT, f"{arguments.recording}: {_why(error)}")
    if not arguments.output:
        write_json(text)
        return DONE
    try:
        write_atomic(arguments.output, text)
    except OSError as error:
        return fail(CANNOT, f"{arguments.output}: cannot write it: {_why(error)}")
    return DONE


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


__all__ = ["build_parser", "main"]
