"""Where artifacts go: ``results/<run id>/<scenario id>/r00/``."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

_RUN_ID = re.compile(r"(\d{8}T\d{6}Z)-(\d{1,10})")
_ATTEMPT = re.compile(r"(r(\d{2,9}))(?:\.(\d{1,9}))?")


# Both are made by whoever reads names; every pytest run imports this, and tuples are cheap.
class RunId(NamedTuple):
    """What the name of a run's folder says: when it began, and in which process."""

    began: datetime
    pid: int


class Attempt(NamedTuple):
    """What the name of a trial's folder says. ``first`` is the name of the first attempt's."""

    repeat: int
    attempt: int
    first: str


def new_run_id() -> str:
    """Names a run by its start and its process, so that parallel runs never meet."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}"


def run_of(name: str) -> RunId | None:
    """Reads a name as :func:`new_run_id` gives it; None if it is no such name."""
    found = _RUN_ID.fullmatch(name)
    if found is None or not name.isascii():
        return None
    try:
        began = datetime.strptime(found[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:  # month 13
        return None
    return RunId(began=began, pid=int(found[2]))


def attempt_of(name: str) -> Attempt | None:
    """Reads a name as :func:`claim_folder` gives it; None if it is no such name."""
    found = _ATTEMPT.fullmatch(name)
    if found is None or not name.isascii():
        return None
    return Attempt(repeat=int(found[2]), attempt=int(found[3] or 1), first=found[1])


def has_report(folder: Path) -> bool:
    """Whether anything was measured below ``folder``."""
    return any(path.is_file() for path in folder.rglob("report.json"))


def claim_folder(out: Path, run_id: str, scenario_id: str, repeat: int = 0) -> Path:
    """A new folder for one attempt; a second attempt gets a name of its own.

    Raises OSError if ``out`` cannot be written.
    """
    base = out / run_id / folder_name(scenario_id)
    base.mkdir(parents=True, exist_ok=True)
    attempt = 0
    while True:
        attempt += 1
        folder = base / (f"r{repeat:02d}" + (f".{attempt}" if attempt > 1 else ""))
        with suppress(FileExistsError):
            folder.mkdir()
            _point_latest(out, run_id)
            return folder


def folder_name(scenario_id: str) -> str:
    """A scenario's id as one plain part of a path: not hidden, and never out of its parent."""
    name = re.sub(r"[^\w.+-]", "_", scenario_id)
    return re.sub(r"^\.+", "_", name) or "_"


def _point_latest(out: Path, run_id: str) -> None:
    """``results/latest`` is a convenience: failing to move it must not void a trial."""
    temporary = out / f".latest-{os.getpid()}"
    with suppress(OSError):
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(run_id)
        temporary.replace(out / "latest")
