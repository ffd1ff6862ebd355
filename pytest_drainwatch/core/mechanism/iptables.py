"""kube-proxy's rules as ``iptables-save`` lists them.

A rule names its Service in a comment. It jumps to chains of the Service (KUBE-EXT, -SVC,
-SVL, -SEP), whose own rules may have no comment; with no endpoint it ends in REJECT or
DROP, in chains that only new connections pass (``--ctstate NEW``).
"""

from __future__ import annotations

import re

from pytest_drainwatch.core.mechanism.step import Step

_CHAIN = re.compile(r"^-A (KUBE-\S+)")
_JUMP = re.compile(r" -[jg] (KUBE-(?:EXT|SVC|SVL|SEP)-\S+)")
_ENTRANCES = frozenset({"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES"})
_PORT = re.compile(r" -p (tcp|udp)\b.* --dport (\d{1,5})\b")
_SERVED = re.compile(r" --to-destination (?:\[([^\]\s]+)\]|([^\s:]+)):\d+")
_END = re.compile(r" -j (REJECT|DROP)\b")
# What only pods and the node itself meet: a way around externalTrafficPolicy Local.
_INSIDE = re.compile(r"(?<! !) -s | --src-type LOCAL")


def lines_about(listing: str, service: str) -> list[str]:
    """The rules that name ``service``, and those of the chains that they lead to."""
    names = re.compile(rf'[" ]{re.escape(service)}(?=[:" ])')
    rules = [line for line in listing.splitlines() if _CHAIN.match(line)]
    kept = {line for line in rules if names.search(line)}
    chains: set[str] = set()
    while found := {jump for line in kept for jump in _JUMP.findall(line)} - chains:
        chains |= found
        kept |= {line for line in rules if (m := _CHAIN.match(line)) and m[1] in chains}
    return [line for line in rules if line in kept]


def step(line: str) -> Step | None:
    """What a rule does; None for one that is none, or that nobody from outside meets."""
    chain = _CHAIN.match(line)
    if chain is None or _INSIDE.search(line):
        return None
    port = _PORT.search(line) if chain[1] in _ENTRANCES else None
    end = _END.search(line)
    return Step(
        chain=chain[1],
        entrance=(port[1], int(port[2])) if port else None,
        jumps=tuple(_JUMP.findall(line)),
        serves=tuple(six or four for six, four in _SERVED.findall(line)),
        rejects=end is not None and end[1] == "REJECT",
        drops=end is not None and end[1] == "DROP",
    )
