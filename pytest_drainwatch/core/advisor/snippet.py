"""The recommended hook and grace period as the piece of manifest to write."""

from __future__ import annotations

import json
import re

from pytest_drainwatch.core.advisor.checks.hooks import SLEEP_SINCE
from pytest_drainwatch.core.advisor.hook import lasts
from pytest_drainwatch.core.advisor.subject import Container, Subject
from pytest_drainwatch.core.advisor.told import Told

# YAML reads these as something else than a text.
_NO_TEXT = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def snippet(
    subject: Subject, container: Container, told: Told, pre_stop_s: int, grace_s: int
) -> str | None:
    """What to paste; None where the workload's own hook does more than wait."""
    if container.pre_stop is not None and not lasts(container.pre_stop).exact:
        return None
    lines = ["spec:"]
    if subject.kind != "Pod":
        lines += ["  template:", "    spec:"]
    indent = "  " if subject.kind == "Pod" else "      "
    lines += [
        f"{indent}terminationGracePeriodSeconds: {grace_s}",
        f"{indent}containers:",
        f"{indent}  - name: {_yaml(container.name)}",
    ]
    minor = told.kubernetes_minor
    if pre_stop_s == 0:
        lines += [f"{indent}    lifecycle: {{}} # no preStop hook: nothing to wait for"]
    elif minor is not None and minor < SLEEP_SINCE:
        lines += [
            f"{indent}    lifecycle:",
            f"{indent}      preStop:",
            f"{indent}        exec:",
            f'{indent}          command: ["sleep", "{pre_stop_s}"] # the image must have sleep',
        ]
    else:
        lines += [
            f"{indent}    lifecycle:",
            f"{indent}      preStop:",
            f"{indent}        sleep:",
            f"{indent}          seconds: {pre_stop_s}",
        ]
    return "\n".join(lines) + "\n"


def _yaml(name: str) -> str:
    """A name as YAML reads it again."""
    plain = re.fullmatch(r"[a-z][a-z0-9-]*", name) and name not in _NO_TEXT
    return name if plain else json.dumps(name)
