"""``--dw-markdown``: the run as Markdown, for a job summary or a comment on a pull request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.telling import gate
from pytest_drainwatch.telling.facts import of_run

if TYPE_CHECKING:
    from pytest_drainwatch.core.repeats.summary import Summary
    from pytest_drainwatch.telling.attempts import Told

# GitHub's name for the file of a step; other steps of ours, and others' tools, write there too.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def write(config: pytest.Config, target: Path, found: Summary, told: Told) -> None:
    """The whole of it, at the end of a run. Raises OSError.

    The file of a GitHub step is added to, any other one is replaced.
    """
    from pytest_drainwatch.recorder import write_atomic
    from pytest_drainwatch.render import markdown

    judged = config.stash.get(gate.JUDGED, None)
    text = markdown.show(
        found,
        broken=[
            markdown.Broken(
                test=each.test.rpartition("::")[2]
                + (f" (attempt {each.attempt})" if each.again else ""),
                promise=each.told("promise"),
                hurt=each.told("hurt"),
                advice=each.told("try"),
            )
            for each in told.trials
            if each.outcome == "failed"
        ],
        facts=of_run(config),
        compared=None if judged is None else judged.text,
    )
    step = os.environ.get(STEP_SUMMARY)
    if step and Path(step).resolve() == target.resolve():
        with target.open("a", encoding="utf-8") as file:
            file.write(text)
    else:
        write_atomic(target, text)
