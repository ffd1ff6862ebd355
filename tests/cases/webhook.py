"""A real admission webhook: HTTPS in the test's own process, asked by the API server."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pytest_drainwatch.cluster.embedded.pki import Authority
from pytest_drainwatch.stage import Stage

# What the webhook makes of a request; None: it may go on as it is, else JSON patches.
Judge = Callable[[Mapping[str, Any]], list[dict[str, Any]] | None]
NAME = "drainwatch-test-webhook"


@contextmanager
def admission(
    stage: Stage, folder: Path, rule: Mapping[str, Any], judge: Judge, *, mutating: bool = False
) -> Iterator[None]:
    """The webhook, registered for requests in the trial's namespace for as long as the context."""
    address = stage.cluster.source_addresses[0]
    authority = Authority("webhook")
    pair = authority.server("webhook", (address,))
    (folder / "hook.crt").write_bytes(pair.certificate)
    (folder / "hook.key").write_bytes(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "hook.crt", folder / "hook.key")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            asked = json.loads(self.rfile.read(length))["request"]
            answer: dict[str, Any] = {"uid": asked["uid"], "allowed": True}
            patches = judge(asked)
            if patches is not None:
                patch = base64.b64encode(json.dumps(patches).encode()).decode()
                answer |= {"patchType": "JSONPatch", "patch": patch}
            review = {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": answer,
            }
            raw = json.dumps(review).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer((address, 0), Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        with _registered(stage, address, server.server_port, authority, rule, mutating=mutating):
            yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def _registered(
    stage: Stage,
    address: str,
    port: int,
    authority: Authority,
    rule: Mapping[str, Any],
    *,
    mutating: bool,
) -> Iterator[None]:
    import kubernetes

    api = kubernetes.client.AdmissionregistrationV1Api(stage.api.client)
    kind = "mutating" if mutating else "validating"
    hook = {
        "name": "hook.drainwatch.test",
        "clientConfig": {
            "url": f"https://{address}:{port}/",
            "caBundle": base64.b64encode(authority.certificate).decode(),
        },
        "rules": [{"apiVersions": ["v1"], "apiGroups": [""], "scope": "Namespaced", **rule}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
        "failurePolicy": "Fail",
    }
    name = f"{NAME}-{stage.namespace}"
    body = {"metadata": {"name": name}, "webhooks": [hook]}
    getattr(api, f"create_{kind}_webhook_configuration")(body)
    try:
        yield
    finally:
        getattr(api, f"delete_{kind}_webhook_configuration")(name)
