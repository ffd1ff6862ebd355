"""Why a cluster did not start or did not live: read from what its components left."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pytest_drainwatch.cluster.embedded import inotify
from pytest_drainwatch.cluster.embedded.layout import Layout

_TAIL_LINES = 10
_LINE_LENGTH = 300
# klog begins each line with its severity and the date.
_KLOG = re.compile(r"^[IWEF]\d{4} ")
_KLOG_GRAVE = re.compile(r"^[EF]\d{4} ")


def cause_of_death(layout: Layout) -> str:
    """What died, its last words, where its whole log is, what to do."""
    component, code = "node", None
    try:
        ended = json.loads(layout.ended.read_text())
        component, code = ended["component"], ended["code"]
    except (OSError, ValueError, KeyError):
        pass
    log = layout.log(component)
    outcome = {None: "ended"}.get(code, f"ended with exit code {code}")
    if isinstance(code, int) and code < 0:
        outcome = f"was killed by signal {-code}"
    return (
        f"{component} {outcome}. Its last lines:\n{tail(log)}\n"
        f"Expected it to run until the cluster is closed. Whole log: {log}."
        f"{_inotify(layout, component)} Check this machine: drainwatch doctor"
    )


def _inotify(layout: Layout, component: str) -> str:
    """What its last words do not tell: that it, or containerd before it, got no instance."""
    for name in (component, "containerd"):
        try:
            log = layout.log(name).read_text(errors="replace")
        except OSError:
            continue
        if re.search(r"(fs|i)notify.*too many open files", log):
            return (
                " The host is out of inotify instances, of which a cluster takes"
                f" {inotify.cluster()}: end others (drainwatch cluster list), or: {inotify.REMEDY}."
            )
    return ""


def progress(layout: Layout, name: str, node: dict[str, object] | None, readyz: str) -> str:
    """How far the node *name* got, which did not become Ready in time."""
    condition = next(
        (
            f"node {name} says: {entry.get('reason')}: {entry.get('message')}"
            for entry in conditions(node)
            if entry.get("type") == "Ready"
        ),
        f"node {name} has not registered",
    )
    failing = [line for line in readyz.splitlines() if line.startswith("[-]")]
    answers = "; ".join(failing) or ("the API server is ready" if readyz else "it does not answer")
    return (
        f"{condition}. API server: {answers}. Start-up so far:\n{tail(layout.log('node'))}\n"
        f"Expected Ready within the time; a busy machine may need longer. Logs: {layout.logs}/"
    )


def tail(log: Path) -> str:
    """The last lines of *log*, the grave ones first where there are any."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return "  (no log)"
    if any(_KLOG.match(line) for line in lines):
        # What killed a component is an error, or a plain line such as a usage text.
        lines = [
            line for line in lines if _KLOG_GRAVE.match(line) or not _KLOG.match(line)
        ] or lines
    return "\n".join(f"  {line[:_LINE_LENGTH]}" for line in lines[-_TAIL_LINES:]) or "  (empty)"


def conditions(node: dict[str, object] | None) -> list[dict[str, object]]:
    status = (node or {}).get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return conditions if isinstance(conditions, list) else []
