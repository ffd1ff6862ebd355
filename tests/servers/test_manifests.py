"""The servers' manifests hang together, and arms change what they say and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scenarios.servers import running
from scenarios.servers.images import NGINX
from scenarios.servers.running import Server

MANIFESTS = sorted(path.stem for path in Path(running.__file__).parent.glob("*.yaml"))


def everything(name: str) -> list[dict[str, Any]]:
    text = (Path(running.__file__).parent / f"{name}.yaml").read_text()
    return list(yaml.safe_load_all(text))


def names(objects: list[dict[str, Any]], kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in objects if item["kind"] == kind}


def test_there_are_some() -> None:
    assert MANIFESTS == ["gunicorn", "haproxy", "nginx", "node", "python"]


@pytest.mark.parametrize("name", MANIFESTS)
def test_each_has_a_deployment_and_a_nodeport_of_its_name(name: str) -> None:
    found = everything(name)
    (service,) = (s for s in found if s["kind"] == "Service" and s["metadata"]["name"] == name)
    (workload,) = (d for d in found if d["kind"] == "Deployment" and d["metadata"]["name"] == name)
    template = workload["spec"]["template"]
    assert service["spec"]["type"] == "NodePort"
    assert service["spec"]["selector"] == workload["spec"]["selector"]["matchLabels"]
    assert workload["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    (container,) = template["spec"]["containers"]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["containerPort"]
    assert container["readinessProbe"]["periodSeconds"] == 1


@pytest.mark.parametrize("name", MANIFESTS)
def test_each_mounts_only_what_it_brings(name: str) -> None:
    found = everything(name)
    for workload in (item for item in found if item["kind"] == "Deployment"):
        spec = workload["spec"]["template"]["spec"]
        maps = {volume["configMap"]["name"] for volume in spec["volumes"]}
        assert maps <= names(found, "ConfigMap")
        mounted = {mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
        assert mounted == {volume["name"] for volume in spec["volumes"]}


def test_an_arm_replaces_the_fields_it_names() -> None:
    hook = {"preStop": {"sleep": {"seconds": 3}}}
    plain = Server(name="nginx", image=NGINX)
    plain_pods, hooked_pods = (
        item["spec"]["template"]["spec"]["containers"][0]
        for server in (plain, plain.with_(lifecycle=hook))
        for item in server.objects({"nginx": "example/nginx:1"})
        if item["kind"] == "Deployment"
    )
    assert plain_pods["image"] == "example/nginx:1"
    assert hooked_pods.pop("lifecycle") == hook
    assert hooked_pods == plain_pods


def test_an_arm_can_have_other_replicas() -> None:
    server = Server(name="nginx", image=NGINX, replicas=5)
    (workload,) = (item for item in server.objects({"nginx": "x"}) if item["kind"] == "Deployment")
    assert workload["spec"]["replicas"] == 5
