"""What cannot be read is None with a warning that says why, however odd the answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_drainwatch import environment
from pytest_drainwatch.api import Api, explain, failures
from pytest_drainwatch.cluster import Cluster
from tests.conductor.api_server import Call, reply, serving


@dataclass
class Anywhere:
    """A cluster that knows nothing by itself."""

    provider: str = "existing"
    why: str = "asked for"
    node_address: str = "127.0.0.1"
    deviations: list[str] = field(default_factory=list)

    def facts(self) -> Any:
        return SimpleNamespace(proxy_mode=None, min_sync_period_ms=None, deviations=())


def gathered(folder: Path, raw: bytes, content_type: str, status: int = 200) -> dict[str, object]:
    def answer(handler: BaseHTTPRequestHandler, _: Call) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Content-Length", str(len(raw)))
        handler.end_headers()
        handler.wfile.write(raw)

    with serving(answer, folder) as (api, _):
        return environment.gather(api, cast(Cluster, Anywhere()), "image")


@pytest.mark.parametrize(
    ("raw", "content_type", "status"),
    [
        (b"<html>Sign in</html>", "text/html", 200),
        (b"<html>Sign in</html>", "application/json", 200),
        (b"\x00\xff", "application/octet-stream", 200),
        (b"[]", "application/json", 200),
        (b"{}", "application/json", 200),
        (b"null", "application/json", 200),
        (b"", "application/json", 200),
        (
            b'{"items": [{"metadata": {}}], "data": {"config.conf": "text"}}',
            "application/json",
            200,
        ),
        (json.dumps({"message": "who are you?"}).encode(), "application/json", 401),
    ],
)
def test_an_odd_answer_is_a_warning_and_no_crash(
    raw: bytes, content_type: str, status: int, tmp_path: Path
) -> None:
    facts = gathered(tmp_path, raw, content_type, status)
    assert facts["kubernetes_version"] is None
    warnings = facts["warnings"]
    assert isinstance(warnings, list)
    (told,) = [w for w in warnings if w.startswith("the Kubernetes version could not be read: ")]
    assert "\n" not in told
    assert told.rstrip() != "the Kubernetes version could not be read:"
    if status == 401:
        assert told.endswith("HTTP 401: who are you?")


def test_an_odd_answer_is_among_the_failures_and_is_explained_without_quoting_it(
    tmp_path: Path,
) -> None:
    """kubernetes 37 validates: an Event about nothing is a pydantic error."""

    def answer(handler: BaseHTTPRequestHandler, _: Call) -> None:
        reply(handler, {"items": [{"metadata": {"name": "s3cret"}, "reason": "s3cret"}]})

    with serving(answer, tmp_path) as (api, _), pytest.raises(failures()) as caught:
        api.core.list_namespaced_event("ns")
    said = explain(caught.value)
    assert "odd answer" in said
    assert "involved" in said
    assert "s3cret" not in said
    assert "\n" not in said


@pytest.mark.parametrize("content_type", ["application/json", "text/html"])
def test_no_answer_of_a_proxy_escapes_the_failures(content_type: str, tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler, _: Call) -> None:
        raw = b"<html>Sign in</html>"
        handler.send_response(200)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Content-Length", str(len(raw)))
        handler.end_headers()
        handler.wfile.write(raw)

    def version(api: Api) -> object:
        return api.version.get_code()

    with serving(answer, tmp_path) as (api, _), pytest.raises(failures()):
        version(api)


@pytest.mark.parametrize(("said", "workers"), [("8", 8), ("", 1), ("0", 1), ("many", 1)])
def test_xdist_workers_are_counted(
    monkeypatch: pytest.MonkeyPatch, said: str, workers: int
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", said)
    assert environment.xdist_workers() == workers
