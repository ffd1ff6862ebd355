"""What is read of manifests, and with which lines."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from pytest_drainwatch.core.advisor.subject import Action, Port
from pytest_drainwatch.manifests import ManifestError, read
from tests.manifests.texts import CORRECT, FOLDER, changed, read_text


def line_of(words: str) -> int:
    return next(n for n, line in enumerate(CORRECT.split("\n"), 1) if words in line)


def test_a_deployment_with_what_concerns_it() -> None:
    (subject,) = read_text(CORRECT).subjects
    (container,) = subject.containers
    assert (subject.kind, subject.name, subject.namespace) == ("Deployment", "orders", "shop")
    assert (subject.replicas, subject.grace_s, subject.one_a_node) == (3, 45, False)
    assert subject.strategy is not None
    assert (subject.strategy.max_unavailable, subject.strategy.max_surge) == (0, 1)
    assert container.command == ("/app/server", "--port=8080")
    assert container.ports == (Port(number=8080),)
    assert container.pre_stop is not None
    assert (container.pre_stop.action, container.pre_stop.sleep_s) == (Action.SLEEP, 10)
    assert container.readiness is not None
    assert container.readiness.detected_within_s == 3
    assert [service.name for service in subject.services] == ["orders"]
    assert [budget.max_unavailable for budget in subject.budgets] == [1]


def test_each_value_has_its_line() -> None:
    (subject,) = read_text(CORRECT).subjects
    (container,) = subject.containers
    assert container.pre_stop is not None
    assert container.command_at is not None
    assert subject.grace_at is not None
    assert subject.grace_at.line == line_of("terminationGracePeriodSeconds")
    assert container.at.line == line_of("- name: api")
    assert container.command_at.line == line_of("command:")
    assert container.pre_stop.at.line == line_of("sleep:") + 1


@pytest.mark.parametrize(
    "text",
    [
        CORRECT.replace("\n", "\r\n"),
        "\ufeff" + CORRECT,
        "---\n---\n" + CORRECT + "---\n",
        "\n".join(json.dumps(each) + "\n---" for each in yaml.safe_load_all(CORRECT)),
        json.dumps({"kind": "List", "items": list(yaml.safe_load_all(CORRECT))}),
        json.dumps({"kind": "DeploymentList", "items": list(yaml.safe_load_all(CORRECT))}),
    ],
)
def test_the_same_in_other_clothes(text: str) -> None:
    (subject,) = read_text(text).subjects
    assert subject.grace_s == 45
    assert subject.services
    assert subject.budgets


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "ReplicaSet", "Job"])
def test_other_kinds_with_a_template(kind: str) -> None:
    (subject,) = read_text(changed(("kind: Deployment", f"kind: {kind}"))).subjects
    assert subject.kind == kind
    assert subject.grace_s == 45
    assert (subject.strategy is None) == (kind in ("ReplicaSet", "Job"))


def test_a_pod_is_its_own_template() -> None:
    (subject,) = read_text(
        "kind: Pod\nmetadata: {name: one, labels: {app: x}}\nspec:\n"
        "  containers: [{name: a, image: b}]\n---\nkind: Service\nmetadata: {name: s}\n"
        "spec: {selector: {app: x}}\n"
    ).subjects
    assert subject.services
    assert subject.grace_s == 30
    assert subject.grace_said_s is None


def test_anchors_and_merge_keys() -> None:
    text = changed(
        ("  selector:\n    matchLabels: {app: orders}\n  strategy", "  selector: {}\n  strategy"),
        ("      labels: {app: orders}", "      labels: &labels {app: orders}"),
        ("            httpGet: {path: /alive, port: 8080}", "            <<: *ready"),
        ("          readinessProbe:", "          readinessProbe: &ready"),
    )
    (subject,) = read_text(text).subjects
    (container,) = subject.containers
    assert container.liveness is not None
    assert container.liveness.path == "/ready"


def test_sidecars_and_plain_init_containers() -> None:
    text = changed(
        (
            "      containers:\n",
            "      initContainers:\n"
            "        - {name: migrate, image: m}\n"
            "        - {name: mesh, image: envoy, restartPolicy: Always}\n"
            "      containers:\n",
        )
    )
    (subject,) = read_text(text).subjects
    assert [(c.name, c.native_sidecar) for c in subject.containers] == [
        ("api", False),
        ("mesh", True),
    ]


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        ("{}", True),
        ("{matchLabels: {app: orders}}", True),
        ("{matchLabels: {app: order}}", False),
        ("{matchExpressions: [{key: app, operator: In, values: [a, orders]}]}", True),
        ("{matchExpressions: [{key: app, operator: NotIn, values: [orders]}]}", False),
        ("{matchExpressions: [{key: tier, operator: NotIn, values: [web]}]}", True),
        ("{matchExpressions: [{key: app, operator: Exists}]}", True),
        ("{matchExpressions: [{key: app, operator: DoesNotExist}]}", False),
    ],
)
def test_budgets_select_pods_as_kubernetes_does(selector: str, selects: bool) -> None:
    text = CORRECT[: CORRECT.rindex("  selector:")] + f"  selector: {selector}\n"
    found = read_text(text)
    assert bool(found.subjects[0].budgets) == selects
    assert [f.code for f in found.findings] == ([] if selects else ["budget-selects-nothing"])


def test_a_service_without_a_selector_selects_nothing() -> None:
    found = read_text(changed(("  selector: {app: orders}\n  ports", "  selector: {}\n  ports")))
    assert found.subjects[0].services == ()
    assert [f.code for f in found.findings] == ["not-related"]


def test_another_namespace_is_another_workload() -> None:
    last = CORRECT.rindex("namespace: shop")
    found = read_text(CORRECT[:last] + "namespace: other" + CORRECT[last + 15 :])
    assert found.subjects[0].budgets == ()
    found = read_text(CORRECT[:last] + CORRECT[last + 15 :])
    assert found.subjects[0].budgets


def test_what_stands_around_it_is_read() -> None:
    text = (
        CORRECT
        + """\
---
kind: HorizontalPodAutoscaler
metadata: {name: orders}
spec: {scaleTargetRef: {kind: Deployment, name: orders}, minReplicas: 4, maxReplicas: 9}
---
kind: Ingress
metadata:
  name: orders
  annotations: {alb.ingress.kubernetes.io/target-type: ip}
spec: {rules: [{http: {paths: [{backend: {service: {name: orders}}}]}}]}
---
kind: GCPBackendPolicy
metadata: {name: orders}
spec: {default: {connectionDraining: {drainingTimeoutSec: 60}}, targetRef: {name: orders}}
---
kind: Ingress
metadata: {name: others}
spec: {defaultBackend: {service: {name: others}}}
---
kind: ConfigMap
metadata: {name: settings}
---
kind: ConfigMap
metadata: {name: more}
"""
    )
    found = read_text(text)
    (subject,) = found.subjects
    assert [scaler.min_replicas for scaler in subject.autoscalers] == [4]
    assert [(front.kind, dict(front.annotations)) for front in subject.fronts] == [
        ("Ingress", {"alb.ingress.kubernetes.io/target-type": "ip"}),
        ("GCPBackendPolicy", {"spec.default.connectionDraining.drainingTimeoutSec": "60"}),
    ]
    assert [(f.code, f.where.split()[1]) for f in found.findings] == [
        ("not-related", "Ingress/others"),
        ("kind-skipped", "ConfigMap/settings"),
    ]
    assert "2 object(s)" in found.findings[1].says


def test_standard_input_and_files_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    service, *others = CORRECT.split("---\n")
    (tmp_path / "rest.yaml").write_text("---\n".join(others), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(service.encode())))
    (subject,) = read(["-", str(tmp_path / "rest.yaml")]).subjects
    assert subject.at.file == "-"
    assert subject.services
    assert subject.services[0].at.file.endswith("rest.yaml")


def test_standard_input_counts_once() -> None:
    with pytest.raises(ManifestError, match="given twice"):
        read(["-", "-"])


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"no\.yaml: No such file"):
        read([str(tmp_path / "no.yaml")])
    with pytest.raises(ManifestError, match="is a folder, expected files"):
        read([str(tmp_path)])


def test_every_manifest_here_is_read() -> None:
    assert len(list(FOLDER.glob("*.yaml"))) >= 11
    for path in FOLDER.glob("*.yaml"):
        assert read([str(path)]).subjects
