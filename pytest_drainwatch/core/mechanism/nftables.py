"""kube-proxy's rules as ``nft list table ip kube-proxy`` lists them.

Maps lead an address and port to a chain that is named after the Service; its rules lead to
the endpoints. With no endpoint the Service stands in a ``no-endpoint`` map instead, which
only new connections are looked up in (``ct state new``). Each line that is kept gets its
map or chain in front, since it says little without. A chain may be there that nothing
leads to any more: kube-proxy deletes it later.
"""

from __future__ import annotations

import re

from pytest_drainwatch.core.mechanism.step import Step

_BLOCK = re.compile(r"^\s*(map|chain) (\S+) \{")
_LINE = re.compile(r"^(map|chain) (\S+): (.*)$")
_ELEMENT = re.compile(
    r'^(?:\S+ \. )?(tcp|udp) \. (\d{1,5})(?: comment "[^"]*")? : (?:goto )?(\S+)$'
)
_MAPS = frozenset(
    {"service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports"}
)
_JUMP = re.compile(r"\b(?:goto|jump) ([^\s,]+)")
_DNAT = re.compile(r"\bdnat (?:ip6? )?to (.*)")
_SERVED = re.compile(r"(?:^|: )(?:\[([^\]\s]+)\]|([0-9a-f.:]+?))(?::| \. )\d+\b")
# What only pods and the node itself meet: a way around externalTrafficPolicy Local.
_INSIDE = re.compile(r"\bip6? saddr (?!@|!=)|\bfib saddr type local\b")


def lines_about(listing: str, service: str) -> list[str]:
    """The rules and map elements that name ``service``, and those of its chains."""
    names = re.compile(rf'(?:["\s]|-[0-9A-Z]{{8}}-){re.escape(service)}(?=[:"/\s])')
    found, block = [], ""
    for line in listing.splitlines():
        opened = _BLOCK.match(line)
        if opened:
            block = f"{opened[1]} {opened[2]}"
        elif line.strip() == "}":
            block = ""
        elif block.startswith("map"):
            element = line.strip().removeprefix("elements = {").strip(" ,}")
            if names.search(element):
                found.append(f"{block}: {element}")
        elif block.startswith("chain") and names.search(block):
            found.append(f"{block}: {line.strip()}")
    return found


def step(line: str) -> Step | None:
    """What a line does; None for one that is none, or that nobody from outside meets."""
    parts = _LINE.match(line)
    if parts is None:
        return None
    kind, chain, rule = parts.groups()
    if kind == "map":
        element = _ELEMENT.match(rule) if chain in _MAPS else None
        if element is None:
            return None
        proto, port, verdict = element.groups()
        ends = {"reject-chain", "drop"}
        return Step(
            chain=chain,
            entrance=(proto, int(port)),
            jumps=() if verdict in ends else (verdict,),
            rejects=verdict == "reject-chain",
            drops=verdict == "drop",
        )
    if _INSIDE.search(rule) and not _DNAT.search(rule):
        return None
    dnat = _DNAT.search(rule)
    return Step(
        chain=chain,
        jumps=tuple(_JUMP.findall(rule)),
        serves=tuple(six or four for six, four in _SERVED.findall(dnat[1])) if dnat else (),
    )
