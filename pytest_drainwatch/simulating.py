"""`drainwatch simulate`: the end of a pod, predicted request by request; nothing is measured."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_drainwatch import __version__, option_values
from pytest_drainwatch.core.scenario import Behavior, ScenarioError
from pytest_drainwatch.core.simulation.command import FLAGS, exact
from pytest_drainwatch.core.simulation.inputs import (
    LONGEST_NS,
    MOST_REQUESTS,
    SHORTEST_NS,
    Inputs,
)
from pytest_drainwatch.core.simulation.presets import PRESETS
from pytest_drainwatch.output import CANNOT, DONE, USAGE, fail, write, write_json

if TYPE_CHECKING:
    from pytest_drainwatch.core.simulation.run import Simulated

PRINTED = Path("-")
PAGE = Path("simulation.html")
WORDS = f"""\
A model, and no measurement: what becomes of each request that is sent to a pod while it ends.
Durations are written as 500ms, 25s or 2m, at most a day; a bare number is seconds. There may be
{MOST_REQUESTS:,} requests in all. It judges nothing: the exit code is 0 also where requests fail.
docs/simulate.md says what is modelled.
"""
# What each input means to whoever types it; the flags are those that the page names as well.
MEANINGS = {
    "pre_stop_ns": "how long the preStop hook takes; 0: there is none",
    "grace_period_s": "terminationGracePeriodSeconds, whole seconds; the hook counts",
    "behavior": "what the app does on SIGTERM",
    "drain_ns": "how long a draining app lets work finish",
    "close_idle": "a draining app leaves idle keep-alive connections open",
    "nodes": "how many kube-proxies route to the pod",
    "propagation_ns": "when the slowest of them sends no new connection here any more",
    "load_balancer_ns": "when an external load balancer stops (its deregistration delay)",
    "longest_ns": "how long the longest request takes",
    "keepalive": "without the client that asks on a connection that it opened before",
    "client_retries": "how often a client tries again, a second later each",
    "slow_ns": "a request that is served but takes longer is slow",
    "kubelet_ns": "from the deletion until the kubelet begins",
    "handler_ns": "from SIGTERM until the app acts on it",
    "kill_ns": "from SIGKILL until the process is gone",
}


def register(commands: Any) -> None:
    """Add the command to ``drainwatch``."""
    parser = commands.add_parser(
        "simulate", help="predict what a pod's end does to requests", description=WORDS
    )
    parser.add_argument(
        "--preset",
        choices=[preset.name for preset in PRESETS],
        help="inputs worth looking at; what is given beside it is changed (a switch stays: leave "
        "the preset out)",
    )
    usual = Inputs()
    for name, flag in FLAGS.items():
        _add(parser, name, flag, getattr(usual, name))
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--json", action="store_true", help="everything: inputs, each request, the trace"
    )
    instead.add_argument(
        "--html", action="store_true", help="write a page on which the inputs can be changed"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"where it goes, - prints it (default: {PAGE} with --html, else printed)",
    )
    parser.add_argument(
        "--recording",
        type=Path,
        metavar="FILE",
        help="write it as a trial's recording too, marked simulated, for drainwatch derive",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Simulate what was asked for; returns the exit code."""
    from pytest_drainwatch.core.simulation.run import simulate
    from pytest_drainwatch.recorder import RecorderError

    if (why := _confused(arguments)) is not None:
        return fail(USAGE, why)
    try:
        simulated = simulate(inputs_of(arguments))
        if arguments.recording is not None:
            _record(simulated, arguments.recording)
        return _tell(simulated, arguments)
    except ScenarioError as error:
        return fail(USAGE, _in_flags(str(error)))
    except RecorderError as error:
        cause = getattr(error.__cause__, "strerror", None) or error
        return fail(CANNOT, f"cannot write it: {cause}; another place: -o FILE, --recording FILE")


def _confused(arguments: argparse.Namespace) -> str | None:
    """Why the places that were named cannot be meant; None: they can."""
    if arguments.recording is None:
        return None
    if arguments.recording == PRINTED:
        return "--recording is -, expected a file: what is printed is the rest"
    if arguments.recording.resolve() == _where(arguments).resolve():
        return f"{arguments.recording} is named twice, expected one file for each of the two"
    return None


def _where(arguments: argparse.Namespace) -> Path:
    where: Path = arguments.output or (PAGE if arguments.html else PRINTED)
    return where


def inputs_of(arguments: argparse.Namespace) -> Inputs:
    """The preset's inputs, or the defaults, with what the flags say instead.

    Raises :class:`ScenarioError` for inputs that mean nothing.
    """
    from dataclasses import replace

    of = {preset.name: preset.inputs for preset in PRESETS}
    base = of[arguments.preset] if arguments.preset else Inputs()
    told = {name: getattr(arguments, name) for name in FLAGS}
    return replace(base, **{name: value for name, value in told.items() if value is not None})


def _record(simulated: Simulated, path: Path) -> None:
    from pytest_drainwatch.core.recording import dumps
    from pytest_drainwatch.core.simulation.http_recording import recording
    from pytest_drainwatch.recorder import write_atomic

    try:
        recorded = recording(simulated, version=__version__)
    except ScenarioError as error:
        raise ScenarioError(f"--recording makes a trial of it, which takes less: {error}") from None
    write_atomic(path, dumps(recorded))


def _tell(simulated: Simulated, arguments: argparse.Namespace) -> int:
    from pytest_drainwatch.recorder import write_atomic

    where = _where(arguments)
    text = _text(simulated, arguments)
    if where != PRINTED:
        write_atomic(where, text)
        write(f"{where}\n")
    elif arguments.json or arguments.html:
        write_json(text)  # as it is, whatever the terminal speaks
    else:
        write(text)
    return DONE


def _text(simulated: Simulated, arguments: argparse.Namespace) -> str:
    if arguments.json:
        from pytest_drainwatch.core.simulation.document import dumped

        return dumped(simulated)
    if arguments.html:
        from pytest_drainwatch.pages.simulation import simulation_page

        return simulation_page(simulated.inputs)
    from pytest_drainwatch.render.simulation import show

    return show(simulated)


def _add(parser: argparse.ArgumentParser, name: str, flag: str, usual: object) -> None:
    meaning = MEANINGS[name]
    if isinstance(usual, bool):
        parser.add_argument(flag, dest=name, action="store_const", const=not usual, help=meaning)
        return
    if isinstance(usual, Behavior):
        parser.add_argument(flag, dest=name, choices=[str(one) for one in Behavior], help=meaning)
        return
    read: Callable[[str], int] = option_values.count
    metavar = "N"
    if name.endswith("_ns"):
        read, metavar = (_longest if name == "longest_ns" else _duration), "TIME"
    elif name.endswith("_s"):
        read, metavar = option_values.seconds, "SECONDS"
    parser.add_argument(flag, dest=name, type=_checked(read), metavar=metavar, help=meaning)


def _checked(read: Callable[[str], int]) -> Callable[[str], int]:
    """The same for argparse, which shows what a reader of options says of a bad one."""

    def checked(text: str) -> int:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text[:40]!r}: {error}") from None

    return checked


def _duration(text: str) -> int:
    ns = option_values.parse_duration_ns(text)
    if ns > LONGEST_NS:
        raise ValueError("expected at most 1440m, a day")
    return ns


def _longest(text: str) -> int:
    if (ns := _duration(text)) < SHORTEST_NS:
        raise ValueError("expected 1ms or more")
    return ns


def _in_flags(said: str) -> str:
    """An error in the words that were typed, and durations as they are typed."""
    for name, flag in FLAGS.items():
        if name.endswith("_ns") and f"{name} is" in said:
            said = re.sub(r"\d+", lambda found: f"{exact(int(found[0]))}s", said)
            said = said.replace("a whole number ", "")
        said = said.replace(f"{name} is", f"{flag} is")
    return said
