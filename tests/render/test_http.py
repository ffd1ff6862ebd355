"""HTTP requests as text: counts, bounds and times, and no line that claims more."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.http.ending import Ending, Over, Pool
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.render import http as shown
from pytest_drainwatch.render.terminal import new_connections, show
from tests.core import story as s
from tests.core.http.asked import Asked, Lane, end, http
from tests.core.story import OLD
from tests.core.tries import prober, tries

POD = f"pod-{OLD}"
SERVED = [Asked(ms=-5000, count=50, by=POD), Asked(ms=0, count=20, by=POD)]
FAILED = [
    *SERVED,
    Asked(ms=2000, ended=Ending.RST, errno="ECONNRESET", by=POD, took_ms=3),
    *(
        Asked(ms=2100 + 100 * n, ended=Ending.REFUSED, pool=Pool.EMPTY, errno="ECONNREFUSED")
        for n in range(5)
    ),
    Asked(ms=2600, count=100, pool=Pool.EMPTY, connection=9, by="pod-uid-new"),
]


def report(*lanes: Lane, also: Iterable[Observation] = ()) -> Report:
    return derive(s.recording([s.accepted()], s.cluster(), http(*lanes), also))


def lines(*lanes: Lane) -> list[str]:
    return shown.requests(report(*lanes).trial.requests)


def test_an_outage() -> None:
    ends = [end("keepalive-00", Over.RST, 2003, by=POD, outstanding=True)]
    text = "\n".join(lines(Lane(asked=FAILED, ends=ends)))
    assert "HTTP REQUESTS  (GET, expected status 200)" in text
    assert "126       6" in text
    assert "1.7–11 %" in text
    assert "120 served, 1 written-then-reset, 5 refused" in text
    assert "first failure at 2.00 s, last at 2.50 s: 6 of 6 failed" in text
    assert "the last served before was over at 1.90 s, the first served after at 2.60 s" in text
    assert "6 of 6 failed ones may be retried unasked, 0 may not" in text
    assert f"served by pod-uid-new 100, {POD} 20 (the last at 1.90 s)" in text
    assert "1 pooled connection(s) open at the trigger, of target pods: 1 severed" in text
    assert f"keepalive-00: written-then-reset (ECONNRESET, of {POD}) at 2.00 s" in text
    assert "keepalive-00: 5 x refused (ECONNREFUSED) at 2.10–2.51 s" in text


def test_none_failed() -> None:
    text = "\n".join(lines(Lane(asked=SERVED)))
    assert "below 14 %" in text
    assert "no request of 20 failed: that bounds the rate, and is no proof of none" in text


def test_who_served_at_last_is_not_taken_for_who_had_closed() -> None:
    again = Asked(ms=900, pool=Pool.FIN, connection=2, by="pod-uid-new")
    text = "\n".join(lines(Lane(name="idle-00", asked=[again])))
    assert "idle-00: closed-before-write (then served by pod-uid-new) at 900–902 ms" in text


def test_in_few_words() -> None:
    few = report(Lane(asked=FAILED), Lane(name="idle-00", asked=[Asked(ms=900)]))
    assert new_connections(few.trial) == "keepalive 6/126 failed; idle 0/1 failed (below 95 %)"
    both = report(Lane(asked=SERVED), also=prober(tries(0, 100)))
    assert new_connections(both.trial).startswith("0/100 failed")
    assert new_connections(both.trial).endswith("keepalive 0/20 failed (below 14 %)")
    early = report(Lane(asked=[Asked(ms=-5000, count=10)]))
    assert new_connections(early.trial) == "keepalive not measured"


def test_what_a_server_calls_itself_moves_no_cursor() -> None:
    odd = Lane(asked=[Asked(ms=0, count=5, by="a\x1b[2Jb")])
    text = show(report(odd))
    assert "\x1b" not in text
    assert "a?[2Jb 5" in text


def test_a_long_list_is_cut_and_says_so() -> None:
    lanes = [
        Lane(name=f"idle-{n:02d}", asked=[Asked(ms=100 + n, ended=Ending.RST)]) for n in range(20)
    ]
    text = lines(*lanes)
    assert sum("written-then-reset at" in line for line in text) == shown.NOT_SERVED_SHOWN
    assert any("… 8 more" in line for line in text)


def test_a_report_without_requests_has_no_part() -> None:
    assert shown.requests(None) == []
