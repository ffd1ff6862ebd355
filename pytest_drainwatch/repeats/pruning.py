"""Old runs make room for new ones: ``--dw-keep-runs``.

Only what carries a run's name, is a folder itself, and belongs to no living process goes.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pytest_drainwatch.results import RunId, run_of

# A run that is going away is first called this: half of a run is never taken for a run.
_GOING = ".pruned-"
# A run's name is made when its process has begun, by a clock that may have been set since.
_SLACK = timedelta(minutes=10)


def prune(out: Path, keep: int, current: str, spare: Collection[Path] = frozenset()) -> list[str]:
    """Keep the ``keep`` newest runs in ``out``, the ``current`` one among them.

    Those in which a path of ``spare`` lies stay beside them, such as a baseline. Returns one
    line for each that could not go; raises nothing.
    """
    try:
        names = [path.name for path in out.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"old runs stay: cannot look into {out}: {error.strerror}"]
    runs = [name for name in names if run_of(name) and _is_folder(out / name)]
    others = sorted((name for name in runs if name != current), reverse=True)
    old = [name for name in others[max(keep - 1, 0) :] if not _holds(out / name, spare)]
    problems = []
    for name in old:
        run = run_of(name)
        if run is not None and not _lives(run):
            problems += _remove(out, name)
    # What an earlier run could not remove altogether.
    left = [name for name in names if name.startswith(_GOING) and _is_folder(out / name)]
    for name in left:
        if run_of(name.removeprefix(_GOING)):
            problems += _delete(out / name)
    return problems


def _holds(folder: Path, spare: Collection[Path]) -> bool:
    return any(path.resolve().is_relative_to(folder.resolve()) for path in spare)


def _remove(out: Path, name: str) -> list[str]:
    going = out / (_GOING + name)
    try:
        (out / name).rename(going)
    except FileNotFoundError:  # another run was quicker
        return []
    except OSError as error:
        return [f"old run {out / name} stays: {error.strerror}"]
    return _delete(going)


def _delete(going: Path) -> list[str]:
    try:
        shutil.rmtree(going)  # removes links, and never what they lead to
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"old run {going} is not wholly removed: {error.strerror}"]
    return []


def _is_folder(path: Path) -> bool:
    """Whether it is a folder itself, and no link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _lives(run: RunId) -> bool:
    """Whether the run's process may still be there. A later process of its number is not it."""
    if run.pid == os.getpid():
        return False  # that is us, and our own run is another
    try:
        os.kill(run.pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's
        pass
    began = _began(run.pid)
    return began is None or began <= run.began + _SLACK


def _began(pid: int) -> datetime | None:
    """When a process began; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = next(
            int(line.split()[1])
            for line in Path("/proc/stat").read_text().splitlines()
            if line.startswith("btime ")
        )
        return datetime.fromtimestamp(boot + int(fields[19]) / os.sysconf("SC_CLK_TCK"), UTC)
    except (OSError, ValueError, IndexError, StopIteration):
        return None
