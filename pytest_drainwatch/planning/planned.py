"""Which trials a run set out to measure, so that those it never came to can be named.

Workers of xdist collect the tests, and their controller sums the run up: it learns the plan
by a file in the run's folder, which is there even if every worker is killed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_drainwatch.planning import asked, ordering, repeating
from pytest_drainwatch.planning.forecast import Workers, forecast
from pytest_drainwatch.session import RUN

FILE = ".planned.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is said of a run before the wait, and what it will measure.

    A trial: ``scenario`` (None: only the test knows), ``repeat`` and ``test``, its node id.
    """

    words: Sequence[str] = ()
    trials: Sequence[Mapping[str, object]] = field(default=())


def plan(config: pytest.Config, items: list[pytest.Item]) -> Plan:
    """Plan a run of these tests: in a worker of xdist also in which order, and for others to
    read. Several workers write the same.
    """
    worker = hasattr(config, "workerinput")
    if worker:
        workers = Workers.of(config)
        items[:] = ordering.dealt(config, items, workers.mode, workers.number)
    made = Plan(
        words=forecast(config, items),
        trials=[trial for item in items for trial in _trials(config, item)],
    )
    if worker:
        _publish(config, made)
    return made


def _publish(config: pytest.Config, made: Plan) -> None:
    folder = folder_of(config)
    own = folder / f"{FILE}.{os.getpid()}"
    # Where nothing can be written no trial can be measured either, and it will say so.
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        own.write_text(json.dumps({"words": made.words, "trials": made.trials}), encoding="utf-8")
        own.replace(folder / FILE)


def published(config: pytest.Config) -> Plan:
    """In the controller: what a worker told; empty if none has so far."""
    try:
        told = json.loads((folder_of(config) / FILE).read_text(encoding="utf-8"))
        return Plan(words=told["words"], trials=told["trials"])
    except (OSError, ValueError, KeyError):
        return Plan()


def clear_up(config: pytest.Config) -> None:
    """Remove the file, and the folder if the file was all that it held."""
    folder = folder_of(config)
    with suppress(OSError):
        (folder / FILE).unlink()
        folder.rmdir()


def folder_of(config: pytest.Config) -> Path:
    """The folder of this run's results."""
    return config.stash[RUN].folder


def _trials(config: pytest.Config, item: pytest.Item) -> Iterator[Mapping[str, object]]:
    if not repeating.measures(item):
        return
    known = asked.says_its_scenarios(item)
    ids = [each.id for each in asked.applied(config, item)] if known else [None]
    for scenario in ids:
        yield {"scenario": scenario, "repeat": repeating.repeat_of(item), "test": item.nodeid}
