"""Which rights follow from what a trial does."""

from __future__ import annotations

from itertools import product

import pytest

from pytest_drainwatch.core.scenario import (
    Access,
    App,
    Controller,
    Scenario,
    Service,
    Trigger,
    Workload,
)
from pytest_drainwatch.rights.needed import merged, needed, together
from pytest_drainwatch.rights.right import Right, Where


def required(scenario: Scenario, *, own: bool = True) -> set[str]:
    return {right.in_words("n") for right in needed(scenario, own=own) if not right.optional}


BARE = {
    "get /version",
    "create namespaces",
    "get namespaces",
    "delete namespaces",
    "create deployments.apps in namespace n",
    "create services in namespace n",
    "list pods in namespace n",
    "watch pods in namespace n",
    "get pods/log in namespace n",
    "get pods in namespace n",
    "list endpointslices.discovery.k8s.io in namespace n",
    "watch endpointslices.discovery.k8s.io in namespace n",
}


@pytest.mark.parametrize(
    ("trigger", "more"),
    [
        (Trigger.NONE, set()),
        (Trigger.CONTAINER_KILL, set()),
        (Trigger.DELETE, {"delete pods in namespace n"}),
        (Trigger.FORCE_DELETE, {"delete pods in namespace n"}),
        (Trigger.EVICT, {"create pods/eviction in namespace n"}),
        (
            Trigger.SCALE,
            {f"{verb} deployments/scale.apps in namespace n" for verb in ("get", "patch")},
        ),
        (Trigger.ROLLOUT, {f"{verb} deployments.apps in namespace n" for verb in ("get", "patch")}),
        (Trigger.NAMESPACE_DELETE, set()),
        (
            Trigger.EVACUATE_NODE,
            {
                "get nodes",
                "patch nodes",
                "list pods in every namespace",
                "create pods/eviction in every namespace",
            },
        ),
    ],
)
def test_a_trigger_takes_its_own_rights_and_no_more(trigger: Trigger, more: set[str]) -> None:
    assert required(Scenario(trigger=trigger)) == BARE | more


def test_no_trigger_was_forgotten() -> None:
    """A new one has to say here what it takes, or mypy's match is not exhaustive."""
    for trigger, controller in product(Trigger, (*Controller, None)):
        together([trigger], [controller], [Access.NODE_PORT], own=True, attach=True)


def test_in_a_given_namespace_nothing_is_needed_outside_of_it() -> None:
    rights = needed(Scenario(), own=False)
    outside = [r for r in rights if r.where not in (Where.NAMESPACE, Where.PATH)]
    assert all(right.optional for right in outside)
    assert required(Scenario(), own=False) - required(Scenario(), own=True) == {
        "get namespaces in namespace n",
        *(f"{verb} deployments.apps in namespace n" for verb in ("list", "delete")),
        *(f"{verb} services in namespace n" for verb in ("list", "delete")),
    }


def test_each_way_to_the_service_takes_its_own() -> None:
    def asked(access: Access) -> set[str]:
        return required(Scenario(service=Service(access=access)))

    assert asked(Access.LOAD_BALANCER) - asked(Access.NODE_PORT) == {"get services in namespace n"}
    assert asked(Access.CLUSTER_IP) - asked(Access.NODE_PORT) == {
        "create pods in namespace n",
    }


def test_what_is_attached_to_is_never_made() -> None:
    theirs = Scenario(
        workload=Workload.attach("statefulset/db", namespace="n"), trigger=Trigger.ROLLOUT
    )
    found = required(theirs)
    assert not any(words.startswith(("create", "delete")) for words in found)
    assert {
        "get statefulsets.apps in namespace n",
        "patch statefulsets.apps in namespace n",
        "list services in namespace n",
    } <= found


def test_a_namespace_that_is_not_the_trials_is_never_deleted_so_no_right_to_it_is_asked() -> None:
    theirs = Scenario(
        workload=Workload.attach("deployment/web", namespace="n"), trigger=Trigger.NAMESPACE_DELETE
    )
    assert "delete namespaces" not in required(theirs)
    assert "delete namespaces" in required(Scenario(trigger=Trigger.NAMESPACE_DELETE))


def test_of_pods_named_by_labels_the_controller_is_known_later() -> None:
    selected = Scenario(workload=Workload.attach("app=web", namespace="n"), trigger=Trigger.ROLLOUT)
    assert {words for words in required(selected) if "apps" in words} == {
        f"get {resource}.apps in namespace n"
        for resource in ("replicasets", "deployments", "statefulsets", "daemonsets")
    }
    known = needed(selected, own=True, found=Controller.STATEFUL_SET)
    assert "patch statefulsets.apps" in {right.in_words("n").partition(" in")[0] for right in known}


def test_a_controller_is_called_by_its_own_name() -> None:
    asked = Scenario(app=App(controller=Controller.STATEFUL_SET), trigger=Trigger.SCALE)
    assert {
        "create statefulsets.apps in namespace n",
        "patch statefulsets/scale.apps in namespace n",
    } <= required(asked)


def test_a_right_that_is_needed_twice_is_said_once_with_both_reasons() -> None:
    one = Right(verb="get", resource="pods", why="to look", optional=True)
    other = Right(verb="get", resource="pods", why="to see")
    (found,) = merged([one, other, one])
    assert (found.why, found.optional) == ("to look; to see", False)
