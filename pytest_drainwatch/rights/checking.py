"""The preflight check of rights: all that is missing is named at once, and how to get it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Mapping, Sequence

from pytest_drainwatch.api import explain, failures
from pytest_drainwatch.preflight import Check, require
from pytest_drainwatch.rights.commands import NAME
from pytest_drainwatch.rights.needed import needed
from pytest_drainwatch.rights.review import Subject, denied, subject
from pytest_drainwatch.rights.right import Right, Where
from pytest_drainwatch.stage import Stage

INVARIANT = "whoever runs the trial may do all that it takes, known before anything is created"
# Kubernetes' own role for `/version` and the like.
PUBLIC_INFO = "system:public-info-viewer"
DIGITS = 8


def allowed(stage: Stage) -> None:
    """Insist on every right that the trial needs. In a cluster of our own we may do anything.

    Raises TrialVoid.
    """
    if stage.cluster.provider == "embedded":
        return
    require(lambda: look(stage), stage.recorder, timeout_s=0)


def look(stage: Stage) -> Check:
    """Ask for each right, and say how it stands."""
    found = stage.found.kind if stage.found else None
    rights = needed(stage.scenario, own=stage.place.own, found=found)
    try:
        missing = denied(stage.api, rights, stage.namespace)
    except failures() as error:
        return Check(
            name="rights-granted",
            invariant=INVARIANT,
            expected="the API server answers SelfSubjectAccessReviews, as it does by default",
            observed=explain(error),
            passed=False,
            hopeless=True,
            look_at="kubectl auth can-i --list; the ClusterRoleBinding system:basic-user",
        )
    who = subject(stage.api) if any(not right.optional for right in missing) else None
    command = grant_command(stage, who, tuple(missing))
    return granted(rights, missing, stage.namespace, who.user if who else "we", command)


def granted(
    rights: Collection[Right],
    missing: Mapping[Right, str],
    namespace: str,
    who: str,
    command: str,
) -> Check:
    """The check, given which rights are missing, and what the server says of each (pure)."""
    lacked = [f"{r.in_words(namespace)} ({r.why})" for r in missing if not r.optional]
    spared = [f"{r.in_words(namespace)} ({r.why})" for r in missing if r.optional]
    told = f"{who} may not: {'; '.join(lacked)}" if lacked else f"all of {len(rights)} but optional"
    if not missing:
        told = f"all of {len(rights)}"
    if spared and not lacked:
        told = f"{len(rights) - len(spared)} of {len(rights)}; done without: {'; '.join(spared)}"
    if said := dict.fromkeys(text for r, text in missing.items() if text and not r.optional):
        told += f". The API server says: {'; '.join(said)}"
    return Check(
        name="rights-granted",
        invariant=INVARIANT,
        expected=f"{len([r for r in rights if not r.optional])} rights, as `drainwatch rbac` has"
        " them",
        observed=told,
        passed=not lacked,
        hopeless=bool(lacked),
        look_at=command,
    )


def grant_command(stage: Stage, who: Subject | None, missing: Sequence[Right]) -> str:
    """What somebody who may grant rights types to grant these, and take none away."""
    required = [right for right in missing if not right.optional]
    scenario, workload = stage.scenario, stage.scenario.workload
    within = not stage.place.own or workload is not None
    paths = [right for right in required if right.where is Where.PATH and within]
    commands = []
    if len(paths) < len(required) or not required:
        words = ["--namespace", stage.namespace] if within else []
        if who is not None:
            account = who.service_account
            words += ["--service-account", account] if account else ["--user", who.user]
        words += ["--trigger", str(scenario.trigger)]
        if workload is not None:
            words.append("--attach")
        else:
            words += ["--controller", str(scenario.app.controller)]
            words += ["--access", str(scenario.service.access)]
        words += ["--name", _name_of(words)]
        commands.append(f"{shlex.join(['drainwatch', 'rbac', *words])} | kubectl apply -f -")
    if paths:
        commands.append(shlex.join(_public_info(who)))
    return "; ".join(commands)


def _name_of(words: Sequence[str]) -> str:
    """Roles of the same name would replace each other: what is granted makes the name."""
    digest = hashlib.sha256(" ".join(words).encode()).hexdigest()[:DIGITS]
    return f"{NAME}-{digest}"


def _public_info(who: Subject | None) -> list[str]:
    """What gives back the paths that everybody may read by default; no Role holds paths."""
    subject = ["--group", "system:authenticated"]
    if who is not None:
        account = who.service_account
        subject = ["--serviceaccount", account] if account else ["--user", who.user]
    name = _name_of([PUBLIC_INFO, *subject])
    binding = ["kubectl", "create", "clusterrolebinding", name]
    return [*binding, "--clusterrole", PUBLIC_INFO, *subject]
