"""What was done in a trial, for somebody who knows nothing of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.render.page import prose
from pytest_drainwatch.render.page.pods import TARGET, Pods

_DONE = {
    "delete": "{pods} {was} deleted through the Kubernetes API",
    "force-delete": "{pods} {was} deleted with force, which leaves no grace period,",
    "evict": "{pods} {was} evicted, as the drain of a node does it,",
    "scale": "the workload was scaled down, which ended {pods}",
    "rollout": "the workload was rolled out anew, which replaced {pods}",
    "evacuate-node": "the node of {pods} was evacuated, as before maintenance,",
    "namespace-delete": "the whole namespace was deleted, and {pods} with it",
    "container-kill": "the container of {pods} was killed (SIGKILL), past the Kubernetes API,",
}
_BEHAVES = {
    "drain": "to drain: to {accepts}, to serve those it has for up to {drain} s, then to say bye "
    "and close them",
    "exit-now": "to exit at once",
    "ignore": "to ignore that, until it is killed when its grace period of {grace} s is over",
}


_ASKED = {
    "delete": "{pods} deleted",
    "force-delete": "{pods} deleted with force",
    "evict": "{pods} evicted",
    "scale": "scaled down",
    "rollout": "rolled out anew",
    "evacuate-node": "node evacuated",
    "namespace-delete": "namespace deleted",
    "container-kill": "container killed",
    "none": "nothing is done",
}
_BUILT = {
    "drain": "the app drains for up to {drain} s on SIGTERM",
    "exit-now": "the app exits at once on SIGTERM",
    "ignore": "the app ignores SIGTERM",
}


def asked(trial: TrialReport) -> str:
    """What was tried, in a line: ``the app drains for up to 25 s on SIGTERM · pod deleted · …``."""
    config, number = trial.config, len(trial.trigger.targets)
    attached = config.get("attached")
    if isinstance(attached, Mapping):
        app = (
            f"{_known(attached, 'workload')} in {_known(attached, 'namespace')}, "
            f"{_known(attached, 'protocol')} through Service {_known(attached, 'service')} "
            f"port {_known(attached, 'port')}"
        )
    else:
        behavior = str(config.get("drain_behavior") or "not known")
        built = _BUILT.get(behavior, "the app's behaviour on SIGTERM is {behavior}")
        app = built.format(behavior=behavior, drain=_number(config.get("drain_max_seconds")))
    verb = trial.trigger.verb
    did = _ASKED.get(verb, "{verb}").format(
        verb=verb, pods="pod" if number == 1 else f"{number} pods"
    )
    grace = config.get("grace_period_seconds")
    period = [] if grace is None else [f"grace period {_number(grace)} s"]
    return " · ".join([app, did, *period, *_hook(config)])


def _hook(config: Mapping[str, object]) -> list[str]:
    hook = config.get("pre_stop")
    if not isinstance(hook, Mapping):
        return []
    sleeps = hook.get("sleep_seconds")
    return ["preStop hook" if sleeps is None else f"preStop sleeps {sleeps} s"]


def done(trial: TrialReport, pods: Pods) -> str:
    """One or two sentences: what was done, under which load, and how the pod is built."""
    verb = trial.trigger.verb
    if verb == "none":
        return (
            f"Nothing was terminated{_load(trial, ', with {} open')}: this is a control, which "
            "shows what is seen when nothing happens."
        )
    targets = pods.of_role(TARGET)
    shown = _targets(trial, [pods.label(uid) for uid in targets])
    text = _DONE.get(verb, "{pods} {was} terminated by {verb}").format(
        verb=verb, pods=shown, was="was" if len(targets) == 1 else "were"
    )
    it = "it" if len(targets) == 1 else "them"
    load = _load(trial, f" while {{}} talked to {it}")
    first = f"{text[:1].upper()}{text[1:]}{load}; times count from then."
    return f"{first} {_told(trial)}".rstrip()


def many(labels: Sequence[str]) -> str:
    """``pod A``, ``pod A and pod B``, ``4 pods``."""
    if len(labels) > 3:
        return f"{len(labels)} pods"
    return " and ".join([", ".join(labels[:-1]), labels[-1]] if len(labels) > 1 else labels)


def _targets(trial: TrialReport, labels: Sequence[str]) -> str:
    """Pods, and which part of the workload they are, where that is known."""
    shown = many(labels) if labels else "its pod"
    attached = trial.config.get("attached")
    if isinstance(attached, Mapping):
        return f"{shown} of {_known(attached, 'workload')} in {_known(attached, 'namespace')}"
    replicas = trial.config.get("replicas")
    if replicas == len(labels):
        return f"{shown} (the only one)" if replicas == 1 else f"{shown} (all of them)"
    return f"{shown} (of {replicas})" if isinstance(replicas, int) else shown


def _load(trial: TrialReport, words: str) -> str:
    """What was held open meanwhile, in these words; nothing where nothing was."""
    summary = trial.summary
    counts = [
        f"{found.total:,} {what}{'' if found.total == 1 else 's'}"
        for found, what in ((summary.tcp, "TCP connection"), (summary.udp, "UDP flow"))
        if found.total
    ]
    if trial.requests is not None:
        counts.append("HTTP clients")
    return words.format(many(counts)) if counts else ""


def _told(trial: TrialReport) -> str:
    """When it was told to stop, and what it is built to do then."""
    behaves = _BEHAVES.get(str(trial.config.get("drain_behavior")))
    if isinstance(trial.config.get("attached"), Mapping) or behaves is None:
        return ""
    if trial.trigger.verb == "container-kill":
        return ""
    several = len(trial.trigger.targets) > 1
    sigterm = trial.summary.trigger_to_sigterm_ns
    keeps = trial.config.get("accept_on_drain", "close") != "close"
    text = behaves.format(
        accepts="go on accepting connections" if keeps else "take no new connections",
        drain=_number(trial.config.get("drain_max_seconds")),
        grace=_number(trial.config.get("grace_period_seconds")),
    )
    if sigterm is None or several:
        return f"When asked to stop (SIGTERM), {'each' if several else 'it'} is built {text}."
    return f"It was asked to stop (SIGTERM) {prose.at(sigterm)}. It is built {text}."


def _known(attached: Mapping[str, object], key: str) -> str:
    value = attached.get(key)
    return f"({key} not known)" if value is None else str(value)


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else "an unknown number of"
