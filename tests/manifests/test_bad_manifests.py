"""Manifests that cannot be read: each error names the line, shows it, and says what to do."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.advisor.checks import check
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.manifests import ManifestError
from pytest_drainwatch.manifests.files import LARGEST_BYTES
from tests.manifests.texts import CORRECT, changed, read_text

POD = "kind: Pod\nmetadata: {name: one}\nspec:\n  containers: [{name: a, image: b}]\n"
BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)
)

GRACE = "terminationGracePeriodSeconds: 45"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "is empty"),
        ("\n  \n", None, "is empty"),
        ("# only words\n", None, "x.yaml: no workload in it; expected one of"),
        (b"\x7fELF\0\1", None, "is no text"),
        (b"kind: Pod\nname: \xff\n", 2, "0xff is no UTF-8"),
        ("kind: Pod\n\tspec: 1\n", 2, "a tab indents this line"),
        ("kind: Pod\nspec: [1\n", 3, "expected YAML"),
        ("kind: Pod: x\n", 1, "mapping values are not allowed"),
        ("a: *nobody\n", 1, "undefined alias"),
        ("kind: Pod\nx: \x07\n", 2, "expected YAML"),
        ("[" * 5000, None, "expected"),
        ("- " * 20000, None, "expected"),
        ("just words\n", 1, 'the document is "just words", a text, expected a map'),
        ("- 1\n- 2\n", 1, "the document is a list"),
        ("spec: {}\n", 1, "has no kind"),
        ("kind: [Pod]\n", 1, "kind is a list, expected a text"),
        ("kind: Service\nmetadata: {name: a}\n", None, "no workload in it, only Service"),
        ("kind: Pod\nspec: {}\n", 1, "has no metadata.name"),
        ("kind: Pod\nkind: Pod\n", 2, "kind is there twice, first in line 1"),
        ("? {a: 1}\n: 2\n", 1, "expected a plain key"),
        (POD + "---\n" + POD, 6, "is there twice, first at x.yaml:1"),
        ("a: &a\n  kind: List\n  items: [*a]\nkind: List\nitems: [*a]\n", 1, "no further Lists"),
        ("kind: List\nitems: {}\n", 2, "items is a map, expected a list"),
        # what the API server refuses as well
        (
            changed((GRACE, "terminationGracePeriodSeconds: 45s")),
            "terminationGrace",
            '"45s", a text, expected a',
        ),
        (
            changed((GRACE, "terminationGracePeriodSeconds: 45.5")),
            "terminationGrace",
            "is 45.5, expected a whole",
        ),
        (
            changed((GRACE, "terminationGracePeriodSeconds: true")),
            "terminationGrace",
            "is true, expected a whole",
        ),
        (
            changed((GRACE, "terminationGracePeriodSeconds: .nan")),
            "terminationGrace",
            "is .nan, expected a whole",
        ),
        (
            changed((GRACE, "terminationGracePeriodSeconds: 0x2d")),
            "terminationGrace",
            "is 0x2d, expected a whole",
        ),
        (
            changed((GRACE, "terminationGracePeriodSeconds: 1:30")),
            "terminationGrace",
            "is 1:30, expected a whole",
        ),
        (
            changed((GRACE, f"terminationGracePeriodSeconds: {'9' * 5000}")),
            "terminationGrace",
            "expected a whole",
        ),
        (
            changed((GRACE, "terminationGracePeriodSeconds: [45]")),
            "terminationGrace",
            "is a list, expected a whol",
        ),
        (changed(("replicas: 3", "replicas: -1")), 9, "is -1, expected a whole number of 0"),
        (changed(("replicas: 3", 'replicas: "3"')), 9, 'is "3", a text'),
        (changed(("maxUnavailable: 0", "maxUnavailable: most")), 15, 'a text as "25%"'),
        (changed(('--port=8080"]', '--port", 8080]')), "command:", 'write "8080" with quotes'),
        (changed(('["/app/server", "--port=8080"]', "/app/server")), "command:", "expected a list"),
        (changed(("image: example/orders:1.2.3", "image: 5")), "image: 5", "expected a text"),
        (
            changed(("sleep:\n", "sleep: {}\n"), ("                seconds: 10\n", "")),
            "sleep: {}",
            "seconds",
        ),
        (changed(("sleep:\n", "nap:\n")), "nap:", "expected one of exec, httpGet, sleep"),
        (
            changed(("periodSeconds: 2", "periodSeconds: yes")),
            "periodSeconds: yes",
            "is yes, expected a whole",
        ),
        (
            changed(("labels: {app: orders}", "labels: {app: 1}")),
            "labels: {app: 1}",
            "expected a text",
        ),
        # what has not been rendered
        (
            changed((GRACE, "terminationGracePeriodSeconds: {{ .Values.grace }}")),
            "terminationGrace",
            "helm template",
        ),
        (changed(("replicas: 3", "replicas: {{ .Values.replicas }}")), 9, "helm template"),
        (
            changed(("image: example/orders:1.2.3", 'image: "{{ .Values.x }}"')),
            "Values.x",
            "helm template",
        ),
        (
            changed(("replicas: 3", "{{- if .Values.many }}\n  replicas: 3\n  {{- end }}")),
            9,
            "helm",
        ),
        ('{{ include "all" . }}\n', 1, "helm template"),
        ("kind: Kustomization\nresources: []\n", 1, "kubectl kustomize"),
        ("- op: replace\n  path: /spec/replicas\n", 1, "is a JSON patch"),
        ("kind: Deployment\nmetadata: {name: a}\nspec: {replicas: 2}\n", 1, "kubectl kustomize"),
        (changed(("          image: example/orders:1.2.3\n", "")), "- name: api", "is it a patch?"),
    ],
)
def test_each_fault_is_named_with_its_line(
    text: str | bytes, line: int | str | None, words: str
) -> None:
    with pytest.raises(ManifestError) as raised:
        read_text(text)
    told = str(raised.value)
    assert words in told
    assert len(told) < 500
    raw = text.encode() if isinstance(text, str) else text
    lines = raw.decode("utf-8", errors="replace").split("\n")
    if isinstance(line, str):
        line = next(number for number, each in enumerate(lines, 1) if line in each)
    if line is not None:
        assert told.startswith(f"x.yaml:{line}: ")
        shown = lines[line - 1].strip()
        if shown and shown.isprintable() and len(shown) < 100:
            assert shown in told


def test_aliases_that_multiply_cost_nothing() -> None:
    assert read_text(BOMB.replace("a: &a", "kind: Pod\nx: &a", 1) + POD.replace("kind: Pod\n", ""))


def test_too_large_is_said_before_it_is_read() -> None:
    with pytest.raises(ManifestError, match="over 8 MiB"):
        read_text(b"#" * (LARGEST_BYTES + 1))


@given(st.binary(max_size=80) | st.text(max_size=80))
def test_no_bytes_make_a_traceback(text: str | bytes) -> None:
    with contextlib.suppress(ManifestError):
        read_text(text.encode(errors="ignore") if isinstance(text, str) else text)


LINES = CORRECT.split("\n")
VALUES = st.sampled_from(
    [
        *("~", "0", "-1", "9999999999999999999", "1e400", "yes", "100%", "0777", "2026-01-01"),
        *("''", "'x'", "[]", "{}", "[~]", "{a: ~}", "[[]]", "- x", "|", '"{{ .Values.a }}"'),
        *("!!binary aGk=", "!x y", "!!int x", "!!bool x", "!!int []", "*a", "&a *a"),
    ]
)


@given(st.integers(0, len(LINES) - 1), VALUES)
def test_no_value_makes_a_traceback(index: int, value: str) -> None:
    key, colon, _ = LINES[index].partition(":")
    text = "\n".join([*LINES[:index], f"{key}{colon} {value}", *LINES[index + 1 :]])
    with contextlib.suppress(ManifestError):
        for subject in read_text(text).subjects:
            check(subject, Told())


HEAD = "kind: Pod\nmetadata: {name: x}\n"
MERGES = [f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40)]
CHAIN = [f"a{i}: &a{i} {{<<: *a{i - 1}}}\n" for i in range(1, 3000)]
OBJECTS = "kind: List\nitems:\n- &l {kind: ConfigMapList, items: [&c {kind: ConfigMap}, "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # 3 to the power of 39 ways to the same map
        (f"{HEAD}a0: &a0 {{k: 1}}\n{''.join(MERGES)}spec: {{<<: *a39}}\n", "no spec.containers"),
        (f"{HEAD}spec: &s {{<<: [*s, *s]}}\n", "no spec.containers"),
        (f"{HEAD}a0: &a0 {{k: 1}}\n{''.join(CHAIN)}spec: {{<<: *a2999}}\n", "merges (<<) in a row"),
        # 4 million objects
        (f"{OBJECTS}{', '.join(['*c'] * 2000)}]}}\n" + "- *l\n" * 2000, "over 20000 objects"),
    ],
)
def test_aliases_that_grow_cost_nothing(text: str, words: str) -> None:
    with pytest.raises(ManifestError, match=re.escape(words)):
        read_text(text)


def test_a_map_that_merges_itself_has_its_own_fields() -> None:
    found = read_text(f"{HEAD}spec: &s\n  <<: *s\n  containers: [{{name: a, image: b}}]\n")
    assert [each.name for each in found.subjects[0].containers] == ["a"]


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_a_container_that_is_there_twice(field: str) -> None:
    second = "{name: a, image: b, restartPolicy: Always}"
    text = f"{HEAD}spec:\n  containers:\n  - {{name: a, image: b}}\n"
    text += f"  - {second}\n" if field == "containers" else f"  {field}:\n  - {second}\n"
    with pytest.raises(ManifestError, match=r"container a is there twice, first at x\.yaml:5"):
        read_text(text)


@pytest.mark.parametrize(
    ("grace", "words"),
    [
        ("9" * 19, "expected a whole number, up to 9223372036854775807"),
        ("9" * 30, "expected a whole number, up to 9223372036854775807"),
        ("9" * 5000, "expected a whole number, up to 9223372036854775807"),
        ('"30"', '"30", a text, expected a whole number\n'),
        ("30.0", "30.0, expected a whole number\n"),
        (".nan", ".nan, expected a whole number\n"),
        ("true", "true, expected a whole number\n"),
    ],
)
def test_a_grace_period_that_is_none(grace: str, words: str) -> None:
    text = f"{HEAD}spec:\n  terminationGracePeriodSeconds: {grace}\n"
    with pytest.raises(ManifestError, match=re.escape(words)):
        read_text(text + "  containers: [{name: a, image: b}]\n")


def test_an_autoscaler_that_contradicts_itself() -> None:
    text = HEAD + "spec: {containers: [{name: a, image: b}]}\n---\n"
    text += "kind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec:\n"
    text += "  scaleTargetRef: {kind: Deployment, name: x}\n  minReplicas: 5\n"
    assert read_text(f"{text}  maxReplicas: 5\n").subjects
    with pytest.raises(ManifestError, match=r"x\.yaml:10: maxReplicas is below minReplicas"):
        read_text(f"{text}  maxReplicas: 3\n")
