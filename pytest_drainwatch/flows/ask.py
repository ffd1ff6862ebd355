"""One question over a new connection: who answers?

For a Service with session affinity: kube-proxy pins a client's address to a pod, and only
that pod can be the target of flows from there. As a program (`python -m
pytest_drainwatch.flows.ask ADDRESS PORT PROTO [SOURCE]`) it asks from wherever it is run,
inside a pod for example, and prints the UID.
"""

from __future__ import annotations

import socket
import sys
import time

from pytest_drainwatch.flows.protocol import LINE_LIMIT, Reply, parse_line, request

PATIENCE_S = 1.0
ATTEMPTS = 5
PAUSE_S = 0.2
SEQ = 1
PROTOS = ("tcp", "udp")
ANSWERED, NOBODY, USAGE = 0, 1, 2


class NobodyAnswered(Exception):
    """No pod answered; the text says what was asked and how it went."""


def who_answers(address: str, port: int, proto: str, source: str | None) -> str:
    """The UID of the pod that answers a new connection from ``source``.

    ``proto`` is "tcp" or "udp". A first attempt may fail while rules are being written, so
    there are a few. Raises :class:`NobodyAnswered`, and ValueError for another protocol.
    """
    if proto not in PROTOS:
        raise ValueError(f"proto is {proto!r}; expected {' or '.join(PROTOS)}")
    went = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_S)
        try:
            line = _ask(address, port, proto, source)
        except OSError as error:
            went = error.strerror or repr(error)
            continue
        frame = parse_line(line.rstrip(b"\n"))
        if isinstance(frame, Reply) and line.endswith(b"\n") and frame.seq == SEQ:
            return frame.responder.partition("/")[0]
        went = f"an answer that is none: {frame}"
    raise NobodyAnswered(
        f"{proto} {address} port {port} from {source or 'any address'}: {ATTEMPTS} attempts, the "
        f"last: {went}; expected a pod of the trial to answer. Look at: kubectl get endpointslices"
    )


def _ask(address: str, port: int, proto: str, source: str | None) -> bytes:
    kind = socket.SOCK_STREAM if proto == "tcp" else socket.SOCK_DGRAM
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as sock:
        sock.settimeout(PATIENCE_S)
        if source is not None:
            sock.bind((source, 0))
        sock.connect((address, port))
        sock.sendall(request(SEQ, introduce=True))
        line = b""
        while not line.endswith(b"\n") and len(line) <= LINE_LIMIT:
            more = sock.recv(LINE_LIMIT)
            if not more:
                break
            line += more
    return line


def main(arguments: list[str]) -> int:
    """Print who answers; 1 and a line on stderr if nobody does, 2 if it was asked wrongly."""
    match arguments:
        case [address, port, proto] | [address, port, proto, _] if (
            proto in PROTOS and port.isdecimal() and 0 < int(port) < 65536
        ):
            source = arguments[3] if len(arguments) == 4 else None
        case _:
            print(
                f"asked with {arguments}; expected ADDRESS PORT {'|'.join(PROTOS)} [SOURCE]: "
                "python -m pytest_drainwatch.flows.ask 127.0.0.1 7001 tcp",
                file=sys.stderr,
            )
            return USAGE
    try:
        print(who_answers(address, int(port), proto, source))
    except NobodyAnswered as error:
        print(error, file=sys.stderr)
        return NOBODY
    return ANSWERED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
