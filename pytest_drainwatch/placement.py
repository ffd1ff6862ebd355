"""Where in a cluster a trial's objects go, and where its Service is reached: the user's word."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host by name or number, and a port if it is not the Service's own."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What the user says of it; None is what drainwatch does by itself.

    Attributes:
        namespace: an existing one to use and to leave; `None`: one is made and removed.
        pull_secrets: names of that namespace's Secrets by which images are pulled.
        address: where the Service answers, instead of what the cluster says.
    """

    namespace: str | None = None
    pull_secrets: tuple[str, ...] = ()
    address: Address | None = None
