"""A workload of the user's own: which one, behind which Service, and what is said to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Self

from pytest_drainwatch.core.scenario.app import Controller
from pytest_drainwatch.core.scenario.flows import Flows
from pytest_drainwatch.core.scenario.http import Http
from pytest_drainwatch.core.scenario.values import ScenarioError, check_kind, check_within

# What a request may hold for its own number, and the group of an answer that gives it back.
SEQ_PLACE, SEQ_GROUP = b"{seq}", "seq"
MOST_BYTES = 4096
KINDS = {
    "deployment": Controller.DEPLOYMENT,
    "deploy": Controller.DEPLOYMENT,
    "statefulset": Controller.STATEFUL_SET,
    "sts": Controller.STATEFUL_SET,
    "daemonset": Controller.DAEMON_SET,
    "ds": Controller.DAEMON_SET,
}
# Of the probe's ways a workload of the user's has none, or none that is known.
PROBE_ONLY = (
    "drain_behavior", "drain_max_seconds", "readiness_on_drain", "exit_now_reset", "pid1",
    "response_delay_ms", "accept_on_drain", "ready_after_seconds",
)  # fmt: skip
EXPECTED = "deployment/NAME, statefulset/NAME, daemonset/NAME or labels such as app=web"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL_VALUE = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_LABEL = re.compile(rf"([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9][-A-Za-z0-9_.]*=?={_LABEL_VALUE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcp:
    """Plain TCP: connections that are opened and held.

    With ``send`` a request goes out at the flows' rate, and each match of the regular
    expression ``expect`` in what comes back answers one of them, in their order; without
    ``expect`` whatever comes back answers all that were sent. Without ``send`` nothing is said:
    keepalives alone show that the peer's kernel still holds the connection. A text stands for
    its UTF-8 bytes. Neither is recorded or shown: a request may carry a password.
    """

    send: bytes | str | None = field(default=None, repr=False)
    expect: bytes | str | None = field(default=None, repr=False)

    name = "tcp"

    def check(self) -> None:
        """Refuse what cannot be. Raises :class:`ScenarioError`."""
        _check_exchange(self.name, self.send, self.expect)

    def config(self) -> dict[str, object]:
        """As it stands in a report: whether anything is said, never what."""
        return {"sends": self.send is not None, "expects": self.expect is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Udp:
    """Plain UDP: datagrams of ``send`` at the flows' rate, and what comes back.

    ``{seq}`` in ``send`` becomes the request's number; a group ``(?P<seq>\\d+)`` of ``expect``
    then says which one is answered. Without it an answer counts for the latest request.
    """

    send: bytes | str | None = field(default=None, repr=False)
    expect: bytes | str | None = field(default=None, repr=False)

    name = "udp"

    def check(self) -> None:
        """Refuse what cannot be. Raises :class:`ScenarioError`."""
        if self.send is None:
            raise ScenarioError(
                "udp has nothing to send: without a datagram there is no flow; expected "
                "Udp(send=…), or --dw-attach-send"
            )
        _check_exchange(self.name, self.send, self.expect)

    def config(self) -> dict[str, object]:
        """As it stands in a report."""
        return {"sends": True, "expects": self.expect is not None}


Protocol = Tcp | Udp | Http
PROTOCOLS: dict[str, type[Tcp] | type[Udp] | type[Http]] = {"tcp": Tcp, "udp": Udp, "http": Http}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Pods that are there already, and the Service through which they are reached.

    ``kind`` and ``name`` are their controller's; ``labels`` select them where it is not named.
    ``port`` is the Service's, by number or name; None: its only one. ``service`` is needed
    where several select the pods.
    """

    kind: Controller | None = None
    name: str = ""
    labels: str = ""
    namespace: str = "default"
    port: int | str | None = None
    protocol: Protocol = field(default_factory=Tcp)
    service: str | None = None

    @classmethod
    def attach(
        cls,
        what: str,
        *,
        namespace: str = "default",
        port: int | str | None = None,
        protocol: str | Protocol = "tcp",
        service: str | None = None,
    ) -> Self:
        """``what`` is ``deployment/NAME``, ``statefulset/NAME``, ``daemonset/NAME`` or labels.

        Raises :class:`ScenarioError` if that cannot be meant.
        """
        if isinstance(protocol, str):
            protocol = named_protocol(protocol)
        common = {"namespace": namespace, "port": port, "protocol": protocol, "service": service}
        check_kind("workload", what, str)
        kind, slash, name = what.partition("/")
        if slash and "=" not in what and kind.lower() in KINDS:
            return cls(kind=KINDS[kind.lower()], name=name, **common)  # type: ignore[arg-type]
        return cls(labels=what, **common)  # type: ignore[arg-type]

    @property
    def what(self) -> str:
        """As a person names it."""
        return f"{self.kind}/{self.name}" if self.kind else self.labels

    @property
    def slug(self) -> str:
        """A word for names of scenarios: whom, and by which protocol."""
        named = self.name or "-".join(each.partition("=")[2] for each in self.labels.split(","))
        word = re.sub(r"[^a-z0-9]+", "-", named.lower()).strip("-") or "attached"
        return f"{word}-{self.spoken}"

    @property
    def http(self) -> Http | None:
        """What is asked over HTTP; None: another protocol."""
        return self.protocol if isinstance(self.protocol, Http) else None

    @property
    def spoken(self) -> str:
        """The protocol's name: ``tcp``, ``udp`` or ``http``."""
        return "http" if self.http is not None else self.transport

    @property
    def transport(self) -> str:
        """``tcp`` or ``udp``."""
        return "udp" if isinstance(self.protocol, Udp) else "tcp"

    def narrowed(self, flows: Flows) -> Flows:
        """Those of the flows that this protocol has; requests over HTTP are no flows."""
        if self.http is not None:
            return replace(
                flows, tcp=0, udp=0, udp_one_way=0,
                probe_interval_ns=None, udp_probe_interval_ns=None, probe_each_node=False,
            )  # fmt: skip
        if self.transport == "udp":
            return replace(
                flows, tcp=0, udp_one_way=0, probe_interval_ns=None, probe_each_node=False
            )
        return replace(flows, udp=0, udp_one_way=0, udp_probe_interval_ns=None)

    def check(self) -> None:
        """Refuse values that cannot be. Raises :class:`ScenarioError`."""
        by_name = self.kind is not None and _NAME.fullmatch(self.name)
        by_label = self.kind is None and self.labels
        if by_label and not all(_LABEL.fullmatch(each) for each in self.labels.split(",")):
            by_label = ""
        if not by_name and not by_label:
            raise ScenarioError(f"workload is {self.what!r}, expected {EXPECTED}")
        if not _NAME.fullmatch(self.namespace):
            raise ScenarioError(f"namespace is {self.namespace!r}, expected a namespace's name")
        check_kind("port", self.port, int, str, None)
        if isinstance(self.port, int):
            check_within("port", self.port, 1, 65535)
        check_kind("service", self.service, str, None)
        check_kind("protocol", self.protocol, Tcp, Udp, Http)
        self.protocol.check()

    def config(self) -> dict[str, object]:
        """As it stands in a report."""
        return {
            "workload": self.what,
            "namespace": self.namespace,
            "service": self.service,
            "port": self.port,
            "protocol": self.spoken,
            **self.protocol.config(),
        }


def named_protocol(
    text: str, *, send: bytes | str | None = None, expect: bytes | str | None = None
) -> Protocol:
    """The protocol that a text names: ``tcp``, ``udp``, ``http`` or ``http:/path``."""
    name, _, path = text.partition(":")
    if name not in PROTOCOLS or (path and name != "http"):
        # Its first word and no more: a URL may hold a password or a token.
        shown = re.sub(r"(?s)[^A-Za-z0-9_-].*", "…", text)
        raise ScenarioError(
            f"protocol is {shown!r}, expected one of: {', '.join(PROTOCOLS)}, http:/path"
        )
    if name == "http":
        if send is not None or expect is not None:
            raise ScenarioError("http says what it sends itself; expected no send and no expect")
        return Http(path=path or "/")
    return (Udp if name == "udp" else Tcp)(send=send, expect=expect)


def as_bytes(text: bytes | str | None) -> bytes | None:
    """What goes over the wire."""
    return text.encode() if isinstance(text, str) else text


def _check_exchange(name: str, send: object, expect: object) -> None:
    for field_name, value in (("send", send), ("expect", expect)):
        if value is not None and not isinstance(value, bytes | str):
            raise ScenarioError(f"{name} {field_name} is no text and no bytes; expected one")
        length = len(as_bytes(value) or b"")
        if value is not None and not 0 < length <= MOST_BYTES:
            raise ScenarioError(
                f"{name} {field_name} has {length} bytes; expected 1 to {MOST_BYTES}"
            )
    if expect is not None and send is None:
        raise ScenarioError(f"{name} expects an answer and sends nothing; expected send as well")
    if isinstance(expect, bytes | str):
        try:
            empty = re.compile(as_bytes(expect) or b"").match(b"") is not None
        except re.error as error:
            raise ScenarioError(f"{name} expect is no regular expression: {error.msg}") from None
        if empty:
            raise ScenarioError(
                f"{name} expect matches what is empty, so nothing would be awaited; expected more"
            )
