"""Pages made by hand: of as many scenarios, trials and flows as a test asks for."""

from __future__ import annotations

from pytest_drainwatch.render.page.data import (
    FORMAT,
    At,
    Attempts,
    Band,
    Comparison,
    Fate,
    Flow,
    Lane,
    Mark,
    Measure,
    Missing,
    Page,
    Piece,
    Question,
    Responder,
    Row,
    Run,
    ScenarioRow,
    State,
    Tone,
    Trial,
)
from pytest_drainwatch.render.page.trial import MANY_FLOWS

MS, S = 1_000, 1_000_000
SPAN: At = (-1 * S, 30 * S)


def page(*, scenarios: int = 2, repeats: int = 2, flows: int = 4) -> Page:
    """A page of a run; even scenarios drain, odd ones exit at once."""
    names = [f"{'drain' if n % 2 == 0 else 'exit-now'}-{n:02d}" for n in range(scenarios)]
    trials = [trial(name, repeat, flows=flows) for name in names for repeat in range(repeats)]
    return Page(
        format=FORMAT,
        title="made by hand",
        made_by="drainwatch of the tests",
        run=Run(
            name="20260101T000000Z-1",
            complete=True,
            incomplete_because=[],
            scenarios=[scenario(name, trials) for name in names],
            not_pooled=[],
            missing=[],
            comparison=None,
        ),
        trials=trials,
    )


def run_of(page: Page) -> Run:
    """The run of a page that has one."""
    assert page["run"] is not None
    return page["run"]


def trial(name: str, repeat: int | None = 0, *, flows: int = 4) -> Trial:
    """One trial: a drain closes TCP at 25 s, what exits at once resets it at 50 ms."""
    drains = name.startswith("drain")
    end: At = (25 * S, 25 * S + 500) if drains else (50 * MS, 51 * MS)
    lost: Band = Band(
        id="new:failing",
        opens=(60 * MS, 61 * MS),
        closes=(1_100 * MS, 1_120 * MS),
        text="new connections fail",
        detail="from the first that failed to the last",
        met="54 of 512 failed",
        tone=Tone.BAD,
    )
    return Trial(
        id=name if repeat is None else f"{name}/r{repeat:02d}",
        scenario=name,
        simulated=False,
        repeat=repeat,
        test=f"tests/test_made.py::test_it[{name}]",
        outcome="passed",
        asked="a pod is deleted",
        says=["A pod was deleted.", "For 1.06 s new connections were refused."],
        hurt={"band": lost["id"], "text": "new connections were refused for 1.06 s"},
        facts=[("Kubernetes", "v1.37.2")],
        figures=[("trigger to SIGTERM", "46.4 ms")],
        marks=[],
        notes=[],
        span=SPAN,
        recorded=(-12 * S, 31 * S),
        lanes=[
            _lane("api", [_mark("trigger_issued", (0, 1), "the pod is deleted")]),
            _lane("kubelet", [_mark("sigterm_received", (46_430, 46_431), "SIGTERM")]),
            _lane("new", [], [lost]),
        ],
        attempts=[_attempts()],
        responders=[
            Responder(name="pod A", pod_uid="a", role="target"),
            Responder(name="pod B", pod_uid="b", role=None),
        ],
        flows=[_flow(number, end, drains, alone=flows > MANY_FLOWS) for number in range(flows)],
        left_out=[],
        report=None,
    )


def scenario(name: str, trials: list[Trial]) -> ScenarioRow:
    """The row of a scenario; its trials are looked up by their names."""
    own = [one for one in trials if one["scenario"] == name]
    counts: dict[tuple[str, str, str, Tone], int] = {}
    for flow in (flow for one in own for flow in one["flows"]):
        key = (flow["proto"], flow["outcome"], flow["mechanism"], flow["tone"])
        counts[key] = counts.get(key, 0) + 1
    return ScenarioRow(
        id=name,
        trials=[one["id"] for one in own],
        fates=[
            Fate(proto=proto, outcome=outcome, mechanism=mechanism, count=count, tone=tone)
            for (proto, outcome, mechanism, tone), count in counts.items()
        ],
        new="new connections: 54 of 512 failed",
        measures=[measure(own), measure(own, key="exit", name="trigger to container exit")],
        disagreements=[],
    )


def measure(
    trials: list[Trial], *, key: str = "sigterm", name: str = "trigger to SIGTERM"
) -> Measure:
    """A metric that was 40 ms and 5 ms more in each further repeat."""
    values: list[At | None] = [((40 + 5 * n) * MS, (41 + 5 * n) * MS) for n in range(len(trials))]
    known = [at for at in values if at is not None]
    return Measure(
        key=key,
        name=name,
        values=values,
        trials=[one["id"] for one in trials],
        median=known[len(known) // 2],
        interval=(known[0][0], known[-1][1]) if len(known) > 4 else None,
        coverage=0.9375 if len(known) > 4 else None,
        baseline=None,
    )


def compared(*, same: int = 0) -> Comparison:
    """One regression, one question that cannot be told, and as many as asked for that are alike."""
    asked = [
        ("drain-00", "target_flows_lost", "regression", "0 became 2, p = 0.008", Tone.BAD),
        ("exit-now-01", "sigterm", "insufficient-evidence", "5 of each could decide", Tone.WARN),
        *(
            (f"drain-{n:02d}", "trigger_to_sigterm", "no-change", "alike", Tone.GOOD)
            for n in range(same)
        ),
    ]
    return Comparison(
        baseline="results/before",
        verdict="regression",
        text="More connections were lost than in the baseline.",
        questions=[
            Question(scenario=where, figure=figure, verdict=verdict, text=text, tone=tone)
            for where, figure, verdict, text, tone in asked
        ],
    )


def missing() -> list[Missing]:
    """A trial that is void, and one that was never begun."""
    return [
        Missing(name="drain-00/r01", state="void", why="no flow could be established"),
        Missing(name="exit-now-01/r01", state="not-run", why="planned, and never begun"),
    ]


def _lane(name: str, marks: list[Mark], bands: list[Band] | None = None) -> Lane:
    return Lane(id=name, name=name, about=f"what {name} did", marks=marks, bands=bands or [])


def _mark(key: str, at: At, text: str) -> Mark:
    return Mark(
        key=key, at=at, approximate=False, pod_uid=None, text=text, detail=f"detail of {key}",
        source="probe", tone=Tone.NEUTRAL,
    )  # fmt: skip


def _attempts() -> Attempts:
    return Attempts(
        lane="new",
        name="new TCP connections",
        results=[("served", Tone.GOOD), ("refused", Tone.BAD)],
        runs=[
            (-1 * S, 60 * MS, 0, 200),
            (60 * MS, 1_110 * MS, 1, 54),
            (1_110 * MS, 30 * S, 0, 258),
        ],
        rate="54 of 512 failed",
        notes=[],
    )


def _flow(number: int, end: At, drains: bool, *, alone: bool) -> Flow:
    """``alone``: without its single events, as in pages of many."""
    tcp = number % 2 == 0
    fate = ("drained-clean-close", "announced-fin") if drains else ("severed", "rst")
    outcome, mechanism = fate if tcp else ("severed", "rehomed")
    good = tcp and drains
    pieces = [_piece((-12 * S, end[0]), State.ANSWERED, Tone.GOOD, 0)]
    if not tcp:
        pieces = [
            _piece((-12 * S, 1 * S), State.ANSWERED, Tone.GOOD, 0),
            _piece((1 * S, 1_200 * MS), State.NO_ANSWER, Tone.BAD, None),
            _piece((1_200 * MS, 30 * S), State.ANSWERED, Tone.GOOD, 1),
        ]
    name = f"{'tcp' if tcp else 'udp'}-{number // 2 + 1:04d}"
    rows: list[Row] = [{"at": end, "event": "fin" if good else "rst", "detail": "bytes_pending=0"}]
    return Flow(
        id=name,
        proto="tcp" if tcp else "udp",
        role="target",
        outcome=outcome,
        mechanism=mechanism,
        tone=Tone.GOOD if good else Tone.BAD,
        end=end if tcp else (1 * S, 1_200 * MS),
        pieces=pieces,
        story=f"{name} was answered by pod A, and then its story ended.",
        rows=None if alone else rows,
    )


def _piece(at: At, state: State, tone: Tone, by: int | None) -> Piece:
    return Piece(at=at, edge=0, state=state, tone=tone, by=by)
