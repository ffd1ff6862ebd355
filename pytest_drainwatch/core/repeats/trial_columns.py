"""The columns of trials.csv: a row a measured trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

from pytest_drainwatch.core.document import Environment, whole_ms
from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.repeats.columns import Column, TrialRow
from pytest_drainwatch.core.repeats.metrics import Metric, OwnMetric, Reading, Tally
from pytest_drainwatch.core.scenario import App, Flows, Scenario, Service, ViaNode

_ENVIRONMENT = (
    "kubernetes_version",
    "node_count",
    "kube_proxy_mode",
    "min_sync_period_ms",
    "cni",
    "provider",
    "probe_image",
    "os",
    "arch",
    "cpus",
    "python_version",
    "wall_clock_start",
)
# A report names some settings only where they are asked for.
_UNUSUAL = Scenario(
    app=App(spread_over_nodes=True),
    flows=Flows(probe_each_node=True),
    service=Service(via_node=ViaNode.TARGET_NODE),
)

_METRICS = {
    Metric.FIRST_TCP: "from t = 0 to the end of the first TCP flow of a target",
    Metric.LAST_TCP: "the same of the last one",
    Metric.FIRST_UDP: "from t = 0 to the end of the first UDP flow of a target",
    Metric.LAST_UDP: "the same of the last one",
    Metric.ENDPOINT_REMOVED: "from t = 0 until a target's endpoint was gone from its slice",
    Metric.CONTAINER_TERMINATED: "from t = 0 to the end of a target's container",
    Metric.DEAD_WINDOW: "from the end of the last TCP flow until the endpoint was gone",
    Metric.FIRST_UDP_TO_EXIT: "from the container's end to that of the first UDP flow",
    Metric.LAST_UDP_TO_EXIT: "the same of the last one",
    Metric.SIGTERM: "from t = 0 to SIGTERM in the probe",
    Metric.SIGTERM_TO_READY_FALSE: "from SIGTERM until the endpoint was not ready",
    Metric.SIGTERM_TO_REMOVED: "from SIGTERM until the endpoint was gone",
    OwnMetric.NEW_TCP_FAILING: "from the first new TCP connection that failed to the last one, of "
    "several nodes the longest; 0: surely none did",
    OwnMetric.NEW_UDP_FAILING: "the same of new UDP ports",
    OwnMetric.NEW_FAILED: "for how long new connections failed: each that did stands for the time "
    "until the next was due; TCP, UDP and nodes added up",
    OwnMetric.HTTP_FAILING: "from the first HTTP request that failed to the last one; 0: surely "
    "none did",
}
_TALLIES = {
    Tally.TARGET_FLOWS_LOST: "flows of targets neither drained nor alive at the end, surely",
    Tally.BYSTANDER_FLOWS_LOST: "the same of the other replicas' flows; empty: there were none",
    Tally.NEW_CONNECTIONS_FAILED: "new connections since t = 0 that failed, surely",
    Tally.HTTP_REQUESTS_FAILED: "HTTP requests since t = 0 that failed, surely; empty: none were "
    "made",
}


def _own_environment(name: str) -> Callable[[TrialRow], object]:
    return lambda row: getattr(row.report.environment, name)


def _config(name: str) -> Callable[[TrialRow], object]:
    return lambda row: row.report.trial.config.get(name)


def _reading(name: Metric | OwnMetric) -> Callable[[TrialRow], Reading | None]:
    if isinstance(name, Metric):
        return lambda row: row.repeat.metrics.get(name)
    return lambda row: row.repeat.own_metrics.get(name)


def _metric(name: Metric | OwnMetric) -> Iterator[Column[TrialRow]]:
    read, base = _reading(name), name.removesuffix("_ms")

    def bound(side: Callable[[Bounds], int]) -> Callable[[TrialRow], object]:
        def value(row: TrialRow) -> object:
            found = read(row)
            within = found and found.within
            return within and side((within.lo, within.hi))

        return value

    def shown(row: TrialRow) -> object:
        found = read(row)
        return found and whole_ms(found.shown_ns)

    yield Column(name=str(name), meaning=_METRICS[name], value=shown)
    yield Column(name=f"{base}_lo_ns", meaning="its lower bound", value=bound(min))
    yield Column(name=f"{base}_hi_ns", meaning="its upper bound", value=bound(max))


def _tally(name: Tally) -> Iterator[Column[TrialRow]]:
    def side(pick: str) -> Callable[[TrialRow], object]:
        def value(row: TrialRow) -> object:
            found = row.repeat.tallies.get(name)
            return None if found is None else getattr(found, pick)

        return value

    yield Column(name=f"{name}_lo", meaning=_TALLIES[name], value=side("lo"))
    yield Column(
        name=f"{name}_hi",
        meaning="at most so many: those that nobody could judge too",
        value=side("hi"),
    )


def _outcomes() -> Iterator[Column[TrialRow]]:
    def count(role: Role | None, proto: Proto, outcome: Outcome) -> Callable[[TrialRow], object]:
        return lambda row: sum(
            (flow.role, flow.proto, flow.outcome) == (role, proto, outcome)
            for flow in row.report.trial.flows
        )

    for role, proto, outcome in product((*Role, None), Proto, Outcome):
        yield Column(
            name=f"{role or 'unanswered'}_{proto}_{outcome}".replace("-", "_"),
            meaning="flows with this outcome",
            value=count(role, proto, outcome),
        )


def _probed(proto: Proto) -> Iterator[Column[TrialRow]]:
    def total(name: str) -> Callable[[TrialRow], object]:
        def value(row: TrialRow) -> object:
            found = [p for p in row.report.trial.new_connections if p.proto is proto]
            numbers = [getattr(prober, name) for prober in found]
            return sum(numbers) if numbers and None not in numbers else None

        return value

    meanings = {
        "attempts": "new connections since t = 0 that were answered or failed",
        "failed": "those of them that failed",
        "not_judged": "further ones of which nobody knows",
        "lost": "further ones that the recording lacks",
    }
    for name, meaning in meanings.items():
        yield Column(name=f"new_{proto}_{name}", meaning=meaning, value=total(name))


def _asked() -> Iterator[Column[TrialRow]]:
    def total(name: str) -> Callable[[TrialRow], object]:
        def value(row: TrialRow) -> object:
            found = row.report.trial.requests
            return None if found is None else sum(getattr(kind, name) for kind in found.kinds)

        return value

    meanings = {
        "attempts": "HTTP requests since t = 0 that were served or failed; empty: none were made",
        "failed": "those of them that failed",
        "not_retry_safe": "failed ones that a client may not repeat unasked",
        "not_judged": "further ones of which nobody knows",
    }
    for name, meaning in meanings.items():
        yield Column(name=f"http_{name}", meaning=meaning, value=total(name))
    yield Column(
        name="http_lost",
        meaning="further ones that the recording lacks",
        value=lambda row: row.report.trial.requests and row.report.trial.requests.lost,
    )


def _longest(bounds: Iterable[Bounds]) -> int:
    return max((hi - lo for lo, hi in bounds), default=0)


TRIAL_ID: tuple[Column[TrialRow], ...] = (
    Column(
        name="scenario", meaning="the scenario's id", value=lambda row: row.report.trial.scenario
    ),
    Column(
        name="repeat",
        meaning="which of its repeats, from 0 on; empty: its folder does not say",
        value=lambda row: row.repeat_number,
    ),
    Column(
        name="attempt",
        meaning="which attempt at that repeat, from 1 on: a test that was run again has several",
        value=lambda row: row.attempt,
    ),
    Column(
        name="folder",
        meaning="where its report lies, below the folder that was given; unique",
        value=lambda row: row.folder,
    ),
)

TRIAL_COLUMNS: tuple[Column[TrialRow], ...] = (
    *TRIAL_ID,
    Column(
        name="test", meaning="the test that measured it", value=lambda row: row.report.trial.test
    ),
    Column(
        name="simulated",
        meaning="whether a model predicted it; then nothing of it was measured",
        value=lambda row: row.report.simulated,
    ),
    Column(
        name="drainwatch_version",
        meaning="the build that measured",
        value=lambda row: row.report.drainwatch_version,
    ),
    Column(name="git_commit", meaning="its commit", value=lambda row: row.report.git_commit),
    *(
        Column(
            name=f"environment.{name}",
            meaning="as in report.json",
            value=_own_environment(name),
        )
        for name in _ENVIRONMENT
        if name in Environment.__slots__
    ),
    *(
        Column(
            name=f"config.{name}",
            meaning="as in report.json; empty: none was asked for, or the report does not say",
            value=_config(name),
        )
        for name in _UNUSUAL.config()
    ),
    *(column for metric in (*Metric, *OwnMetric) for column in _metric(metric)),
    *(column for tally in Tally for column in _tally(tally)),
    *_outcomes(),
    *(column for proto in Proto for column in _probed(proto)),
    *_asked(),
    Column(
        name="integrity",
        meaning="`ok`, or who else answered",
        value=lambda row: row.report.trial.integrity,
    ),
    Column(
        name="stalls",
        meaning="stretches in which our own machine could not look",
        value=lambda row: len(row.report.trial.stalls),
    ),
    Column(
        name="longest_stall_ns",
        meaning="the longest of them; 0: there was none",
        value=lambda row: _longest(stall.at_ns for stall in row.report.trial.stalls),
    ),
    Column(
        name="gaps",
        meaning="stretches in which a watch saw nothing",
        value=lambda row: len(row.report.trial.gaps),
    ),
    Column(
        name="missed_slots",
        meaning="sends that the schedule asked for and the agent did not make",
        value=lambda row: row.report.trial.sending.missed_slots,
    ),
    Column(
        name="late_p99_ns",
        meaning="how late sends were, 99th percentile",
        value=lambda row: row.report.trial.sending.late_p99_ns,
    ),
    Column(
        name="degraded",
        meaning="in what our own machine fell short, joined by `; `",
        value=lambda row: "; ".join(row.report.trial.degraded) or None,
    ),
)
