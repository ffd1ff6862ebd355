"""One request and its response as bytes: h11's client, and what of it is kept.

Of a response only named facts leave this module: its status, whether it said
``Connection: close``, and the value of the identity header. Other headers and all of the body
may hold secrets.
"""

from __future__ import annotations

from dataclasses import dataclass

import h11

from pytest_drainwatch.flows.http.config import HttpConfig

MAX_HEAD = 65_536  # bytes of a response's head; servers that send more are none
MAX_IDENTITY = 120
USER_AGENT = "drainwatch"


@dataclass(frozen=True, slots=True)
class Response:
    """All of a response has been read.

    ``reusable``: the connection can carry another request; ``identity`` is None where the
    header was not there. ``by_fin``: it had no length, so nothing but a FIN could end it, and
    one that was cut looks the same (RFC 9112, section 8).
    """

    status: int
    said_close: bool
    identity: str | None
    reusable: bool
    by_fin: bool = False


class NotHttp(Exception):
    """What came is no HTTP/1.1."""


class Exchanges:
    """One connection's requests, one after the other."""

    def __init__(self, config: HttpConfig) -> None:
        self._config = config
        self._machine = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        self._head: h11.Response | None = None

    def request(self, path: str, *, close: bool) -> bytes:
        """A request to send; ``close``: ask for the end of the connection after it."""
        config, machine = self._config, self._machine
        headers = [("Host", config.host), *config.headers]
        names = {name.lower() for name, _ in config.headers}
        for name, value in (("User-Agent", USER_AGENT), ("Accept", "*/*")):
            if name.lower() not in names:
                headers.append((name, value))
        if config.method == "POST":
            headers.append(("Content-Length", "0"))
        if close:
            headers.append(("Connection", "close"))
        sent = machine.send(h11.Request(method=config.method, target=path, headers=headers))
        end = machine.send(h11.EndOfMessage())
        return (sent or b"") + (end or b"")

    def receive(self, data: bytes) -> Response | None:
        """Take bytes (empty: the peer's FIN); the response, once all of it is there.

        Raises :class:`NotHttp`. A FIN within a response is None: it never becomes whole.
        """
        machine = self._machine
        try:
            machine.receive_data(data)
            while True:
                event = machine.next_event()
                if isinstance(event, h11.Response):
                    self._head = event
                elif isinstance(event, h11.EndOfMessage):
                    return self._whole(over=not data)
                elif event in (h11.NEED_DATA, h11.PAUSED) or isinstance(
                    event, h11.ConnectionClosed
                ):
                    return None
        except h11.RemoteProtocolError as error:
            if not data:
                return None
            raise NotHttp from error

    def _whole(self, *, over: bool) -> Response:
        head, machine = self._head, self._machine
        assert head is not None
        self._head = None
        named = (self._config.identity_header or "").lower().encode()
        said = [
            token.strip().lower()
            for name, value in head.headers
            if name == b"connection"
            for token in value.split(b",")
        ]
        identity = next((value for name, value in head.headers if name == named), None)
        reusable = machine.our_state is h11.DONE and machine.their_state is h11.DONE
        if reusable:
            machine.start_next_cycle()
            reusable = not over and not machine.trailing_data[0]
        return Response(
            status=head.status_code,
            said_close=b"close" in said
            or (head.http_version < b"1.1" and b"keep-alive" not in said),
            identity=None if identity is None else clean(identity),
            reusable=reusable,
            by_fin=over,
        )


def clean(value: bytes) -> str:
    """A header's value as a recording may hold it: printable, and not long."""
    text = value.decode("latin-1").strip()[:MAX_IDENTITY]
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text)
