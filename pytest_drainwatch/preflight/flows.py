"""Checks of the client's side: limits, flows, and new connections."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Mapping
from typing import Protocol

from pytest_drainwatch.core.jsonvalue import integer, objects
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.scenario import Flows
from pytest_drainwatch.flows.limits import port_range
from pytest_drainwatch.preflight.check import Check

MIN_UDP_ANSWERS = 60
DESCRIPTOR_RESERVE = 64


def limits_suffice(flows: int, attempts: int = 0) -> Check:
    """Descriptors and source ports for every flow, and for the ``attempts`` to open a new
    connection that may wait for their results at once.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    sockets = flows + attempts
    needed = sockets + DESCRIPTOR_RESERVE
    found = port_range()
    ports = None if found is None else found[1] - found[0] + 1
    short = []
    if hard != resource.RLIM_INFINITY and hard < needed:
        short.append(f"hard limit of open files is {hard}")
    if ports is not None and ports < sockets:
        short.append(f"{ports} source ports (net.ipv4.ip_local_port_range)")
    return Check(
        name="client-limits-suffice",
        invariant="this machine can hold the flows that were asked for, and try new connections",
        expected=f"{needed} descriptors and {sockets} source ports",
        observed="; ".join(short) or "enough of both",
        passed=not short,
        hopeless=bool(short),
        look_at="ulimit -Hn; sysctl net.ipv4.ip_local_port_range; fewer --dw-tcp-flows, or a "
        "longer --dw-probe-interval",
    )


class ProtoCounts(Protocol):
    """What the flow checks need to know of one transport.

    How many flows are *wanted* is never taken from here: an agent that has not
    said anything yet wants none, and would pass every check.
    """

    @property
    def dialled(self) -> int: ...
    @property
    def answered(self) -> int: ...
    @property
    def on_target(self) -> int: ...
    @property
    def min_answers(self) -> int: ...


PATH = "the Service's node ports; kube-proxy's log; the probe's log; the pod's IP from the node"


def flows_dialled(wanted: Flows, tcp: ProtoCounts, udp: ProtoCounts, error: str | None) -> Check:
    """As many flows as asked for exist, and lead to the target."""
    return Check(
        name="flows-dialled",
        invariant="every flow is connected and, once answered, answered by the target",
        expected=f"{wanted.tcp} tcp and {wanted.udp} udp flows on the target",
        observed=error
        or f"on the target: {tcp.on_target} tcp, {udp.on_target} udp; "
        f"dialled: {tcp.dialled} tcp, {udp.dialled} udp",
        passed=error is None and tcp.on_target >= wanted.tcp and udp.on_target >= wanted.udp,
        hopeless=error is not None,
        look_at=PATH,
    )


def tcp_answered(wanted: Flows, tcp: ProtoCounts, error: str | None) -> Check:
    """A TCP flow that was never served measures nothing."""
    return Check(
        name="tcp-flows-answered",
        invariant="every TCP flow is answered over the path that is measured",
        expected=f"{wanted.tcp} of {wanted.tcp}",
        observed=error or f"{tcp.answered} of {tcp.dialled} dialled",
        passed=error is None and tcp.answered >= max(tcp.dialled, wanted.tcp),
        hopeless=error is not None,
        look_at=PATH,
    )


def udp_answered(wanted: Flows, udp: ProtoCounts, error: str | None) -> Check:
    """Some paths carry a few dozen datagrams and then stop: one answer proves nothing."""
    enough = wanted.udp == 0 or udp.min_answers >= MIN_UDP_ANSWERS
    return Check(
        name="udp-flows-answered",
        invariant=f"every UDP flow is answered at least {MIN_UDP_ANSWERS} times over the path "
        "that is measured",
        expected=f"{MIN_UDP_ANSWERS} answers on each of {wanted.udp} flows",
        observed=error
        or f"{udp.answered} of {udp.dialled} flows answered, the least often "
        f"{udp.min_answers} times",
        passed=error is None and udp.answered >= max(udp.dialled, wanted.udp) and enough,
        hopeless=error is not None,
        look_at=PATH + "; a port mapping that drops UDP",
    )


def one_way_received(wanted: Flows, seen: Iterable[Observation], error: str | None) -> Check:
    """Nobody answers a one-way flow: only a pod's log shows that it gets there."""
    rows = [r for o in seen if o.event is Event.UDP_RECEIVED for r in objects(o.data.get("flows"))]
    often = {str(row.get("flow")): integer(row.get("count")) for row in rows}
    enough = sum(1 for count in often.values() if count >= MIN_UDP_ANSWERS)
    return Check(
        name="one-way-flows-received",
        invariant=f"pods tell of at least {MIN_UDP_ANSWERS} datagrams of every one-way UDP flow",
        expected=f"{wanted.udp_one_way} flows received",
        observed=error or f"{enough} flows received so often, {len(often)} at all",
        passed=error is None and enough >= wanted.udp_one_way,
        hopeless=error is not None,
        look_at=PATH + "; the pods' logs: udp_received",
    )


def clock_identified(clocks: Iterable[str], error: str | None) -> Check:
    """Without the probe's clock its stamps could not be placed in time."""
    known = sorted(set(clocks))
    return Check(
        name="clock-identified",
        invariant="the probe names the clock that it stamps with (boot id and time namespace)",
        expected="a clock id",
        observed=error or ", ".join(known) or "none",
        passed=error is None and bool(known),
        hopeless=error is not None,
        look_at="the probe image's version; /proc/sys/kernel/random/boot_id in the pod",
    )


class ProberCounts(Protocol):
    """What the check of new connections needs to know of one prober."""

    @property
    def attempts(self) -> int: ...
    @property
    def answered(self) -> int: ...


def new_connections_answered(
    wanted: Flows, probers: Mapping[str, ProberCounts], error: str | None, nodes: int = 1
) -> Check:
    """A prober that nobody has ever answered would find every window open for ever.

    ``probers`` are the agent's counts, by subject. Only pods of this trial are behind its
    Service, so whoever answers in the probe's protocol is one. TCP is tried at so many
    ``nodes``: where externalTrafficPolicy is Local each of them needs a pod of its own.
    """
    intervals = {"tcp-new": wanted.probe_interval_ns, "udp-new": wanted.udp_probe_interval_ns}
    asked = [subject for subject, interval_ns in intervals.items() if interval_ns is not None]
    asked += [f"tcp-new-{number}" for number in range(2, nodes + 1)]
    told = {
        subject: f"{probers[subject].answered} of {probers[subject].attempts} attempts answered"
        if subject in probers
        else "not heard of"
        for subject in asked
    }
    answered = all(subject in probers and probers[subject].answered > 0 for subject in asked)
    return Check(
        name="new-connections-answered",
        invariant="some new connection of each prober is answered over the path that is measured",
        expected=f"an answer or more of each: {', '.join(asked) or 'no prober'}",
        observed=error
        or "; ".join(f"{subject}: {text}" for subject, text in told.items())
        or "no prober",
        passed=error is None and answered,
        hopeless=error is not None,
        look_at=PATH,
    )
