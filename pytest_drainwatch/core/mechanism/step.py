"""One rule of kube-proxy, whatever its mode: where it stands, and where it leads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A rule in ``chain``, reduced to what becomes of a connection from outside.

    ``entrance``: the transport and port of the Service for which it is the first rule.
    ``jumps`` are chains that it leads to, ``serves`` addresses of endpoints.
    """

    chain: str
    entrance: tuple[str, int] | None = None
    jumps: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()
    rejects: bool = False
    drops: bool = False
