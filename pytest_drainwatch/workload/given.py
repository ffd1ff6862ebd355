"""A namespace that was there before: what a trial made in it is removed, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain, failures
from pytest_drainwatch.workload import manifests
from pytest_drainwatch.workload.namespace import is_dead
from pytest_drainwatch.workload.place import TRIAL_LABEL, Place

# A controller that is gone may still make a pod or two, until it hears of that.
PODS_GONE_S = 10.0
_POLL_S = 0.2

Item = dict[str, Any]


class _Kind(NamedTuple):
    """The calls that list objects of one kind and remove one."""

    list: Callable[..., Any]
    delete: Callable[..., Any]


@contextmanager
def given_namespace(
    api: Api, place: Place, *, keep: Callable[[], bool], say: Callable[[str], None]
) -> Iterator[str]:
    """Use a namespace and leave it as it was, unless ``keep()`` says to leave all in place.

    What is the trial's is known by its label, so a creation that was interrupted, and carried
    out all the same, is found too. ``say`` takes what could not be removed.
    """
    try:
        yield place.namespace
    finally:
        if not keep():
            left = remove(api, place)
            if left:
                say(
                    f"left in namespace {place.namespace}: {', '.join(left)}. Look at: kubectl -n "
                    f"{place.namespace} get all -l {TRIAL_LABEL}={place.trial}"
                )


def remove(api: Api, place: Place) -> list[str]:
    """Remove what a trial made; returns what is still there, or may be, after PODS_GONE_S."""
    ours = f"{TRIAL_LABEL}={place.trial}"
    left = []
    for name, kind in _kinds(api).items():
        found = _listed(kind, place.namespace, ours)
        for item in found or ():
            _delete(kind, place.namespace, item)
        if found is None and name in ("services", "pods"):  # of controllers a trial makes one
            left.append(f"perhaps {name}: they may not be listed")
    return left + _pods_gone(_kinds(api)["pods"], place.namespace, ours)


def state(api: Api, name: str) -> str:
    """A namespace's phase, or why it is not known."""
    try:
        found = api.core.read_namespace(name, _request_timeout=REQUEST_TIMEOUT)
    except failures() as error:
        return explain(error)
    return str(found.status.phase)


def sweep(api: Api, namespace: str) -> list[str]:
    """Remove what dead runs of this machine left in a given namespace; returns their trials.

    Raises what the API client does if it may not be looked for.
    """
    trials = set()
    for kind in _kinds(api).values():
        for item in _listed(kind, namespace, TRIAL_LABEL) or ():
            metadata = item["metadata"]
            who = (metadata.get("annotations") or {}).get(manifests.OWNER_ANNOTATION, "")
            if is_dead(who) and _delete(kind, namespace, item):
                trials.add(str(metadata["labels"][TRIAL_LABEL]))
    return sorted(trials)


def _kinds(api: Api) -> dict[str, _Kind]:
    """All that a trial may make, controllers first: they would replace what is taken away."""
    core, apps = api.core, api.apps
    return {
        "deployments": _Kind(apps.list_namespaced_deployment, apps.delete_namespaced_deployment),
        "statefulsets": _Kind(
            apps.list_namespaced_stateful_set, apps.delete_namespaced_stateful_set
        ),
        "daemonsets": _Kind(apps.list_namespaced_daemon_set, apps.delete_namespaced_daemon_set),
        "services": _Kind(core.list_namespaced_service, core.delete_namespaced_service),
        "pods": _Kind(core.list_namespaced_pod, core.delete_namespaced_pod),
    }


def _pods_gone(kind: _Kind, namespace: str, ours: str) -> list[str]:
    """Wait until no pod is left: nobody measures them any more, so they get no time to end."""
    deadline = time.monotonic() + PODS_GONE_S
    while pods := _listed(kind, namespace, ours) or []:
        if time.monotonic() > deadline:
            break
        for pod in pods:
            if pod["metadata"].get("deletionGracePeriodSeconds") != 0:
                _delete(kind, namespace, pod)
        time.sleep(_POLL_S)
    return [f"pod {pod['metadata']['name']}" for pod in pods]


def _listed(kind: _Kind, namespace: str, selector: str) -> list[Item] | None:
    """The objects as they are; None if they may not be listed or the answer cannot be read."""
    with suppress(*failures(), KeyError, TypeError):
        response = kind.list(
            namespace,
            label_selector=selector,
            _preload_content=False,
            _request_timeout=REQUEST_TIMEOUT,
        )
        return list(json.loads(response.data)["items"])
    return None


def _delete(kind: _Kind, namespace: str, item: Item) -> bool:
    """Remove this very object at once, and what it made with it; False if that is refused."""
    metadata = item["metadata"]
    body = {
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
        "preconditions": {"uid": metadata["uid"]},
    }
    with suppress(*failures()):
        response = kind.delete(
            metadata["name"],
            namespace,
            body=body,
            _preload_content=False,
            _request_timeout=REQUEST_TIMEOUT,
        )
        response.drain_conn()
        return True
    return False
