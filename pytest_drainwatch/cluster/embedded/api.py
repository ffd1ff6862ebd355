"""The least of a Kubernetes client: GET with a client certificate.

For start-up only, where a library that takes 0.4 s to import would cost a sixth of it.
"""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any


class ApiClient:
    """One kept connection to the API server; connects again when it broke."""

    def __init__(self, host: str, pki: Path, *, timeout_s: float = 2.0) -> None:
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._connection = http.client.HTTPSConnection(
            host, 6443, timeout=timeout_s, context=context
        )

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body; status 0 if the server did not answer."""
        try:
            self._connection.request("GET", path)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, b""

    def get_json(self, path: str) -> dict[str, Any] | None:
        """The object at *path*, or `None` if there is none or no answer."""
        status, body = self.get(path)
        if status != 200:
            return None
        parsed: dict[str, Any] = json.loads(body)
        return parsed

    def close(self) -> None:
        self._connection.close()
