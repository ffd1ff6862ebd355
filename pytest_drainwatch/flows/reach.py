"""One question: does anybody accept a TCP connection there?

As a program (`python -m pytest_drainwatch.flows.reach ADDRESS PORT [SOURCE]`) it asks from
wherever it is run, inside a pod for example. Nothing is sent.
"""

from __future__ import annotations

import errno
import socket
import sys

PATIENCE_S = 3.0
ACCEPTED, NOBODY, USAGE = 0, 1, 2


def problem(address: str, port: int, source: str | None) -> str | None:
    """Why no connection is accepted; None if one is."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(PATIENCE_S)
        try:
            if source is not None:
                sock.bind((source, 0))
            sock.connect((address, port))
        except TimeoutError:
            return f"no answer within {PATIENCE_S:g} s (ETIMEDOUT): packets are dropped on the way"
        except OSError as error:
            return f"{error.strerror or error} ({errno.errorcode.get(error.errno or 0, '?')})"
    return None


def main(arguments: list[str]) -> int:
    """Say what went wrong on stderr; 1 if nobody accepts, 2 if it was asked wrongly."""
    match arguments:
        case [address, port] | [address, port, _] if port.isdecimal() and 0 < int(port) < 65536:
            source = arguments[2] if len(arguments) == 3 else None
        case _:
            print(
                f"asked with {arguments}; expected ADDRESS PORT [SOURCE]: "
                "python -m pytest_drainwatch.flows.reach 127.0.0.1 80",
                file=sys.stderr,
            )
            return USAGE
    told = problem(address, int(port), source)
    if told is not None:
        print(told, file=sys.stderr)
        return NOBODY
    return ACCEPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
