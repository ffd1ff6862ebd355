"""Writing pages: of a run that is over, and as ``drainwatch show --html`` asks for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pytest_drainwatch.core.repeats.summary import Summary
from pytest_drainwatch.output import CANNOT, DONE, USAGE, fail, write, write_json
from pytest_drainwatch.pages.assemble import assemble
from pytest_drainwatch.pages.gather import Asked, PageError, page_of
from pytest_drainwatch.recorder import RecorderError, write_atomic

FILE = "report.html"
PRINTED = Path("-")


def show(
    results: Sequence[Path],
    output: Path | None,
    baseline: Path | None = None,
    across: Collection[str] = (),
) -> int:
    """The command; returns its exit code."""
    where = output or _default(results)
    if where is None:
        return fail(USAGE, "one page of several results: where to? Name it: -o FILE")
    printed = where == PRINTED
    asked = Asked(page=None if printed else where, baseline=baseline, across=across)
    try:
        text = assemble(page_of(results, asked))
        if printed:
            write_json(text)  # as it is, whatever the terminal speaks
            return DONE
        write_atomic(where, text)
    except PageError as error:
        return fail(CANNOT, str(error))
    except RecorderError as error:
        why = getattr(error.__cause__, "strerror", None) or error
        return fail(CANNOT, f"{where}: cannot write it: {why}; another place: -o FILE")
    write(f"{where}\n")
    return DONE


def write_run(
    folder: Path,
    summary: Summary | None,
    *,
    outcomes: Mapping[Path, str],
    baseline: Path | None = None,
    across: Collection[str] = (),
) -> Path:
    """The page of a run that is over, in its folder; what cannot be read, or compared, is said
    on it. Raises :class:`PageError` and OSError.
    """
    where = folder / FILE
    asked = Asked(
        page=where,
        outcomes=outcomes,
        summary=summary,
        baseline=baseline,
        across=across,
        strict=False,
    )
    write_atomic(where, assemble(page_of([folder], asked)))
    return where


def write_trial(report: Path, where: Path) -> None:
    """The page of one trial. Raises :class:`PageError` and OSError."""
    write_atomic(where, assemble(page_of([report], Asked(page=where))))


def _default(results: Sequence[Path]) -> Path | None:
    """In the folder that was given, or beside the one report; None: there is no such place."""
    if len(results) != 1:
        return None
    (given,) = results
    return given / FILE if given.is_dir() else given.with_name(FILE)
