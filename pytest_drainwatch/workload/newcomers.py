"""The logs of pods that came during a trial, read once, at its end.

They say what came of one-way flows, whose answers name nobody, and since when a
replacement has listened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, failures
from pytest_drainwatch.workload import manifests
from pytest_drainwatch.workload.logs import Record, parse_log_line


def record_logs(
    api: Api, namespace: str, pods: Mapping[str, str], followed: Iterable[str], record: Record
) -> None:
    """Record the logs of ``pods`` (UID -> name) that nobody followed.

    A pod whose log cannot be read tells nothing: where it may have received something,
    the report says that this is not known.
    """
    for uid in sorted(pods.keys() - set(followed)):
        try:
            response = api.core.read_namespaced_pod_log(
                pods[uid],
                namespace,
                container=manifests.CONTAINER,
                _preload_content=False,
                _request_timeout=REQUEST_TIMEOUT,
            )
            lines = response.data.decode("utf-8", "replace").splitlines()
        except failures():
            continue
        for line in lines:
            seen = parse_log_line(line, uid)
            if seen is not None:
                record(seen)
