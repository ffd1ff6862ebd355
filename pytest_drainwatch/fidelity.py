"""``drainwatch fidelity``: the simulator held against measured trials."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_drainwatch import __version__
from pytest_drainwatch.output import BROKEN, CANNOT, DONE, fail, write, write_json

if TYPE_CHECKING:
    from pytest_drainwatch.core.fidelity.document import Fidelity
    from pytest_drainwatch.core.fidelity.trial import Trial
    from pytest_drainwatch.core.recording import Recording


def register(subparsers: Any) -> None:
    """Add the command to an argparse subparsers object; it sets `run`."""
    fidelity = subparsers.add_parser(
        "fidelity",
        help="simulated against measured: each trial is predicted from the others; exit 1 if a "
        "flow ends otherwise, or a median lies outside of what was measured",
    )
    fidelity.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="measured trials, two or more of each scenario: folders, or report.json files",
    )
    fidelity.add_argument("--json", action="store_true", help="for machines: all values")
    fidelity.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write it there as Markdown as well"
    )
    fidelity.set_defaults(run=_fidelity)


def compared(results: Iterable[Path]) -> Fidelity:
    """All trials of these folders and files, compared.

    Raises GivenError for what cannot be read, and FidelityError for what cannot be compared.
    """
    from pytest_drainwatch.core.fidelity.replay import compare
    from pytest_drainwatch.core.simulation.trial import simulate_trial

    return compare(list(_trials(results)), simulate_trial, __version__)


def _fidelity(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch.core.fidelity.trial import FidelityError
    from pytest_drainwatch.given import GivenError
    from pytest_drainwatch.recorder import write_atomic
    from pytest_drainwatch.render import fidelity, fidelity_markdown

    try:
        found = compared(arguments.results)
    except (GivenError, FidelityError) as error:
        return fail(CANNOT, str(error))
    if arguments.markdown is not None:
        try:
            write_atomic(arguments.markdown, fidelity_markdown.show(found))
        except OSError as error:
            why = error.__cause__ or error  # without the advice that is for trials
            return fail(CANNOT, f"{arguments.markdown}: cannot write it: {why}")
    if arguments.json:
        write_json(dumps(found))
    else:
        write(fidelity.show(found))
    return DONE if found.holds else BROKEN


def dumps(found: Fidelity) -> str:
    """As JSON."""
    from dataclasses import asdict

    return json.dumps(asdict(found), indent=2, ensure_ascii=False) + "\n"


def _trials(results: Iterable[Path]) -> Iterator[Trial]:
    """Each report once, with its recording if that lies beside it."""
    from pytest_drainwatch.core.fidelity.trial import measured
    from pytest_drainwatch.given import paths_of, read

    paths = {path.resolve(): path for given in results for path in paths_of(given)}
    for path in paths.values():
        yield measured(str(path), read(path), _recording(path.with_name("recording.jsonl")))


def _recording(path: Path) -> Recording | None:
    """The recording, if there is one. Raises GivenError if it cannot be read."""
    from pytest_drainwatch.core.recording import RecordingError, loads
    from pytest_drainwatch.given import GivenError

    try:
        return loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, RecordingError) as error:
        raise GivenError(f"{path}: {error}") from error
