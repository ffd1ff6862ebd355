"""The namespace of a trial: made for it and removed, or given and left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from pytest_drainwatch import preflight
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.preflight import require
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.workload import given, namespace


@contextmanager
def room(stage: Stage, keep: Callable[[], bool]) -> Iterator[str]:
    """The namespace, for as long as the context lasts; what the trial made there, no longer.

    Raises TrialVoid if a given one is not there, or the trigger would delete it.
    """
    api, place = stage.api, stage.place
    if place.own:
        say = stage.progress.line
        with namespace.trial_namespace(api, place.namespace, keep=keep, say=say) as name:
            yield name
        return
    ends_it = stage.scenario.trigger is Trigger.NAMESPACE_DELETE
    look = partial(given.state, api, place.namespace)
    require(
        lambda: preflight.namespace_given(place.namespace, look(), ends_it=ends_it),
        stage.recorder,
        timeout_s=0,
    )
    with given.given_namespace(api, place, keep=keep, say=stage.progress.line) as name:
        yield name
