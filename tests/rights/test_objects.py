"""Rights as RBAC objects: valid, complete, and no wider than asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from pytest_drainwatch.cli import main
from pytest_drainwatch.core.scenario import Access, Controller, Scenario, Trigger, Workload
from pytest_drainwatch.rights.needed import needed, together
from pytest_drainwatch.rights.objects import Grantee, yaml_of
from pytest_drainwatch.rights.right import Right, Where

CI = Grantee(kind="ServiceAccount", name="ci", namespace="team")


def objects(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def granted(role: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for rule in role["rules"]:
        for verb in rule["verbs"]:
            if "nonResourceURLs" in rule:
                yield from ((verb, "", path, "") for path in rule["nonResourceURLs"])
                continue
            (group,), (resource,) = rule["apiGroups"], rule["resources"]
            yield verb, group, resource, (rule.get("resourceNames") or [""])[0]


def asked(rights: list[Right]) -> set[tuple[str, str, str, str]]:
    return {(r.verb, r.group, r.resource, r.name) for r in rights}


@pytest.mark.parametrize("trigger", list(Trigger))
def test_the_roles_grant_exactly_the_rights(trigger: Trigger) -> None:
    rights = needed(Scenario(trigger=trigger), own=True)
    found = objects(yaml_of(rights, CI, name="dw", namespace=None))
    kinds = [(o["kind"], o["metadata"].get("namespace")) for o in found]
    assert kinds == [
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("Role", "kube-system"),
        ("RoleBinding", "kube-system"),
    ]
    system = [r for r in rights if r.where is Where.KUBE_SYSTEM]
    assert set(granted(found[2])) == asked(system)
    assert set(granted(found[0])) == asked([r for r in rights if r not in system])
    for binding in (found[1], found[3]):
        assert binding["roleRef"]["name"] == "dw"
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": "ci", "namespace": "team"}
        ]


def test_for_a_given_namespace_there_is_one_role_in_it() -> None:
    rights = needed(Scenario(), own=False)
    found = objects(yaml_of(rights, CI, name="dw", namespace="team"))
    assert [(o["kind"], o["metadata"]["namespace"]) for o in found] == [
        ("Role", "team"),
        ("RoleBinding", "team"),
    ]
    assert set(granted(found[0])) == asked([r for r in rights if r.where is Where.NAMESPACE])


def test_what_cannot_be_done_within_a_namespace_still_needs_a_cluster_role() -> None:
    rights = needed(Scenario(trigger=Trigger.EVACUATE_NODE), own=False)
    found = objects(yaml_of(rights, CI, name="dw", namespace="team"))
    (role,) = [o for o in found if o["kind"] == "ClusterRole"]
    assert {(verb, resource) for verb, _, resource, _ in granted(role)} == {
        ("get", "nodes"),
        ("patch", "nodes"),
        ("list", "pods"),
        ("create", "pods/eviction"),
    }


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["rbac", *arguments]) == 0
    return objects(capsys.readouterr().out)


def test_by_default_a_service_account_is_printed_too(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys)
    assert (found[0]["kind"], found[0]["metadata"]["namespace"]) == ("ServiceAccount", "default")
    (role,) = [o for o in found if o["kind"] == "ClusterRole"]
    others = [trigger for trigger in Trigger if trigger is not Trigger.EVACUATE_NODE]
    accesses = (Access.NODE_PORT, Access.LOAD_BALANCER)
    rights = together(others, list(Controller), accesses, own=True, attach=False)
    assert set(granted(role)) == asked([r for r in rights if r.where is not Where.KUBE_SYSTEM])
    assert ("patch", "", "nodes", "") not in set(granted(role))


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        (
            ("--service-account", "a:b"),
            {"kind": "ServiceAccount", "name": "b", "namespace": "a"},
        ),
        (
            ("--user", "jane@example.com"),
            {"kind": "User", "name": "jane@example.com", "apiGroup": "rbac.authorization.k8s.io"},
        ),
        (
            ("--group", "testers"),
            {"kind": "Group", "name": "testers", "apiGroup": "rbac.authorization.k8s.io"},
        ),
        (
            ("--namespace", "team"),
            {"kind": "ServiceAccount", "name": "drainwatch", "namespace": "team"},
        ),
    ],
)
def test_whoever_is_named_gets_them(
    arguments: tuple[str, ...], subject: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, *arguments)
    assert [o["subjects"] for o in found if "subjects" in o] == [[subject]] * len(
        [o for o in found if o["kind"].endswith("Binding")]
    )


def test_a_workload_that_is_named_by_labels_is_covered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (role, _) = printed(capsys, "--attach", "--namespace", "shop", "--user", "jane")
    found = set(granted(role))
    assert ("get", "apps", "replicasets", "") in found
    by_labels = Scenario(workload=Workload.attach("app=web"), trigger=Trigger.ROLLOUT)
    for controller in Controller:
        rights = needed(by_labels, own=True, found=controller)
        assert asked([r for r in rights if r.where is Where.NAMESPACE]) <= found
    assert {resource for verb, _, resource, _ in found if verb == "create"} == {"pods/eviction"}


def test_what_reports_can_do_without_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--no-optional", "--trigger", "delete", "--access", "nodeport")
    (role,) = [o for o in found if o["kind"].endswith("Role")]
    resources = {resource for _, _, resource, _ in granted(role)}
    assert resources.isdisjoint({"nodes", "events", "configmaps", "poddisruptionbudgets"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--service-account", "nobody"], "expected NAMESPACE:NAME"),
        (["--namespace", "n", "--trigger", "namespace-delete"], "which a trial leaves"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rbac", *arguments]) == 2
    assert said in capsys.readouterr().err
