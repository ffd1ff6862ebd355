"""What the page's script reads: the JSON in it, as types.

All instants are whole microseconds since t = 0 (the accepted trigger call was sent), always
a pair ``[lo, hi]`` in which the truth lies, lo rounded down and hi rounded up. ``None`` is
not known, and is shown as such. Texts are plain and never HTML.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypedDict

FORMAT = 1

At = tuple[int, int]


class Tone(StrEnum):
    """How it is coloured, always beside a word or a shape that says the same."""

    GOOD = "good"  # served, or ended cleanly
    WARN = "warn"  # nobody was hurt yet, or it cannot be told
    BAD = "bad"  # users were hurt
    NEUTRAL = "neutral"  # no judgement in it
    UNKNOWN = "unknown"  # not measured


class Mark(TypedDict):
    """Something that happened once: drawn as wide as its instant is uncertain.

    ``key`` is the event's name in the timeline, so that "sigterm_received" can be a line through
    all lanes; ``source`` is who saw it; ``detail`` is the evidence. ``approximate``: it had
    happened by the upper end of ``at``, and the lower one says little. ``pod_uid``: whom it is
    about; None: nobody, or several.
    """

    key: str
    at: At
    approximate: bool
    pod_uid: str | None
    text: str
    detail: str
    source: str
    tone: Tone


class Band(TypedDict):
    """A time that opens and closes, each of them uncertain; None: never, or not known.

    ``id`` is unique in its trial. ``detail`` says what it means and how it is known, ``met``
    what new connections met in it, such as "54 of 512 failed".
    """

    id: str
    opens: At | None
    closes: At | None
    text: str
    detail: str
    met: str | None
    tone: Tone


class Lane(TypedDict):
    """A row of the picture: ``api``, ``endpoints``, ``kubelet``, ``app``, ``tcp``, ``udp``,
    ``new``, ``http``, ``instrument``. ``about`` explains it in a sentence. One without marks and
    bands is not there; what ``tcp`` and ``udp`` hold stands above the flows of that transport.
    """

    id: str
    name: str
    about: str
    marks: list[Mark]
    bands: list[Band]


class Responder(TypedDict):
    """A pod (one process of it) that answered; ``role`` is target, bystander or newcomer's."""

    name: str
    pod_uid: str
    role: str | None


class State(StrEnum):
    """What a flow was like for a while."""

    ANSWERED = "answered"
    OPEN = "open"  # a connection on which nothing is said, or nobody says who answers
    NO_ANSWER = "no answer"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    FOREIGN = "foreign"  # answered by nobody of the workload
    UNKNOWN = "unknown"  # nobody looked, or could send, or knows who answered


class Piece(TypedDict):
    """A stretch of a flow's life, from ``at[0]`` to ``at[1]``.

    It began in the first ``edge`` microseconds of it: until then the piece before may have
    lasted. ``by`` is an index into the trial's responders, or None.
    """

    at: At
    edge: int
    state: State
    tone: Tone
    by: int | None


class Row(TypedDict):
    """One line of what is known of a flow."""

    at: At | None
    event: str
    detail: str


class Flow(TypedDict):
    """One connection. Its pieces follow each other; ``end`` is where its fate is known from.

    ``story`` is its life in words. ``rows`` is None where a page of many flows leaves it out.
    """

    id: str
    proto: str
    role: str | None
    outcome: str
    mechanism: str
    tone: Tone
    end: At | None
    pieces: list[Piece]
    story: str
    rows: list[Row] | None


class Attempts(TypedDict):
    """New connections of one prober (``lane`` "new"), or requests of one kind ("http"), in order.

    ``runs`` are ``[from, to, result, how many]``, ``result`` an index into ``results``, each of
    which is ``[word, tone]``; ``rate`` is failed of attempts in words, with its bounds.
    """

    lane: str
    name: str
    results: list[tuple[str, Tone]]
    runs: list[tuple[int, int, int, int]]
    rate: str
    notes: list[str]


class Hurt(TypedDict):
    """The window that hurt most: the ``id`` of its band (None: none of them), and why."""

    band: str | None
    text: str


class Trial(TypedDict):
    """One trial.

    Attributes:
        id: unique on the page.
        simulated: a model predicted it; nothing of it was measured.
        outcome: of its test: passed, failed, …; None: not known here.
        asked: what was tried, in a line.
        says: what happened to the connections and which window hurt, in two to five sentences
            that a person understands who has never seen the tool.
        facts: name and value of what was measured where, by which build.
        figures: name and value of the report's summary.
        marks: what must be known before believing it: degraded, stalls, flags.
        span: what the picture shows at first.
        recorded: from the first thing on the page to the last one.
        left_out: what the page does not carry, in words.
        report: a link from the page to report.json; None: not known.
    """

    id: str
    scenario: str
    simulated: bool
    repeat: int | None
    test: str | None
    outcome: str | None
    asked: str
    says: list[str]
    hurt: Hurt | None
    facts: list[tuple[str, str]]
    figures: list[tuple[str, str]]
    marks: list[str]
    notes: list[str]
    span: At
    recorded: At
    lanes: list[Lane]
    attempts: list[Attempts]
    responders: list[Responder]
    flows: list[Flow]
    left_out: list[str]
    report: str | None


class Measure(TypedDict):
    """One metric of one scenario over its repeats, in microseconds.

    ``values`` has an entry for each repeat, None where not measured. ``interval`` holds the
    true median with ``coverage``; None: too few repeats. ``baseline`` is the same of the other run.
    """

    key: str
    name: str
    values: list[At | None]
    trials: list[str]
    median: At | None
    interval: At | None
    coverage: float | None
    baseline: list[At | None] | None


class Fate(TypedDict):
    """How many flows of a scenario ended in one way."""

    proto: str
    outcome: str
    mechanism: str
    count: int
    tone: Tone


class ScenarioRow(TypedDict):
    """One scenario of the run, all repeats together; ``trials`` are ids of the page's trials.

    ``new`` is what its new connections (and requests) met, in words.
    """

    id: str
    trials: list[str]
    fates: list[Fate]
    new: str
    measures: list[Measure]
    disagreements: list[str]


class Question(TypedDict):
    """What the comparison with a baseline says of one figure."""

    scenario: str
    figure: str
    verdict: str
    text: str
    tone: Tone


class Comparison(TypedDict):
    """This run against another one."""

    baseline: str
    verdict: str
    text: str
    questions: list[Question]


class Missing(TypedDict):
    """A trial of the run that has no report: void, never run, refused."""

    name: str
    state: str
    why: str


class Run(TypedDict):
    """The whole run."""

    name: str
    complete: bool
    incomplete_because: list[str]
    scenarios: list[ScenarioRow]
    not_pooled: list[str]
    missing: list[Missing]
    comparison: Comparison | None


class Page(TypedDict):
    """All of it. ``run`` is None on a page of single trials."""

    format: int
    title: str
    made_by: str
    run: Run | None
    trials: list[Trial]
