"""Asking the API server what we may do, by SelfSubjectAccessReview: nothing is tried out."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, failures
from pytest_drainwatch.rights.right import Right, Where

# Everybody who is known may ask this, unless somebody took that away (system:basic-user).
GROUP_VERSION = "authorization.k8s.io/v1"


class Subject(NamedTuple):
    """Who asks, as the API server knows them."""

    user: str

    @property
    def service_account(self) -> str | None:
        """``namespace:name`` of a ServiceAccount; None if it is none."""
        prefix = "system:serviceaccount:"
        return self.user.removeprefix(prefix) if self.user.startswith(prefix) else None


def denied(api: Api, rights: Iterable[Right], namespace: str) -> dict[Right, str]:
    """Those of ``rights`` that we do not have, and what the server says of each, often nothing.

    An authorizer that fails is told there too: the API server then allows nothing, and says why.
    The API client's errors pass.
    """
    import kubernetes

    reviews = kubernetes.client.AuthorizationV1Api(api.client)
    found: dict[Right, str] = {}
    for right in rights:
        status = _asked(reviews, right, namespace)
        if not status.allowed:
            found[right] = ", ".join(filter(None, (status.reason, status.evaluation_error)))
    return found


def subject(api: Api) -> Subject | None:
    """Who we are; None if the API server does not tell (before Kubernetes 1.28)."""
    import kubernetes

    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    with suppress(*failures(), AttributeError):
        found = kubernetes.client.AuthenticationV1Api(api.client).create_self_subject_review(
            body, _request_timeout=REQUEST_TIMEOUT
        )
        return Subject(str(found.status.user_info.username))
    return None


def attributes(right: Right, namespace: str) -> dict[str, object]:
    """What a review asks about, as its spec has it."""
    if right.where is Where.PATH:
        return {"nonResourceAttributes": {"verb": right.verb, "path": right.resource}}
    resource, _, subresource = right.resource.partition("/")
    # In no namespace and in all of them are the same question: an empty one.
    asked = {Where.NAMESPACE: namespace, Where.KUBE_SYSTEM: "kube-system"}.get(right.where, "")
    return {
        "resourceAttributes": {
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": asked,
            "name": right.name,
        }
    }


def _asked(reviews: Any, right: Right, namespace: str) -> Any:
    body = {
        "apiVersion": GROUP_VERSION,
        "kind": "SelfSubjectAccessReview",
        "spec": attributes(right, namespace),
    }
    answer = reviews.create_self_subject_access_review(body, _request_timeout=REQUEST_TIMEOUT)
    return answer.status
