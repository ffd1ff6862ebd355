"""How an attempt to connect and to be served went, as its client saw it."""

from __future__ import annotations

from enum import StrEnum


class Result(StrEnum):
    """What an attempt ended with. The first seven are the workload's, the others ours."""

    ANSWERED = "answered"  # by the responder that the run names
    REFUSED = "refused"  # ECONNREFUSED: by a pod's kernel, or by kube-proxy's REJECT; without an
    #                      errno we met ourselves, for nobody listens there
    RESET = "reset"  # accepted, then an RST before the answer
    TIMEOUT = "timeout"  # neither accepted nor refused in time, or accepted by a second SYN only
    NEVER_SERVED = "accepted-never-served"  # accepted, then silence, or a FIN without an answer
    UNREACHABLE = "unreachable"  # an ICMP message said so, other than port unreachable
    FOREIGN = "foreign"  # answered by something that does not speak the probe's protocol
    CLIENT_LIMIT = "client-limit"  # our own ports, descriptors or memory ran out, or no route
    UNFINISHED = "unfinished"  # the prober stopped before it was known
