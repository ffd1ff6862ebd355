"""Traces on disk: ``drainwatch show --trace``, and one beside each report with ``--dw-trace``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_drainwatch.output import CANNOT, DONE, USAGE, fail, write

if TYPE_CHECKING:
    from pytest_drainwatch.trial import Trial

FILE = "trace.json"
PRINT = Path("-")


def write_beside(trial: Trial) -> Path:
    """A measured trial's own trace, beside its report. Raises OSError."""
    from pytest_drainwatch.recorder import write_atomic
    from pytest_drainwatch.render.trace.trials import picture, trace

    path = trial.folder / FILE
    write_atomic(path, trace([picture(trial.report)], made_by=[trial.report.drainwatch_version]))
    return path


def traced(results: Sequence[Path], output: Path | None) -> int:
    """All trials of the results in one file; prints its path, or the file itself for ``-``."""
    from pytest_drainwatch.given import GivenError, paths_of
    from pytest_drainwatch.given import read as read_report
    from pytest_drainwatch.recorder import write_atomic
    from pytest_drainwatch.render.trace.trials import picture, trace

    if output is None and len(results) > 1:
        return fail(USAGE, "several results make one trace; expected where it goes: -o FILE")
    try:
        paths = [path for given in results for path in paths_of(given)]
        read = [read_report(path) for path in paths]
    except GivenError as error:
        return fail(CANNOT, str(error))
    ids = Counter(each.trial.id for each in read)
    text = trace(
        [
            # Trials of two runs may have one id.
            picture(each, name=None if ids[each.trial.id] == 1 else _long(each.trial.id, path))
            for path, each in zip(paths, read, strict=True)
        ],
        made_by=[each.drainwatch_version for each in read],
    )
    if output == PRINT:
        write(text)
        return DONE
    only = results[0]
    target = output or (only if only.is_dir() else only.parent) / FILE
    try:
        write_atomic(target, text)
    except OSError as error:
        cause = error.__cause__ or error
        why = getattr(cause, "strerror", None) or cause
        return fail(CANNOT, f"{target}: cannot write it: {why}")
    write(f"{target}\n")
    return DONE


def _long(trial_id: str, path: Path) -> str:
    """A trial's id behind its run's: ``results/RUN/SCENARIO/r00/report.json`` or the path."""
    folder = path.resolve().parent
    run = folder.parents[1].name if str(folder).endswith(trial_id) else ""
    return f"{run}/{trial_id}" if run else f"{trial_id} ({path})"
