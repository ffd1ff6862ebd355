"""From a kubeconfig to a cluster: may it be used, does it answer, does it know us?

Nothing is created here. What cannot be had is said as a preflight check is: the invariant,
what was seen, what was expected, and the command that mends it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pytest_drainwatch.api import Api, ApiUnavailable, connect, explain, failures
from pytest_drainwatch.cluster import ClusterError, ClusterFacts, ClusterSettings, Tidy
from pytest_drainwatch.cluster.existing import nodes
from pytest_drainwatch.cluster.existing.cluster import ExistingCluster
from pytest_drainwatch.cluster.existing.credentials import expiry
from pytest_drainwatch.cluster.existing.production import refuse_production
from pytest_drainwatch.cluster.existing.proxy import REQUEST_TIMEOUT_S, proxy_configuration
from pytest_drainwatch.cluster.existing.unmet import unmet

UNAUTHORIZED, FORBIDDEN = 401, 403
ANONYMOUS = "system:anonymous"
KUBECONFIG = "the kubeconfig can be read, and names a context"

T = TypeVar("T")


class _Context(NamedTuple):
    """A kubeconfig's context by name, and the cluster that it names."""

    name: str
    cluster: str


def reach_existing(
    settings: ClusterSettings, *, why: str, tidy: Tidy | None = None
) -> ExistingCluster:
    """The cluster that *settings* name, once it has answered.

    Raises:
        ClusterError: the kubeconfig is missing or wrong, the context looks like production, the
            API server does not answer or does not know us, or no node has an internal address.
    """
    kubeconfig = settings.kubeconfig or default_kubeconfig()
    if not kubeconfig.is_file():
        raise unmet(
            "kubeconfig-usable",
            KUBECONFIG,
            f"there is no kubeconfig at {kubeconfig}",
            expected="a file",
            look_at="--dw-kubeconfig FILE names one; or let a cluster be started: "
            "--dw-cluster=embedded",
        )
    try:
        api = connect(kubeconfig, settings.context)
    except ApiUnavailable as error:
        raise unmet(
            "kubeconfig-usable",
            KUBECONFIG,
            error.problem,
            expected="a kubeconfig with that context, or with a current one",
            look_at=error.command,
        ) from error
    context = _context(kubeconfig, settings.context)
    server = str(api.client.configuration.host)
    names = {"context": context.name, "cluster": context.cluster, "server": server}
    refuse_production(names, context.name, settings.allow_context)
    name = context.name  # and not the file's: a path may say whose home it is
    flags = f"--kubeconfig {kubeconfig}"
    if settings.context:
        flags += f" --context {settings.context}"
    found = _nodes(api, name, flags)
    if tidy is not None and tidy(api):
        found = _nodes(api, name, flags)
    if found.seen is not None and found.first is None:
        raise unmet(
            "node-addresses",
            "the nodes tell where NodePorts answer",
            f"none of the {found.seen} nodes of cluster {name} has an InternalIP",
            expected="a node with one",
            look_at=f"kubectl {flags} get nodes -o wide",
        )
    return ExistingCluster(
        settings,
        kubeconfig,
        name=name,
        nodes=found,
        why=why,
        facts=_facts(api, found),
    )


def default_kubeconfig() -> Path:
    """Where kubectl looks first: the first file of KUBECONFIG, else ~/.kube/config."""
    first = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(first or "~/.kube/config").expanduser()


def _context(kubeconfig: Path, asked: str | None) -> _Context:
    """The context that is used. The client has read the file already, so it is one."""
    import yaml

    told = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    name = asked or str(told.get("current-context") or "")
    for each in told.get("contexts") or ():
        if each.get("name") == name:
            return _Context(name, str((each.get("context") or {}).get("cluster") or ""))
    return _Context(name, "")


def _nodes(api: Api, name: str, flags: str) -> nodes.Nodes:
    """The nodes; that they may not be listed is no error. Also the first word with the server."""
    try:
        found = api.core.list_node(_request_timeout=REQUEST_TIMEOUT_S)
    except failures() as error:
        status = getattr(error, "status", None)
        # Without credentials one is somebody too, who may do nothing.
        nobody = ANONYMOUS in explain(error)
        if status == FORBIDDEN and not nobody:
            return nodes.NOT_LISTED
        if status == UNAUTHORIZED or nobody:
            raise _unknown_to_it(api, name, flags, error) from error
        raise unmet(
            "api-server-answers",
            "the API server can be reached from here, and answers",
            f"cluster {name} can't be asked for its nodes: {explain(error)}",
            expected="a list of nodes, or the word that it may not be asked for",
            look_at=f"kubectl {flags} get nodes; the server's address in the kubeconfig",
        ) from error
    return nodes.read(found.items)


def _unknown_to_it(api: Api, name: str, flags: str, error: BaseException) -> ClusterError:
    told = expiry(next(iter(api.client.configuration.api_key.values()), ""))
    return unmet(
        "credentials-accepted",
        "the API server knows who asks: the kubeconfig's credentials are valid",
        f"cluster {name} answered {explain(error)}{f'; {told}' if told else ''}",
        expected="a token or certificate that is valid now",
        look_at=f"kubectl {flags} auth whoami; log in again, or for a ServiceAccount: "
        "kubectl create token NAME --duration 2h",
    )


def _facts(api: Api, found: nodes.Nodes) -> ClusterFacts:
    """What can be read of them: a trial that asks for nothing special needs none."""
    mode, period_ms = _read(lambda: proxy_configuration(api)) or (None, None)
    return ClusterFacts(
        provider=ExistingCluster.provider,
        kube_version=_read(lambda: _minor_version(api)),
        proxy_mode=mode,
        min_sync_period_ms=period_ms,
        nodes=found.taking,
    )


def _read(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except Exception:  # an odd answer is no answer
        return None


def _minor_version(api: Api) -> str | None:
    found: Any = api.version.get_code(_request_timeout=REQUEST_TIMEOUT_S)
    match = re.match(r"v(\d+\.\d+)\.", str(found.git_version))
    return match[1] if match else None
