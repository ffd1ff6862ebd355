"""Rights as RBAC objects, in YAML that says why each rule is there (pure)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from pytest_drainwatch.rights.right import Right, Where

RBAC = "rbac.authorization.k8s.io"
HEAD = """\
# What trials of pytest-drainwatch do, and nothing else. Rules marked optional may be left out:
# what they read is then null in reports, with a note.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grantee:
    """Who gets the rights: a ServiceAccount has a namespace, a User or Group has none."""

    kind: str
    name: str
    namespace: str | None = None
    made: bool = False  # whether the ServiceAccount is printed too

    def lines(self) -> Iterator[str]:
        """As a subject of a binding."""
        yield f"- kind: {self.kind}"
        yield f"  name: {json.dumps(self.name)}"
        if self.namespace is None:
            yield f"  apiGroup: {RBAC}"
        else:
            yield f"  namespace: {json.dumps(self.namespace)}"


def yaml_of(
    rights: Collection[Right], grantee: Grantee, *, name: str, namespace: str | None
) -> str:
    """Roles and bindings called ``name``.

    ``namespace`` is the one that trials are given; None: they make their own, so what they do
    there has to be allowed in every one.
    """
    here = [r for r in rights if r.where is Where.NAMESPACE]
    if namespace is None:
        cluster = [r for r in rights if r.where is not Where.KUBE_SYSTEM]
        system = [r for r in rights if r.where is Where.KUBE_SYSTEM]
    else:
        # A Role there, and no more than that unless it cannot be done without.
        reach = (Where.CLUSTER, Where.EVERYWHERE)
        cluster = [r for r in rights if r.where in reach and not r.optional]
        system = []
    parts = []
    if grantee.made and grantee.namespace is not None:
        parts.append(_head("v1", "ServiceAccount", grantee.name, grantee.namespace))
    if namespace is not None:
        parts += _role("Role", here, grantee, name, namespace)
    if cluster:
        parts += _role("ClusterRole", cluster, grantee, name, None)
    if system:
        parts += _role("Role", system, grantee, name, "kube-system")
    return HEAD + "---\n".join(parts)


def _role(
    kind: str, rights: Iterable[Right], grantee: Grantee, name: str, namespace: str | None
) -> list[str]:
    """A role and its binding."""
    role = [_head(f"{RBAC}/v1", kind, name, namespace), "rules:\n"]
    role += (f"{line}\n" for line in _rules(rights))
    binding = [
        _head(f"{RBAC}/v1", f"{kind}Binding", name, namespace),
        f"roleRef:\n  apiGroup: {RBAC}\n  kind: {kind}\n  name: {json.dumps(name)}\nsubjects:\n",
        *(f"{line}\n" for line in grantee.lines()),
    ]
    return ["".join(role), "".join(binding)]


def _head(version: str, kind: str, name: str, namespace: str | None) -> str:
    place = "" if namespace is None else f"  namespace: {json.dumps(namespace)}\n"
    return f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {json.dumps(name)}\n{place}"


def _rules(rights: Iterable[Right]) -> Iterator[str]:
    """A rule for all verbs that are wanted of the same objects for the same reasons."""
    groups: dict[tuple[str, str, str, bool, str, bool], list[str]] = {}
    for r in rights:
        path = r.where is Where.PATH
        key = (r.group, r.resource, r.name, path, r.why, r.optional)
        groups.setdefault(key, []).append(r.verb)
    for (group, resource, object_name, path, why, optional), verbs in groups.items():
        yield f"# {'optional: ' if optional else ''}{why}"
        if path:
            yield f"- nonResourceURLs: {json.dumps([resource])}"
        else:
            yield f"- apiGroups: {json.dumps([group])}"
            yield f"  resources: {json.dumps([resource])}"
            if object_name:
                yield f"  resourceNames: {json.dumps([object_name])}"
        yield f"  verbs: {json.dumps(verbs)}"
