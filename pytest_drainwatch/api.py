"""The connection to an API server: certificates verified, nothing ever retried.

A client that repeats a DELETE on its own fakes the time of the trigger, so
retries are off for every call.
"""

from __future__ import annotations

import json
import logging
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A call that hangs longer than this is a dead API server, not a slow one.
REQUEST_TIMEOUT = (5.0, 30.0)


class ApiUnavailable(Exception):
    """The kubeconfig leads to no API server; ``problem`` is why, ``command`` shows what it has."""

    def __init__(self, problem: str, command: str) -> None:
        super().__init__(
            f"{problem}; expected a readable kubeconfig with that context. Try: {command}"
        )
        self.problem, self.command = problem, command


@dataclass(frozen=True, slots=True)
class Api:
    """The typed clients that a trial needs, over one connection pool."""

    client: Any
    core: Any
    apps: Any
    discovery: Any
    version: Any
    policy: Any

    def close(self) -> None:
        """Close the idle connections; calls that still hang keep theirs to their timeout."""
        self.client.rest_client.pool_manager.clear()


def connect(kubeconfig: Path, context: str | None = None) -> Api:
    """Clients for a kubeconfig's cluster. Raises :class:`ApiUnavailable` on a bad file."""
    import kubernetes
    import yaml
    from kubernetes.config import ConfigException

    configuration = kubernetes.client.Configuration()
    try:
        kubernetes.config.load_kube_config(
            config_file=str(kubeconfig),
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except (
        *(ConfigException, yaml.YAMLError),
        *(OSError, ValueError, KeyError, TypeError, AttributeError),
    ) as error:
        raise ApiUnavailable(
            f"kubeconfig {kubeconfig}{f' (context {context})' if context else ''} cannot be used: "
            f"{error}",
            f"kubectl --kubeconfig {kubeconfig} config get-contexts",
        ) from error
    configuration.retries = False
    # The pool's own warnings would end up in the user's test output.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    client = kubernetes.client.ApiClient(configuration=configuration)
    return Api(
        client=client,
        core=kubernetes.client.CoreV1Api(client),
        apps=kubernetes.client.AppsV1Api(client),
        discovery=kubernetes.client.DiscoveryV1Api(client),
        version=kubernetes.client.VersionApi(client),
        policy=kubernetes.client.PolicyV1Api(client),
    )


def failures() -> tuple[type[BaseException], ...]:
    """What a call raises when the API server refuses it, is not there, or answers oddly.

    An answer that is no JSON, or no such object, is as likely a proxy's as the server's.
    """
    from kubernetes.client.exceptions import ApiException
    from pydantic_core import ValidationError
    from urllib3.exceptions import HTTPError

    refused = (ApiException, HTTPError, ConnectionError, TimeoutError, ssl.SSLError)
    return (*refused, ValidationError, json.JSONDecodeError)


def explain(error: BaseException) -> str:
    """An API failure in one line: status, the server's message and its causes.

    The causes name what stands in the way, a disruption budget for example.
    """
    status = getattr(error, "status", None)
    if not status:  # 0 stands for an answer that could not be read
        return _one_line(error)
    message, causes = getattr(error, "reason", ""), []
    with suppress(ValueError, AttributeError, TypeError):
        answer = json.loads(getattr(error, "body", "") or "{}")
        message = answer.get("message") or message
        causes = [str(c.get("message")) for c in (answer.get("details") or {}).get("causes") or ()]
    return " ".join([f"HTTP {status}: {message}", *(f"({cause})" for cause in causes)])


def _one_line(error: BaseException) -> str:
    name = type(error).__name__
    with suppress(AttributeError, TypeError):
        # pydantic's own text quotes what the server sent, which may be a secret.
        odd = error.errors(include_url=False, include_input=False)  # type: ignore[attr-defined]
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in odd[:3])
        return f"{name}: an odd answer, {error.title}: {wrong}"  # type: ignore[attr-defined]
    text = str(getattr(error, "reason", None) or error)
    return f"{name}: {' '.join(text.split())}"
