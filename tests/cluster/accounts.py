"""ServiceAccounts with exactly the rights that `drainwatch rbac` prints, or one less."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pytest_drainwatch.api import Api, connect, failures
from pytest_drainwatch.cli import main
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.rights.review import denied
from pytest_drainwatch.rights.right import Right

HOME = "default"
WITHIN_S = 10.0

Objects = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A ServiceAccount, and a kubeconfig with a bound token of its own."""

    name: str
    kubeconfig: Path


def printed(name: str, *arguments: str) -> Objects:
    """What `drainwatch rbac` prints for that ServiceAccount."""
    said = io.StringIO()
    words = ["rbac", "--service-account", f"{HOME}:{name}", "--name", name, *arguments]
    with contextlib.redirect_stdout(said):
        assert main(words) == 0
    return list(yaml.safe_load_all(said.getvalue()))


def without(objects: Objects, right: Right) -> Objects:
    """The same objects, but for one verb of one rule."""
    taken = 0
    for role in objects:
        for rule in role.get("rules", ()):
            about = rule.get("nonResourceURLs") or rule["resources"]
            same = about == [right.resource] and rule.get("apiGroups", [""]) == [right.group]
            same = same and rule.get("resourceNames", [""]) == [right.name]
            if same and right.verb in rule["verbs"]:
                rule["verbs"].remove(right.verb)
                taken += 1
        if "rules" in role:
            role["rules"] = [rule for rule in role["rules"] if rule["verbs"]]
    assert taken == 1, f"{taken} rules grant {right.verb} {right.resource}"
    return objects


@contextlib.contextmanager
def account(cluster: Cluster, folder: Path, name: str, objects: Objects) -> Iterator[Account]:
    """Make them, and remove them again."""
    api = connect(cluster.kubeconfig, cluster.context)
    try:
        api.core.create_namespaced_service_account(HOME, {"metadata": {"name": name}})
        for each in objects:
            _call(api, "create", each)
        yield Account(name=name, kubeconfig=kubeconfig(cluster, folder, token(api, name)))
    finally:
        for each in objects:
            with contextlib.suppress(*failures()):
                _call(api, "delete", each)
        with contextlib.suppress(*failures()):
            api.core.delete_namespaced_service_account(name, HOME)
        api.close()


def apply(cluster: Cluster, command: str) -> None:
    """Do what a check has printed: `drainwatch rbac … | kubectl apply -f -`."""
    words, pipe, _ = command.partition(" | kubectl apply -f -")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert pipe
        assert main(shlex.split(words)[1:]) == 0
    api = connect(cluster.kubeconfig, cluster.context)
    for each in yaml.safe_load_all(said.getvalue()):
        _call(api, "create", each)
    api.close()


def token(api: Api, name: str) -> str:
    """A bound token (TokenRequest)."""
    body = {"spec": {"audiences": [], "expirationSeconds": 3600}}
    answer = api.core.create_namespaced_service_account_token(name, HOME, body)
    return str(answer.status.token)


def kubeconfig(cluster: Cluster, folder: Path, bearer: str) -> Path:
    """The cluster's kubeconfig, with another user in it."""
    told = yaml.safe_load(cluster.kubeconfig.read_text())
    told["users"] = [
        {"name": told["users"][0]["name"], "user": {"token": bearer} if bearer else {}}
    ]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "account.kubeconfig"
    file.write_text(yaml.safe_dump(told))
    return file


def until_denied(
    account: Account, rights: tuple[Right, ...], namespace: str, expected: set[Right]
) -> None:
    """Wait until the API server has heard of the roles, a moment after they are made."""
    api = connect(account.kubeconfig)
    deadline = time.monotonic() + WITHIN_S
    try:
        while set(found := denied(api, rights, namespace)) != expected:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
    finally:
        api.close()


def expired(key_file: Path, name: str) -> str:
    """A token as the API server signs them, of an hour ago."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    key: Any = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
    now = int(time.time())
    claims = {
        "iss": "https://kubernetes.default.svc.cluster.local",
        "aud": ["https://kubernetes.default.svc.cluster.local"],
        "sub": f"system:serviceaccount:{HOME}:{name}",
        "iat": now - 7200,
        "nbf": now - 7200,
        "exp": now - 3600,
        "kubernetes.io": {"namespace": HOME, "serviceaccount": {"name": name, "uid": "x"}},
    }
    signed = f"{_coded({'alg': 'ES256', 'typ': 'JWT'})}.{_coded(claims)}"
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_base64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _coded(part: object) -> str:
    return _base64(json.dumps(part).encode())


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _call(api: Api, verb: str, item: dict[str, Any]) -> None:
    """Create or delete an RBAC object."""
    import kubernetes

    rbac = kubernetes.client.RbacAuthorizationV1Api(api.client)
    noun = {
        "ClusterRole": "cluster_role",
        "ClusterRoleBinding": "cluster_role_binding",
        "Role": "namespaced_role",
        "RoleBinding": "namespaced_role_binding",
    }[item["kind"]]
    call: Callable[..., Any] = getattr(rbac, f"{verb}_{noun}")
    where = [item["metadata"]["namespace"]] if noun.startswith("namespaced") else []
    call(*where, item) if verb == "create" else call(item["metadata"]["name"], *where)
