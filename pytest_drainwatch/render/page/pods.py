"""Who is who: a short label for each pod, and its processes as responders.

``pod A`` is the first target. A pod is its UID; a name can be another pod's a moment later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from string import ascii_uppercase

from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.observation import Source
from pytest_drainwatch.render.page.data import Responder

TARGET, BYSTANDER, NEWCOMER = "target", "bystander", "newcomer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """The pods of a trial by UID, in the order of their labels.

    ``responders`` are the processes that answered flows; ``index`` finds one by its identity.
    """

    labels: Mapping[str, str]
    names: Mapping[str, str]
    roles: Mapping[str, str | None]
    responders: tuple[Responder, ...]
    index: Mapping[str, int]

    def label(self, uid: str | None) -> str:
        """How a pod is called in texts."""
        return "a pod" if uid is None else self.labels.get(uid, "a pod")

    def by(self, responder: str | None) -> str:
        """How the process behind an identity is called in texts."""
        found = None if responder is None else self.index.get(responder)
        return "an unknown responder" if found is None else self.responders[found]["name"]

    def of_role(self, role: str) -> list[str]:
        """UIDs."""
        return [uid for uid in self.labels if self.roles[uid] == role]

    def in_words(self, text: str) -> str:
        """Anybody's text with labels instead of UIDs."""
        for uid, label in self.labels.items():
            if uid in text:
                text = text.replace(uid, label)
        return text


def pods_of(trial: TrialReport) -> Pods:
    """The pods that a report names anywhere."""
    names = dict(_names(trial))
    identities = list(dict.fromkeys(who for flow in trial.flows for who in flow.responders))
    targets = sorted(trial.trigger.targets, key=lambda uid: (names.get(uid, ""), uid))
    others = [*names, *(_uid(identity) for identity in identities)]
    uids = [uid for uid in dict.fromkeys([*targets, *others]) if uid]
    labels = {uid: f"pod {_letter(n)}" for n, uid in enumerate(uids)}
    roles = {uid: _role(uid, trial) for uid in uids}
    responders, index = list[Responder](), dict[str, int]()
    runs = dict[str, int]()
    for identity in identities:
        uid = _uid(identity)
        runs[uid] = runs.get(uid, 0) + 1
        again = f", process {runs[uid]}" if runs[uid] > 1 else ""
        index[identity] = len(responders)
        name = f"{labels[uid]}{again}" if uid else "somebody without a name"
        responders.append(Responder(name=name, pod_uid=uid, role=roles.get(uid)))
    return Pods(labels=labels, names=names, roles=roles, responders=tuple(responders), index=index)


def _names(trial: TrialReport) -> Iterator[tuple[str, str]]:
    """Every (UID, name) that is told anywhere; in the order of the timeline first."""
    for entry in trial.timeline:
        if entry.source is Source.K8S and entry.subject and entry.detail:
            yield entry.subject, entry.detail.partition(" ")[0]
    told: Iterable[tuple[str | None, str | None]] = (
        *((end.pod_uid, end.pod) for end in trial.pod_ends),
        *((gone.pod_uid, gone.pod) for gone in trial.container_exits),
        *((found.pod_uid, found.pod) for found in trial.windows),
        *((one.pod_uid, one.pod) for tried in trial.new_connections for one in tried.answered_by),
    )
    for uid, name in told:
        if uid and name:
            yield uid, name


def _role(uid: str, trial: TrialReport) -> str | None:
    """What it was in the trial: one that is seen since the trigger only is a newcomer."""
    if uid in trial.trigger.targets:
        return TARGET
    seen = [entry.t_ns[1] for entry in trial.timeline if entry.subject == uid]
    if not seen:
        return None
    return NEWCOMER if min(seen) >= 0 else BYSTANDER


def _uid(identity: str) -> str:
    return identity.partition("/")[0]


def _letter(number: int) -> str:
    return ascii_uppercase[number] if number < len(ascii_uppercase) else str(number + 1)
