"""In a given namespace each trial has names, labels and selectors of its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.scenario import App, Controller, Service
from pytest_drainwatch.workload import client, manifests
from pytest_drainwatch.workload.place import TRIAL_LABEL, Place

OWN, GIVEN = Place(namespace="dw-x"), Place(namespace="team", trial="dw-x")
MADE = {
    "deployment": manifests.workload(App(), "image"),
    "statefulset": manifests.workload(App(controller=Controller.STATEFUL_SET), "image"),
    "spread": manifests.workload(App(spread_over_nodes=True, replicas=2), "image"),
    "service": manifests.service(Service()),
    "client": client.manifest("image"),
}


def placed(place: Place, made: str) -> dict[str, Any]:
    return dict(place.placed(MADE[made], "an owner"))


def selected(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


@pytest.mark.parametrize("made", MADE)
def test_in_a_namespace_of_its_own_nothing_is_changed(made: str) -> None:
    assert placed(OWN, made) == MADE[made]


@pytest.mark.parametrize("made", MADE)
def test_in_a_given_one_each_object_is_the_trials_by_name_label_and_owner(made: str) -> None:
    metadata = placed(GIVEN, made)["metadata"]
    assert metadata["name"] == ("dw-x-client" if made == "client" else "dw-x")
    assert metadata["labels"][TRIAL_LABEL] == "dw-x"
    assert manifests.MANAGED_BY.items() <= metadata["labels"].items()
    assert metadata["annotations"] == {manifests.OWNER_ANNOTATION: "an owner"}


ids = st.from_regex(r"dw-[a-z]{1,30}-[0-9a-f]{8}", fullmatch=True)


@given(ids, ids, st.sampled_from(["deployment", "statefulset", "spread"]))
def test_two_trials_in_one_namespace_never_select_each_others_pods(
    one: str, other: str, made: str
) -> None:
    mine = Place(namespace="team", trial=one)
    controller, service = placed(mine, made), placed(mine, "service")
    theirs = placed(Place(namespace="team", trial=other), made)
    client_pod = placed(mine, "client")
    spec = controller["spec"]
    selectors = [spec["selector"]["matchLabels"], service["spec"]["selector"]]
    pod = spec["template"]["spec"]
    selectors += [
        r["labelSelector"]["matchLabels"] for r in pod.get("topologySpreadConstraints", ())
    ]
    for selector in selectors:
        assert selected(selector, spec["template"]["metadata"]["labels"])
        assert not selected(selector, client_pod["metadata"]["labels"])
        foreign = theirs["spec"]["template"]["metadata"]["labels"]
        assert selected(selector, foreign) == (one == other)
    assert mine.pods.startswith(f"{TRIAL_LABEL}={one},")
    assert mine.slices == f"kubernetes.io/service-name={service['metadata']['name']}"
    if made == "statefulset":
        assert spec["serviceName"] == service["metadata"]["name"]


@given(ids)
def test_names_are_ones_that_kubernetes_takes(trial: str) -> None:
    place = Place(namespace="team", trial=trial)
    for name in (place.probe, place.client):
        # A StatefulSet's pods carry its name and a hash of 10 in a label of 63 at most.
        assert len(f"{name}-0123456789") <= 63


def test_placing_changes_nothing_that_was_made() -> None:
    made = manifests.workload(App(), "image")
    GIVEN.placed(made, "an owner")
    assert made == manifests.workload(App(), "image")


@pytest.mark.parametrize("made", ["deployment", "statefulset", "client"])
def test_pods_are_pulled_by_the_secrets_that_are_named(made: str) -> None:
    found = placed(Place(namespace="team", trial="dw-x", pull_secrets=("a", "b")), made)
    pod = found["spec"] if made == "client" else found["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert "imagePullSecrets" not in str(placed(GIVEN, made))
