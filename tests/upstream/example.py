"""A small result set in the ancestor's format, written by hand, with no trial behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "upstream-results"
MATRIX = PUBLISHED / "2026-09-01-repeat5-kind-v1.34.0"
needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason=f"the ancestor's published results are not in {PUBLISHED}"
)
OLD, NEW = "probe-old", "probe-new"
FIN = "fin after drain announcement"
MOVED = f"answered by probe instance {NEW}, was {OLD}"
REFUSED = "econnrefused (icmp port unreachable)"
Json = dict[str, Any]


def flow(
    name: str,
    outcome: str,
    end: int | None,
    last: int | None,
    detail: str | None,
    *,
    connected: int | None = -900,
) -> Json:
    """One flow; ``end`` and ``last`` are t_terminal_ms and last_data_t_ms."""
    proto = name[:3]
    seq = {} if last is None else {f"last_{'heartbeat' if proto == 'tcp' else 'answered'}_seq": 7}
    return {
        "id": name,
        "proto": proto,
        "connected_t_ms": connected,
        "outcome": outcome,
        "t_terminal_ms": end,
        **seq,
        "last_data_t_ms": last,
        **({"detail": detail} if detail else {}),
    }


DRAINED = (
    flow("tcp-0001", "drained-clean-close", 5040, 5040, FIN),
    flow("tcp-0002", "drained-clean-close", 5043, 5043, FIN),
    flow("udp-0001", "severed", 2410, 1910, MOVED),
    flow("udp-0002", "severed", 2412, 1909, MOVED),
)


def report(
    trial: str = "trial-001",
    *,
    flows: Sequence[Json] = DRAINED,
    sigterm: int = 40,
    removed: int = 5300,
    config: Mapping[str, object] | None = None,
    environment: Mapping[str, object] | None = None,
    build: str = "abc1234",
) -> Json:
    """A report.json of one trial, consistent in itself."""
    build_facts = {"drainwatch_version": "0.1.0", "git_commit": build}
    node = {
        "name": "node-1",
        "container_runtime": "containerd://2.1.3",
        "kubelet_version": "v1.34.0",
        "os_image": "Debian GNU/Linux 12 (bookworm)",
        "architecture": "amd64",
    }
    seen = [
        (-2000, "orchestrator", "workload_applied", "image=probe:0.1.0"),
        (-1900, "k8s", "pod_observed", f"{OLD} phase=Pending"),
        (-1500, "probe", "probe_started", f"probe_version=0.1.0 instance={OLD} tcp=:7001"),
        (0, "orchestrator", "trigger_issued", f"trigger=delete target=ns/{OLD}"),
        (20, "k8s", "pod_observed", f"{NEW} phase=Pending"),
        (sigterm - 9, "k8s", "endpointslice_ready_false", f"Pod/{OLD} in s (terminating=true)"),
        (sigterm, "probe", "sigterm_received", "signal=terminated"),
        (removed - 6, "k8s", "container_terminated", "probe exitCode=0 reason=Completed signal=0"),
        (removed, "k8s", "endpointslice_endpoint_removed", f"Pod/{OLD} removed from s"),
        (40_000, "orchestrator", "observation_window_closed", "window=60s"),
    ]
    timeline = [
        {
            "t_ms": t_ms,
            "source": source,
            "event": event,
            "detail": detail,
            **({"approximate": True} if source == "probe" else {}),
        }
        for t_ms, source, event, detail in seen
    ]
    timeline += [
        {
            "t_ms": one["t_terminal_ms"],
            "source": "client",
            "event": "flow_terminal",
            "flow_id": one["id"],
            "detail": f"{one['outcome']}: {one.get('detail', '')}",
        }
        for one in flows
        if one["t_terminal_ms"] is not None
    ]
    timeline.sort(key=lambda entry: (entry["t_ms"], entry["source"], entry["event"]))
    return {
        **build_facts,
        "environment": {
            "kubernetes_version": "v1.34.0",
            "node_count": 1,
            "nodes": [node],
            "kube_proxy_mode": "iptables",
            "cni": "kindnet (identified by DaemonSet name; best effort)",
            **build_facts,
            "os": "linux",
            "arch": "amd64",
            "wall_clock_start": "2026-09-01T00:54:08.540736489Z",
            "warnings": [],
            **(environment or {}),
        },
        "trial": {
            "id": trial,
            "config": {
                "tcp_flows": 2,
                "udp_flows": 2,
                "grace_period_seconds": 30,
                "drain_behavior": "drain",
                "drain_max_seconds": 5,
                "trigger": "delete",
                "workload": "deploy",
                "namespace": "drainwatch",
                "target_host": "127.0.0.1",
                "tcp_port": 30071,
                "udp_port": 30072,
                "settle_seconds": 10,
                "observe_timeout_seconds": 60,
                "flow_timeout_seconds": 10,
                "udp_silence_datagrams": 6,
                **(config or {}),
            },
            "timeline": timeline,
            "flows": [dict(one) for one in flows],
            "summary": {
                "tcp": _counts(flows, "tcp"),
                "udp": _counts(flows, "udp"),
                "sigterm_to_ready_false_ms": -9,
                "sigterm_to_last_flow_terminal_ms": None,
                "trigger_to_sigterm_ms": sigterm,
                "trigger_to_endpoint_removed_ms": removed,
                "trigger_to_container_terminated_ms": removed - 6,
                "notes": [],
            },
            "clock_note": "one clock",
            "probe_clock_offset_note": "another clock",
        },
    }


def _counts(flows: Sequence[Json], proto: str) -> Json:
    outcomes = [one["outcome"] for one in flows if one["proto"] == proto]
    return {
        "total": len(outcomes),
        "drained": outcomes.count("drained-clean-close"),
        "severed": outcomes.count("severed"),
        "read_timeout": outcomes.count("read-timeout"),
        "survived_window": outcomes.count("survived-observation-window"),
        "not_measured": outcomes.count("not-measured"),
    }


def write(folder: Path, document: Json) -> Path:
    """Write ``document`` as the report.json of its trial's folder."""
    path = folder / str(document["trial"]["id"]) / "report.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return path
