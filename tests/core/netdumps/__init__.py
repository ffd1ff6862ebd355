"""What real nodes said: embedded clusters of Kubernetes 1.37, in either mode of kube-proxy.

two, one, zero: a NodePort Service with that many ready endpoints; draining: the last of
them terminates and fails readiness. local: externalTrafficPolicy Local and session affinity,
two terminating pods here and one ready endpoint elsewhere; gone: the two have ended.
"""

from __future__ import annotations

import re
from pathlib import Path


def dump(name: str) -> str:
    """What was said, whole."""
    return (Path(__file__).parent / f"{name}.txt").read_text()


def service_in(text: str) -> str:
    """The probe's Service in a dump, namespace/name."""
    found = re.search(r"\bdw-drain-delete-[0-9a-f]+/drainwatch-probe\b", text)
    assert found is not None
    return found[0]
