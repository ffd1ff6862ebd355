"""Checks of where a trial's objects go, and of the way that leads to them."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_drainwatch.preflight.check import Check

ACTIVE = "Active"


def namespace_given(name: str, state: str, *, ends_it: bool) -> Check:
    """The namespace that was given can be used, and will be left.

    ``state`` is its phase, or why that is not known; ``ends_it``: the trigger deletes it.
    """
    kept = "" if not ends_it else ", and the trigger 'namespace-delete' would remove it"
    return Check(
        name="namespace-given",
        invariant="the namespace that was given is there, and outlives the trial",
        expected=f"{name} is {ACTIVE}, and no trigger that deletes it",
        observed=f"{name}: {state}{kept}",
        passed=state == ACTIVE and not ends_it,
        hopeless=True,
        look_at=f"kubectl create namespace {name}; or no --dw-namespace, and one is made for each "
        "trial",
    )


def address_known(address: str | None, problem: str | None, what: str, look_at: str) -> Check:
    """There is an address to connect to. ``problem`` is why it could not be asked for."""
    return Check(
        name="address-known",
        invariant="the address at which the Service answers outside of the cluster is known",
        expected=what,
        observed=address or problem or "none so far",
        passed=address is not None,
        look_at=f"{look_at}; --dw-address HOST says where it answers",
    )


def service_reachable(address: str, went: Sequence[str], *, ok: bool) -> Check:
    """Packets get from here to a pod and back: no firewall, no dead address between.

    ``went`` tells of each transport that was tried.
    """
    return Check(
        name="service-reachable",
        invariant="a new connection from here to the Service's address is answered by a pod",
        expected="an answer over each transport that the trial uses",
        observed="; ".join(went) or "nothing was to be tried",
        passed=ok,
        look_at=f"nc -vz {address.replace(':', ' ') if address.count(':') == 1 else address}; a "
        "firewall or security group between here and there (node ports are 30000-32767, TCP and "
        "UDP); --dw-address HOST for an address that leads there",
    )
