"""How a trial's objects are told from all others, in a namespace of its own or a given one.

In a namespace that was made for the trial everything is the trial's. In a given one each
object has a name of its own and a label with the trial's id, and every selector asks for it:
two trials there never see each other's pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_drainwatch.workload import manifests

TRIAL_LABEL = "drainwatch/trial"

_WITH_PODS = frozenset({"Deployment", "StatefulSet", "DaemonSet"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A trial's place in a cluster.

    Attributes:
        namespace: where its objects are.
        trial: its id, where others may live in that namespace too; `None`: it is its own.
        pull_secrets: names of Secrets there by which images are pulled.
    """

    namespace: str
    trial: str | None = None
    pull_secrets: tuple[str, ...] = ()

    @property
    def own(self) -> bool:
        """Whether the namespace was made for this trial."""
        return self.trial is None

    @property
    def probe(self) -> str:
        """The name of the probe's controller, and of its Service."""
        return self.trial or manifests.NAME

    @property
    def client(self) -> str:
        """The name of the client pod."""
        return f"{self.trial}-client" if self.trial else manifests.CLIENT

    @property
    def label(self) -> dict[str, str]:
        """What every object of the trial carries; nothing in a namespace of its own."""
        return {TRIAL_LABEL: self.trial} if self.trial else {}

    @property
    def pods(self) -> str:
        """The selector of the probe's pods."""
        ours = f"{TRIAL_LABEL}={self.trial}" if self.trial else ""
        return ",".join(filter(None, (ours, manifests.POD_SELECTOR)))

    @property
    def slices(self) -> str:
        """The selector of the EndpointSlices of the probe's Service."""
        return f"{manifests.SERVICE_LABEL}={self.probe}"

    def placed(self, manifest: Mapping[str, Any], owner: str) -> manifests.Manifest:
        """A manifest of :mod:`manifests`, as it is in this place. ``owner`` names the process."""
        found: dict[str, Any] = dict(manifest)
        kind, spec = found["kind"], dict(found["spec"])
        if kind in _WITH_PODS:
            spec["template"] = template = dict(spec["template"])
            template["spec"] = self._may_pull(template["spec"])
        elif kind == "Pod":
            spec = self._may_pull(spec)
        found["spec"] = spec
        if self.own:
            return found
        name = self.client if kind == "Pod" else self.probe
        found["metadata"] = {
            **self._labelled(found["metadata"]),
            "name": name,
            "annotations": {manifests.OWNER_ANNOTATION: owner},
        }
        if kind == "Service":
            spec["selector"] = {**spec["selector"], **self.label}
        elif kind in _WITH_PODS:
            template["metadata"] = self._labelled(template["metadata"])
            template["spec"] = self._spread(template["spec"])
            spec["selector"] = {"matchLabels": self._selecting(spec["selector"])}
            if "serviceName" in spec:
                spec["serviceName"] = name
        return found

    def _labelled(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        return {**metadata, "labels": {**metadata["labels"], **self.label}}

    def _may_pull(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        if not self.pull_secrets:
            return dict(pod)
        return {**pod, "imagePullSecrets": [{"name": name} for name in self.pull_secrets]}

    def _spread(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        """Only the trial's own pods count for how they are spread over nodes."""
        if not pod.get("topologySpreadConstraints"):
            return dict(pod)
        rules = [
            {**rule, "labelSelector": {"matchLabels": self._selecting(rule["labelSelector"])}}
            for rule in pod["topologySpreadConstraints"]
        ]
        return {**pod, "topologySpreadConstraints": rules}

    def _selecting(self, selector: Mapping[str, Any]) -> dict[str, Any]:
        return {**selector["matchLabels"], **self.label}
