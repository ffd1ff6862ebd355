"""``--dw-markdown``: the run as Markdown, for a job summary or a comment on a pull request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.session import COMMAND_LINE, RUN, only_looks, shown
from pytest_drainwatch.showing.listening import PLAN
from pytest_drainwatch.telling import gate
from pytest_drainwatch.telling.facts import of_run

if TYPE_CHECKING:
    from pytest_drainwatch.core.repeats.summary import Summary
    from pytest_drainwatch.telling.attempts import Told

# GitHub's name for the file of a step; other steps of ours, and others' tools, write there too.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
# A test may fail for something else than what it promised.
NO_PROMISE = "none told: it failed otherwise"


def check(config: pytest.Config) -> None:
    """Before anything is measured: can it be written? Raises :class:`pytest.UsageError`."""
    settings = config.stash[RUN].settings
    target = settings.markdown
    if target is None or hasattr(config, "workerinput") or only_looks(config):
        return
    if PLAN not in config.stash or (why := _obstacle(target)) is None:
        return
    origin = settings.origins.get("markdown")
    by = "" if origin == COMMAND_LINE else f" ({origin})"
    raise pytest.UsageError(
        f"--dw-markdown={shown(config, target)}{by}: {why}; expected a file that can be written, "
        "in a folder that is there or can be made. Look at: "
        f"ls -ld {shown(config, target.parent)}"
    )


def _obstacle(target: Path) -> str | None:
    """Why it could not be written, as far as that can be told before; None: nothing is known."""
    try:
        if target.is_dir():
            return "this is a folder"
        if target.exists():
            return None if os.access(target, os.W_OK) else "it cannot be written"
        near = next(each for each in target.parents if each.exists())
        if not near.is_dir():
            return f"{near} is no folder"
        return None if os.access(near, os.W_OK | os.X_OK) else f"{near} cannot be written"
    except OSError as error:  # a name that is too long, say
        return error.strerror or str(error)


def write(config: pytest.Config, found: Summary, told: Told) -> list[str]:
    """The whole of it, at the end of a run; says what is wrong with it. Raises OSError.

    The file of a GitHub step is added to, any other one is replaced.
    """
    from pytest_drainwatch.recorder import write_atomic
    from pytest_drainwatch.render import markdown

    target = config.stash[RUN].settings.markdown
    assert target is not None  # else nobody asked for it
    step = os.environ.get(STEP_SUMMARY)
    added = bool(step) and Path(step or "").resolve() == target.resolve()
    judged = config.stash.get(gate.JUDGED, None)
    text = markdown.show(
        found,
        broken=[
            markdown.Broken(
                test=each.test.rpartition("::")[2]
                + (f" (attempt {each.attempt})" if each.again else ""),
                promise=each.told("promise") or NO_PROMISE,
                hurt=each.told("hurt"),
                advice=each.told("try"),
            )
            for each in told.trials
            if each.outcome == "failed"
        ],
        facts={name: told for name, told in of_run(config).items() if _holds(config, name, told)},
        compared=None if judged is None else judged.text,
        beside=target.stat().st_size if added and target.exists() else 0,
    )
    if not text:
        return [f"no job summary is written: {target} is as long as GitHub shows it already"]
    if added:
        with target.open("a", encoding="utf-8") as file:
            file.write(text)
    else:
        write_atomic(target, text)
    return []


def _holds(config: pytest.Config, name: str, told: str) -> bool:
    """By now a page is written, or it could not be."""
    return name not in ("page", "summary") or (config.invocation_params.dir / told).is_file()
