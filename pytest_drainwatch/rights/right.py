"""One thing that a trial does to a cluster, as its authorizer sees it (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Where(StrEnum):
    """On what a right is needed."""

    NAMESPACE = "namespace"  # in the namespace of the trial
    CLUSTER = "cluster"  # on what is in no namespace
    EVERYWHERE = "everywhere"  # in every namespace
    KUBE_SYSTEM = "kube-system"  # in that namespace
    PATH = "path"  # on a path of the API server that is no resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One verb on one resource.

    Attributes:
        verb: as in a Role: `get`, `create`, …
        resource: its plural, with a subresource behind a slash: `pods/log`; a path for `PATH`.
        group: its API group; empty is the core group.
        where: on what.
        why: what the trial does with it, in a few words.
        optional: without it something is null in the report, with a note; nothing fails.
        name: the only object that it is about; empty: all of them.
    """

    verb: str
    resource: str
    group: str = ""
    where: Where = Where.NAMESPACE
    why: str
    optional: bool = False
    name: str = ""

    def in_words(self, namespace: str) -> str:
        """``create deployments.apps in namespace dw-x``."""
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        if self.name:
            what += f" {self.name}"
        places = {
            Where.NAMESPACE: f" in namespace {namespace}",
            Where.CLUSTER: "",
            Where.EVERYWHERE: " in every namespace",
            Where.KUBE_SYSTEM: " in namespace kube-system",
            Where.PATH: "",
        }
        return f"{self.verb} {what}{places[self.where]}"
