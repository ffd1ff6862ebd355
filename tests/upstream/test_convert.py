"""The facts of the ancestor's flows, judged by our core."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.upstream.convert import ConversionError, Rejudged, rejudge
from pytest_drainwatch.upstream.document import Flow, UpstreamReport
from pytest_drainwatch.upstream.instants import udp_end, within
from pytest_drainwatch.upstream.reader import read_report
from pytest_drainwatch.upstream.repeat import instants
from tests.upstream import example
from tests.upstream.example import MOVED, REFUSED, Json, flow

_O, _M = Outcome, Mechanism
TCP, UDP = "tcp-0001", "udp-0001"


def judged(tmp_path: Path, *flows: Json) -> tuple[Rejudged, ...]:
    return rejudge(read_report(example.write(tmp_path, example.report(flows=flows))).trial)


@pytest.mark.parametrize(
    ("seen", "outcome", "mechanism"),
    [
        (flow(TCP, "drained-clean-close", 5040, 5040, example.FIN), _O.DRAINED, _M.ANNOUNCED_FIN),
        (
            flow(TCP, "severed", 5040, 4900, "eof-without-drain-announcement"),
            _O.SEVERED,
            _M.FIN_UNANNOUNCED,
        ),
        (flow(TCP, "severed", 45, -90, "econnreset"), _O.SEVERED, _M.RST),
        (flow(TCP, "severed", 45, -90, "epipe"), _O.SEVERED, _M.EPIPE),
        (flow(TCP, "severed", 45, -90, "ehostunreach"), _O.SEVERED, _M.UNREACHABLE),
        (flow(TCP, "read-timeout", 20_100, 10_000, "no data for 10s"), _O.READ_TIMEOUT, _M.SILENCE),
        (flow(TCP, "survived-observation-window", None, 39_900, None), _O.SURVIVED, _M.NONE),
        (flow(TCP, "not-measured", None, None, None, connected=None), _O.NOT_MEASURED, _M.NONE),
        (flow(UDP, "severed", 2410, 1910, MOVED), _O.SEVERED, _M.REHOMED),
        (flow(UDP, "severed", 2410, 1910, REFUSED), _O.SEVERED, _M.REFUSED),
        (flow(UDP, "severed", 2410, 1910, "enetunreach"), _O.SEVERED, _M.UNREACHABLE),
        (flow(UDP, "severed", 5210, 1910, "udp-silence-6-datagrams"), _O.SEVERED, _M.SILENCE),
    ],
)
def test_what_was_seen_decides_again(
    tmp_path: Path, seen: Json, outcome: Outcome, mechanism: Mechanism
) -> None:
    (verdict,) = judged(tmp_path, seen)
    assert (verdict.outcome, verdict.mechanism, verdict.agrees) == (outcome, mechanism, True)


def test_the_clients_own_deadline_severs_nothing(tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, flow(TCP, "severed", 27346, 27334, "write deadline exceeded"))
    assert (verdict.outcome, verdict.mechanism) == (_O.NOT_MEASURED, _M.CLIENT_STALL)
    assert verdict.end is None
    assert not verdict.agrees


def test_their_outcome_is_not_what_we_judge_by(tmp_path: Path) -> None:
    """A FIN that nobody announced is no clean close, whatever the report concluded."""
    wrong = flow(TCP, "drained-clean-close", 5040, 5040, "eof-without-drain-announcement")
    (verdict,) = judged(tmp_path, wrong)
    assert (verdict.outcome, verdict.mechanism) == (_O.SEVERED, _M.FIN_UNANNOUNCED)


def test_an_answer_from_no_pod_of_the_workload_is_foreign(tmp_path: Path) -> None:
    detail = f"answered by probe instance other-1, was {example.OLD}"
    (verdict,) = judged(tmp_path, flow(UDP, "severed", 2410, 1910, detail))
    assert verdict.mechanism is _M.FOREIGN_RESPONDER


def test_too_short_a_silence_is_not_judged(tmp_path: Path) -> None:
    """Silence of two datagrams is what they were asked to look for; to us it is chance."""
    (verdict,) = judged(tmp_path, flow(UDP, "severed", 2910, 1910, "udp-silence-2-datagrams"))
    assert verdict.outcome is _O.NOT_MEASURED


def test_words_that_are_not_known_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="tcp-0001 ended by 'write error: no route'"):
        judged(tmp_path, flow(TCP, "severed", 45, -90, "write error: no route"))


@pytest.mark.parametrize("detail", ["econnreset by peer", "epipes", "ehostunreachable"])
def test_a_word_that_only_begins_like_a_known_one_is_not_known(tmp_path: Path, detail: str) -> None:
    with pytest.raises(ConversionError, match=f"ended by '{detail}'"):
        judged(tmp_path, flow(TCP, "severed", 45, -90, detail))


def test_a_flow_without_an_end_survived_only_if_it_was_watched_to_the_end(tmp_path: Path) -> None:
    """Their client gave it up: that it saw no end does not say that there was none."""
    (verdict,) = judged(tmp_path, flow(TCP, "not-measured", None, 10_000, None))
    assert (verdict.outcome, verdict.mechanism) == (_O.NOT_MEASURED, _M.NONE)


def test_an_end_lies_between_the_last_ack_and_the_first_sign(tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, flow(UDP, "severed", 2410, 1910, MOVED))
    assert verdict.end is not None
    assert verdict.end.lo == 1910 * NS_PER_MS
    assert verdict.end.hi == within(2410).hi


@pytest.mark.parametrize(
    ("t_ms", "lo", "hi"), [(5, 5_000_000, 5_999_999), (-5, -5_999_999, -5_000_000)]
)
def test_a_truncated_millisecond_is_an_interval(t_ms: int, lo: int, hi: int) -> None:
    assert (within(t_ms).lo, within(t_ms).hi) == (lo, hi)
    assert (within(0).lo, within(0).hi) == (-999_999, 999_999)


def test_an_end_that_is_older_than_the_last_ack_has_no_bracket(tmp_path: Path) -> None:
    """The last ack was on its way when the refusal came: neither bounds the other."""
    flows = [flow(UDP, "severed", 2410, 2411, REFUSED), flow("udp-0002", "severed", 9, 9, REFUSED)]
    document = example.report(flows=flows)
    crossed, together = read_report(example.write(tmp_path, document)).trial.flows
    assert udp_end(crossed) is None
    assert udp_end(together) == Interval(9 * NS_PER_MS, 9 * NS_PER_MS)


def test_of_several_events_of_a_name_the_earliest_counts_wherever_it_stands(tmp_path: Path) -> None:
    document = example.report(sigterm=40)
    timeline = document["trial"]["timeline"]
    (term,) = [entry for entry in timeline if entry["event"] == "sigterm_received"]
    timeline.append({**term, "t_ms": 30})
    found = instants(read_report(example.write(tmp_path, document)).trial).sigterm
    assert found is not None
    assert found.shown_ns == 30 * NS_PER_MS


def test_a_flow_without_an_answer_has_no_bracket(tmp_path: Path) -> None:
    document = example.report(flows=[flow(UDP, "severed", 2410, None, REFUSED)])
    (seen,) = read_report(example.write(tmp_path, document)).trial.flows
    assert udp_end(seen) is None


@pytest.fixture(scope="module")
def published() -> dict[str, UpstreamReport]:
    """Every report that the ancestor published, by its path."""
    paths = sorted(example.PUBLISHED.rglob("report.json"))
    paths += sorted((example.PUBLISHED / "2026-08-31-kind-v1.34.0").glob("*.json"))
    return {str(path.relative_to(example.PUBLISHED)): read_report(path) for path in paths}


SUPERSEDED = "superseded-4441e81-repeat5-kind-v1.34.0/discarded/arm-E/trial-002/report.json"


@example.needs_published
def test_we_agree_on_every_flow_but_the_stalled_one(published: dict[str, UpstreamReport]) -> None:
    verdicts = [
        (path, verdict) for path, report in published.items() for verdict in rejudge(report.trial)
    ]
    assert len(verdicts) == 580
    assert [(path, v.flow_id) for path, v in verdicts if not v.agrees] == [(SUPERSEDED, "tcp-0008")]
    (stalled,) = [v for _, v in verdicts if not v.agrees]
    assert (stalled.theirs, stalled.their_detail) == (_O.SEVERED, "write deadline exceeded")
    assert (stalled.outcome, stalled.mechanism) == (_O.NOT_MEASURED, _M.CLIENT_STALL)
    assert Counter(v.mechanism for _, v in verdicts) == {
        _M.ANNOUNCED_FIN: 169,
        _M.REHOMED: 224,
        _M.REFUSED: 66,
        _M.RST: 60,
        _M.FIN_UNANNOUNCED: 60,
        _M.CLIENT_STALL: 1,
    }


@example.needs_published
def test_last_data_of_udp_is_the_receipt_of_the_last_old_ack(
    published: dict[str, UpstreamReport],
) -> None:
    """Ping n goes out on the n+1st tick of 500 ms, and its ack is back within 7 ms.

    Only in the stalled trial the client had lost 2.6 s of that schedule.
    """

    def late_ms(seen: Flow) -> int:
        assert seen.last_data_t_ms is not None
        assert seen.connected_t_ms is not None
        assert seen.last_answered_seq is not None
        return seen.last_data_t_ms - seen.connected_t_ms - 500 * (seen.last_answered_seq + 1)

    late = {
        path: [late_ms(f) for f in report.trial.flows if f.proto == "udp"]
        for path, report in published.items()
    }
    assert (min(late[SUPERSEDED]), max(late[SUPERSEDED])) == (2638, 2639)
    sound = [ms for path, found in late.items() if path != SUPERSEDED for ms in found]
    assert len(sound) == 280
    assert (min(sound), max(sound)) == (0, 7)


@example.needs_published
@pytest.mark.parametrize(
    ("arm", "lo", "hi", "width"),
    [
        # A: the old pod was gone at 30-98 ms; four pings of most flows went unanswered.
        ("A", (-108, -67), (392, 2434), (498, 2502)),
        ("B", (1911, 1932), (2411, 2434), (500, 505)),
        ("C", (29874, 29931), (30374, 30433), (499, 504)),
        ("D", (1918, 1936), (2419, 2437), (499, 502)),
        ("E", (24905, 24932), (25404, 25431), (498, 502)),
    ],
)
def test_the_brackets_are_those_of_the_re_analysis(
    published: dict[str, UpstreamReport],
    arm: str,
    lo: tuple[int, int],
    hi: tuple[int, int],
    width: tuple[int, int],
) -> None:
    """To 10 ms: B (1.91-1.93, 2.41-2.43], C (29.87-29.93, 30.37-30.43], and so on."""
    ends = [
        udp_end(seen)
        for path, report in published.items()
        if path.startswith(f"{example.MATRIX.name}/arm-{arm}/")
        for seen in report.trial.flows
        if seen.proto == "udp"
    ]
    brackets = [(end.lo // NS_PER_MS, end.hi // NS_PER_MS) for end in ends if end is not None]
    assert len(brackets) == 50
    assert (min(b for b, _ in brackets), max(b for b, _ in brackets)) == lo
    assert (min(e for _, e in brackets), max(e for _, e in brackets)) == hi
    assert (min(e - b for b, e in brackets), max(e - b for b, e in brackets)) == width


def test_without_the_probes_lines_its_pod_is_unnamed_and_no_stranger(tmp_path: Path) -> None:
    """Dropping a source makes a verdict less certain, never certain of something else."""
    written = example.report(flows=[flow(TCP, "drained-clean-close", 5040, 5040, example.FIN)])
    timeline = [entry for entry in written["trial"]["timeline"] if entry["source"] != "probe"]
    summary = {
        name: None if "sigterm" in name else value
        for name, value in written["trial"]["summary"].items()
    }
    written["trial"] = {**written["trial"], "timeline": timeline, "summary": summary}
    (verdict,) = rejudge(read_report(example.write(tmp_path, written)).trial)
    assert (verdict.outcome, verdict.agrees) == (_O.DRAINED, True)
