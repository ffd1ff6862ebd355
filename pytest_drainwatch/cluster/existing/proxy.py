"""What kube-proxy's own ConfigMap says of it, as kubeadm writes it."""

from __future__ import annotations

import re

from pytest_drainwatch.api import Api
from pytest_drainwatch.cluster import PROXY_MODES

REQUEST_TIMEOUT_S = 10.0
# As Go writes durations.
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|h|m|s))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_MS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


def proxy_configuration(api: Api) -> tuple[str | None, int | None]:
    """kube-proxy's mode and minSyncPeriod (ms).

    None is what it leaves to kube-proxy, or does not say in a form that is known. The API
    client's errors pass.
    """
    import yaml

    found = api.core.read_namespaced_config_map(
        "kube-proxy", "kube-system", _request_timeout=REQUEST_TIMEOUT_S
    )
    try:
        settings = yaml.safe_load(found.data["config.conf"])
        mode = str(settings.get("mode") or "")
        section = settings.get(mode) or {}
        text = str(section.get("minSyncPeriod") or "0s")
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        return None, None
    if not mode:
        return None, None
    if mode not in PROXY_MODES or not _DURATION.fullmatch(text):
        return mode, None
    parts = _DURATION_PART.findall(text)
    # kube-proxy takes 0 for "not said".
    return mode, round(sum(float(n) * _UNIT_MS[u] for n, u in parts)) or PROXY_MODES[mode]
