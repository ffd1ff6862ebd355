"""A scripted HTTP server on loopback for the real Kubernetes client to talk to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pytest_drainwatch.api import Api, connect


@dataclass
class Call:
    """One request as the server saw it."""

    method: str
    path: str
    body: Any


@dataclass
class Script:
    """What the server does: ``answer(handler, call)``; every call is kept."""

    answer: Callable[[BaseHTTPRequestHandler, Call], None]
    calls: list[Call] = field(default_factory=list)


def reply(
    handler: BaseHTTPRequestHandler,
    body: object,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> None:
    """A JSON answer."""
    raw = json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(raw)))
    handler.end_headers()
    handler.wfile.write(raw)


def stream(handler: BaseHTTPRequestHandler, chunks: Iterator[bytes]) -> None:
    """A chunked answer, as a watch is."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for chunk in chunks:
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        handler.wfile.flush()
    handler.wfile.write(b"0\r\n\r\n")


@contextmanager
def serving(
    answer: Callable[[BaseHTTPRequestHandler, Call], None], folder: Path
) -> Iterator[tuple[Api, Script]]:
    """An API connection to a server that answers as told."""
    script = Script(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length)
            call = Call(self.command, self.path, json.loads(raw) if raw else None)
            script.calls.append(call)
            try:
                script.answer(self, call)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_GET = do_POST = do_DELETE = do_PATCH = handle_any

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "users": [{"name": "u", "user": {}}],
                "clusters": [
                    {
                        "name": "c",
                        "cluster": {"server": f"http://127.0.0.1:{server.server_port}"},
                    }
                ],
            }
        )
    )
    try:
        yield connect(kubeconfig), script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
