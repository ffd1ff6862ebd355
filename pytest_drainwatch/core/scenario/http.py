"""HTTP/1.1 requests that clients make while pods are terminated: how many, where to, how often."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario.values import ScenarioError, check_kind, check_within

METHODS = ("GET", "HEAD", "POST")
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
TARGET = re.compile(r"/[!-~]*")  # visible ASCII: what else a path holds is percent-encoded
VALUE = re.compile(r"[!-~]([ \t!-~]*[!-~])?")
MOST_LANES = 1000
# What a client sends itself, and what would change how a message ends.
OURS = frozenset({"host", "connection", "content-length", "transfer-encoding", "upgrade", "expect"})
# A value of these would stand in every recording.
SECRET = frozenset({"set-cookie", "cookie", "authorization", "www-authenticate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """HTTP/1.1 requests beside the trigger, each by a *lane*: a client of its own.

    A lane pools one connection, as HTTP clients do, and asks again on it:

    - ``keepalive`` lanes ask ``rate_hz`` times a second throughout;
    - ``idle`` lanes ask once, are silent, and ask again at some time within ``idle_within_ns``
      after the trigger, no two at once;
    - ``in_flight`` lanes ask for ``in_flight_path``, whose answer takes ``in_flight_ns``, so that
      the request is under way when the trigger is sent;
    - ``new`` lanes ask ``rate_hz`` times a second, each time over a new connection.

    A request is given up after ``timeout_ns`` (one in flight: and ``in_flight_ns``). Answers with
    another status than ``expect_status`` are failures. ``host`` is the Host header; None: address
    and port. Values of ``headers`` are sent, and never recorded or shown. ``identity_header``
    names the response header that tells which pod answered; its value is recorded.
    A ``POST`` has an empty body.
    """

    path: str = "/"
    method: str = "GET"
    host: str | None = None
    headers: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    expect_status: int = 200
    keepalive: int = 10
    idle: int = 10
    in_flight: int = 0
    new: int = 0
    rate_hz: int = 10
    idle_within_ns: int = 5 * NS_PER_S
    in_flight_path: str | None = None
    in_flight_ns: int = 10 * NS_PER_S
    timeout_ns: int = 5 * NS_PER_S
    identity_header: str | None = None

    def __post_init__(self) -> None:
        given: object = self.headers
        if isinstance(given, Mapping):
            given = given.items()
        try:
            pairs = tuple((name, value) for name, value in given)  # type: ignore[attr-defined]
        except (TypeError, ValueError):
            # Without the value: it may be a secret.
            raise ScenarioError(
                "http headers are not readable; expected a mapping or pairs of name and value"
            ) from None
        object.__setattr__(self, "headers", pairs)

    def __repr__(self) -> str:
        # Tests show it: without a query, and without values of headers.
        shown = (f"{name}={value!r}" for name, value in self.config().items() if value is not None)
        return f"Http({', '.join(shown)})"

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Names and values of ``headers``, however they were given."""
        assert isinstance(self.headers, tuple)
        return self.headers

    @property
    def lanes(self) -> int:
        """How many clients there are."""
        return self.keepalive + self.idle + self.in_flight + self.new

    def check(self) -> None:
        """Refuse values that cannot be, alone or together. Raises :class:`ScenarioError`."""
        for name, most in (
            ("keepalive", MOST_LANES),
            ("idle", MOST_LANES),
            ("in_flight", MOST_LANES),
            ("new", MOST_LANES),
        ):
            check_within(f"http {name}", getattr(self, name), 0, most)
        if not self.lanes:
            raise ScenarioError("http has no lane; expected keepalive, idle, in_flight or new")
        check_within("http rate_hz", self.rate_hz, 1, 1000)
        check_within("http expect_status", self.expect_status, 200, 599)
        check_within("http timeout_ns", self.timeout_ns, 100 * NS_PER_MS, 600 * NS_PER_S)
        check_within("http idle_within_ns", self.idle_within_ns, NS_PER_MS, 600 * NS_PER_S)
        check_within("http in_flight_ns", self.in_flight_ns, 100 * NS_PER_MS, 3600 * NS_PER_S)
        if self.method not in METHODS:
            raise ScenarioError(
                f"http method is {self.method!r}, expected one of: {', '.join(METHODS)}"
            )
        _check_target("path", self.path)
        if self.in_flight and self.in_flight_path is None:
            raise ScenarioError(
                "http in_flight asks for in_flight_path: a path whose answer takes about "
                f"{self.in_flight_ns / NS_PER_S:g} s (in_flight_ns)"
            )
        if self.in_flight_path is not None:
            _check_target("in_flight_path", self.in_flight_path)
        check_kind("http host", self.host, str, None)
        if self.host is not None and not VALUE.fullmatch(self.host):
            raise ScenarioError("http host is no value of a header; expected a name, as in a URL")
        self._check_headers()

    def config(self) -> dict[str, object]:
        """What shapes a trial: no query, which may be a token, and no value of a header."""
        slow = self.in_flight_path
        return {
            "path": self.path.partition("?")[0],
            "method": self.method,
            "host": self.host,
            "header_names": sorted({name for name, _ in self.pairs}),
            "expect_status": self.expect_status,
            "keepalive_lanes": self.keepalive,
            "idle_lanes": self.idle,
            "in_flight_lanes": self.in_flight,
            "new_lanes": self.new,
            "rate_hz": self.rate_hz,
            "idle_within_seconds": self.idle_within_ns / NS_PER_S if self.idle else None,
            "in_flight_path": None if slow is None else slow.partition("?")[0],
            "in_flight_seconds": self.in_flight_ns / NS_PER_S if self.in_flight else None,
            "timeout_seconds": self.timeout_ns / NS_PER_S,
            "identity_header": self.identity_header,
        }

    def _check_headers(self) -> None:
        for name, value in self.pairs:
            if not (isinstance(name, str) and TOKEN.fullmatch(name)):
                raise ScenarioError(f"http headers have the name {name!r}, which is none")
            if name.lower() in OURS:
                raise ScenarioError(
                    f"http headers have {name!r}, which the client sends itself; expected others "
                    "(a Host header is host=…)"
                )
            if not (isinstance(value, str) and (not value or VALUE.fullmatch(value))):
                raise ScenarioError(
                    f"the value of the http header {name!r} is none; expected visible ASCII, "
                    "without line breaks"
                )
        check_kind("http identity_header", self.identity_header, str, None)
        identity = self.identity_header
        if identity is not None and (not TOKEN.fullmatch(identity) or identity.lower() in SECRET):
            raise ScenarioError(
                f"http identity_header is {identity!r}; expected the name of a response header "
                "whose value may be recorded, such as X-Pod-Name"
            )


def _check_target(name: str, value: object) -> None:
    if not (isinstance(value, str) and TARGET.fullmatch(value)):
        raise ScenarioError(
            f"http {name} is {str(value).partition('?')[0]!r}, and a query if it has one; expected "
            "a path such as /healthz, percent-encoded"
        )
