"""Which pods are a workload's: those that its selector matches, and those that it has matched.

A webhook may take a pod's labels away while it ends (a graceful drain does, so that no Service
leads to it any more), and its end must stay in sight all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_drainwatch.workload.budgets import selects


class Followed:
    """Says of each pod whether it is one of them. For one thread."""

    def __init__(self, rule: Mapping[str, Any]) -> None:
        self._rule = rule
        self._known: set[str] = set()

    def __call__(self, pod: Mapping[str, Any]) -> bool:
        metadata = pod["metadata"]
        if metadata["uid"] in self._known:
            return True
        if not selects(self._rule, metadata.get("labels") or {}):
            return False
        self._known.add(metadata["uid"])
        return True


def rule_of(labels: str) -> dict[str, Any]:
    """A selector of equalities, as a query has it, in the form in which objects have theirs."""
    pairs = (each.replace("==", "=").partition("=") for each in labels.split(","))
    return {"matchLabels": {key: value for key, _, value in pairs}}
