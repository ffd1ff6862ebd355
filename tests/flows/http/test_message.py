"""Bytes in, facts out: what is kept of a response, and when a connection can serve again."""

from __future__ import annotations

import pytest

from pytest_drainwatch.core.scenario.http import Http
from pytest_drainwatch.flows.http.config import HttpConfig
from pytest_drainwatch.flows.http.message import MAX_IDENTITY, Exchanges, NotHttp, Response

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"


def exchanges(**http: object) -> Exchanges:
    asked = Http(**http)  # type: ignore[arg-type]
    found = Exchanges(HttpConfig.of(asked, address="192.0.2.1", port=80))
    found.request("/", close=False)
    return found


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (OK + b"\r\nok", Response(200, False, None, True)),
        (OK + b"Connection: close\r\n\r\nok", Response(200, True, None, False)),
        (OK + b"Connection: Keep-Alive, Close\r\n\r\nok", Response(200, True, None, False)),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            Response(204, False, None, True),
        ),
        (
            b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
            Response(503, False, None, True),
        ),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", Response(200, True, None, False)),
        # More than was asked for: nobody knows what the next bytes would answer.
        (OK + b"\r\nokHTTP/1.1 408 Late\r\n\r\n", Response(200, False, None, False)),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_whole_response(answer: bytes, expected: Response, *, at_once: bool) -> None:
    found, one = exchanges(), None
    if at_once:
        one = found.receive(answer)
    else:
        for number in range(len(answer)):
            one = found.receive(answer[number : number + 1]) or one
            if one is not None:
                break
    # Byte by byte the rest of what is too much has not come yet.
    assert one == expected or (not at_once and b"408" in answer and one is not None)


def test_a_response_without_length_ends_with_the_connection() -> None:
    found = exchanges()
    assert found.receive(b"HTTP/1.1 200 OK\r\n\r\nso much") is None
    assert found.receive(b" and more") is None
    assert found.receive(b"") == Response(200, False, None, False, by_fin=True)


@pytest.mark.parametrize("part", [b"", b"HTTP/1.1 20", OK, OK + b"\r\no"])
def test_a_fin_within_a_response_makes_none(part: bytes) -> None:
    found = exchanges()
    if part:
        assert found.receive(part) is None
    assert found.receive(b"") is None


@pytest.mark.parametrize("odd", [b"pong 1 2 3\n\r\n", b"\x16\x03\x01 what TLS says\r\n\r\n"])
def test_what_is_no_http(odd: bytes) -> None:
    with pytest.raises(NotHttp):
        exchanges().receive(odd)


def test_requests_follow_each_other_on_one_connection() -> None:
    found = exchanges()
    for _ in range(3):
        assert found.receive(OK + b"\r\nok") == Response(200, False, None, True)
        found.request("/", close=False)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (b"web-0", "web-0"),
        (b"x" * 500, "x" * MAX_IDENTITY),
        (b"a\x1b[2Jb", "a?[2Jb"),
        (b"caf\xe9", "caf?"),
    ],
)
def test_an_identity_is_kept_as_far_as_it_can_be_shown(value: bytes, kept: str) -> None:
    from pytest_drainwatch.flows.http.message import clean

    assert clean(value) == kept


def test_only_the_named_header_is_an_identity() -> None:
    found = exchanges(identity_header="x-pod")
    answer = found.receive(OK + b"X-POD: web-0\r\nSet-Cookie: secret\r\n\r\nok")
    assert answer is not None
    assert answer.identity == "web-0"
    assert "secret" not in repr(answer)


@pytest.mark.parametrize(
    ("http", "there"),
    [
        ({}, [b"GET /a?b HTTP/1.1\r\n", b"Host: 192.0.2.1:80\r\n", b"User-Agent: drainwatch\r\n"]),
        ({"host": "shop.example"}, [b"Host: shop.example\r\n"]),
        ({"method": "POST"}, [b"POST /a?b HTTP/1.1\r\n", b"Content-Length: 0\r\n"]),
        ({"headers": {"user-agent": "mine"}}, [b"user-agent: mine\r\n"]),
    ],
)
def test_a_request(http: dict[str, object], there: list[bytes]) -> None:
    asked = Http(**http)  # type: ignore[arg-type]
    sent = Exchanges(HttpConfig.of(asked, address="192.0.2.1", port=80)).request("/a?b", close=True)
    for line in [*there, b"Connection: close\r\n"]:
        assert line in sent
    assert sent.lower().count(b"user-agent") == 1


def test_an_address_of_ipv6_stands_in_brackets() -> None:
    config = HttpConfig.of(Http(), address="2001:db8::1", port=80)
    assert config.host == "[2001:db8::1]:80"
