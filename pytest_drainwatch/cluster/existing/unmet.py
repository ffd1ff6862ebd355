"""What must hold of somebody else's cluster and does not, said as a preflight check says it."""

from __future__ import annotations

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.preflight.check import Check


def unmet(name: str, invariant: str, observed: str, *, expected: str, look_at: str) -> ClusterError:
    """What a preflight check says that did not hold."""
    return ClusterError(
        str(
            Check(
                name=name,
                invariant=invariant,
                observed=observed,
                expected=expected,
                passed=False,
                look_at=look_at,
            )
        )
    )
