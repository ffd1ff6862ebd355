"""``simulate_trial``: the recording that a trial of the probe would have made, without a cluster.

A model and no measurement: what it takes the cluster for stands in
:class:`~pytest_drainwatch.core.simulation.latencies.Latencies`, and the recording says of
itself that it is simulated. The same scenario and latencies give the same recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.flow.signals import QUIET_NS
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval, merged
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.plan import dense_stretches
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.recording import Recording, merge
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.core.simulation import flows, probe_log, probers, record
from pytest_drainwatch.core.simulation.cluster import Pod, endpoint_changes, pods_of
from pytest_drainwatch.core.simulation.dataplane import DataPlane
from pytest_drainwatch.core.simulation.flows import Held, Leg
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.probers import Attempt, Plan
from pytest_drainwatch.core.simulation.sends import Sends, Stretch, stretches
from pytest_drainwatch.core.simulation.supported import refuse_unknown

MIN_SYNC_PERIOD_MS = 1000  # kube-proxy's default (FACTS K8)
# As trials have it: so long flows are held before they settle, and a trial goes on after the
# last pod is gone, after a UDP flow that nobody serves, and after the last failed attempt.
DIALLED_NS = 2 * NS_PER_S
LINGER_NS = 1 * NS_PER_S
LINGER_UNANSWERED_NS = 6 * NS_PER_S
RECOVERED_NS = 2 * NS_PER_S
VERSION = "simulated"


def simulate_trial(
    scenario: Scenario, latencies: Latencies | None = None, *, version: str = VERSION
) -> Recording:
    """What a trial of ``scenario`` would have recorded; ``version`` is the build's, for the header.

    Raises :class:`~pytest_drainwatch.core.scenario.values.ScenarioError` for what is not
    modelled, and for latencies that cannot be.
    """
    refuse_unknown(scenario)
    took = latencies or Latencies()
    took.check()
    return _Trial(scenario, took).recording(version)


class _Trial:
    """One simulation: each step's result, for the next."""

    def __init__(self, scenario: Scenario, took: Latencies) -> None:
        self.scenario, self.took = scenario, took
        asked_ms = scenario.cluster.min_sync_period_ms
        self.min_period_ns = (MIN_SYNC_PERIOD_MS if asked_ms is None else asked_ms) * NS_PER_MS
        self.begins_ns = -(scenario.settle_ns + DIALLED_NS)
        self.pods = pods_of(scenario, took, self.begins_ns)
        self.known = {pod.uid: pod for pod in self.pods}
        self.targets = [pod for pod in self.pods if pod.end is not None]
        self.changes = endpoint_changes(self.pods, took)
        self.plane = DataPlane.of(
            self.changes,
            sync_ns=took.sync_ns,
            conntrack_ns=took.conntrack_ns,
            min_period_ns=self.min_period_ns,
        )
        dense = merged([Interval(self.begins_ns, -scenario.settle_ns), *dense_stretches(scenario)])
        self.over = stretches(dense, self.begins_ns, scenario.observe_ns)
        self.tcp = self._held(Proto.TCP, scenario.flows.tcp)
        self.udp = self._held(Proto.UDP, scenario.flows.udp)

    def recording(self, version: str) -> Recording:
        """The whole."""
        closes_ns = self.scenario.observe_ns
        plans = list(self._plans())
        tried = self._tried(plans, closes_ns)
        over_ns = max(self._settled_ns(), self._recovered_ns(tried)) + self.took.noticed_ns
        end_ns = min(closes_ns, over_ns)
        tried = [[each for each in found if each.at_ns < end_ns] for found in tried]
        header = record.header(
            record.described(self.scenario),
            version=version,
            trial_id=f"{self.scenario.id}/simulated",
            environment=record.surroundings(self.scenario, self.min_period_ns),
        )
        app, trigger = self.scenario.app, self.scenario.trigger
        parts: list[Iterator[Observation]] = [
            record.begun(app, self.pods[0].created_ns - NS_PER_MS, 3),
            iter([record.accepted(trigger, self.targets, self.took.call_ns)]),
            *(_until(record.frames(pod, trigger, app.grace_period_s), end_ns) for pod in self.pods),
            _until(record.slices(self.changes, self.pods), end_ns),
            *(_until(self._log(pod), end_ns) for pod in self.pods),
            *self._flows(tried, plans, end_ns),
            *(
                probers.recorded(plan, found, end_ns)
                for plan, found in zip(plans, tried, strict=True)
            ),
            record.over(self.pods, end_ns, terminal=end_ns < closes_ns),
            self._agent(end_ns),
        ]
        return Recording(header, merge(*parts))

    # --- what there is ------------------------------------------------------------------

    def _held(self, proto: Proto, wanted: int) -> list[Held]:
        """The flows of a transport: the target's, and as many of other pods as there are, at most.

        They are dialled in turns, until the first target has as many as are asked for.
        """
        dense_hz, sparse_hz = (
            (self.scenario.flows.tcp_rate_hz, self.scenario.flows.sparse_rates_hz[0])
            if proto is Proto.TCP
            else (self.scenario.flows.udp_rate_hz, self.scenario.flows.sparse_rates_hz[1])
        )
        others = self.pods[1 : self.scenario.app.replicas]
        led_to = [self.pods[0]] * wanted
        if others:
            led_to += [others[number % len(others)] for number in range(wanted)]
        return [
            Held(
                id=f"{proto}-{number:04d}",
                proto=proto,
                pod=pod,
                sends=Sends.of(number, self.over, (dense_hz, sparse_hz)),
            )
            for number, pod in enumerate(led_to, 1)
        ]

    def _plans(self) -> Iterator[Plan]:
        asked = self.scenario.flows
        periods = {Proto.TCP: asked.probe_interval_ns, Proto.UDP: asked.udp_probe_interval_ns}
        for number, (proto, period_ns) in enumerate(periods.items(), 1):
            if period_ns is not None:
                yield Plan(
                    proto=proto,
                    number=number,
                    epoch_ns=self.begins_ns,
                    period_ns=period_ns,
                    sparse_every=asked.sparse_every(period_ns),
                    over=self.over,
                )

    # --- what happens ---------------------------------------------------------------------

    def _tried(self, plans: Sequence[Plan], end_ns: int) -> list[list[Attempt]]:
        """Every attempt of each prober."""
        answer_ns = self.took.connect_ns + self.scenario.app.response_delay_ns
        found = []
        for plan in plans:
            attempts = probers.led(plan, self.known, self.plane, end_ns)
            heard: dict[str, set[int]] = {}
            if plan.proto is Proto.UDP:
                _, heard = self._refused(attempts, end_ns)
                answer_ns = self.took.rtt_ns
            found.append(probers.met(plan.proto, attempts, heard, self.took, answer_ns))
        return found

    def _paths(self, end_ns: int) -> list[tuple[Held, list[Leg]]]:
        return [
            (flow, flows.legs(flow, self.known, self.plane, self.took, end_ns)) for flow in self.udp
        ]

    def _refused(
        self, attempts: Sequence[Attempt], end_ns: int
    ) -> tuple[dict[str, list[int]], dict[str, set[int]]]:
        return flows.refused_by_kernels(self._paths(end_ns), probers.dying(attempts))

    def _flows(
        self, tried: Sequence[Sequence[Attempt]], plans: Sequence[Plan], end_ns: int
    ) -> Iterator[Iterator[Observation]]:
        app, took = self.scenario.app, self.took
        udp = [found for plan, found in zip(plans, tried, strict=True) if plan.proto is Proto.UDP]
        refused, _ = self._refused(udp[0] if udp else (), end_ns)
        for flow in self.tcp:
            yield flows.tcp_flow(flow, app, took, end_ns)
        alone = len(self.targets) == len(self.pods)
        for flow, path in self._paths(end_ns):
            yield flows.udp_flow(flow, path, refused.get(flow.id, ()), took, end_ns, alone=alone)

    def _settled_ns(self) -> int:
        """When the last pod and the last flow to it are gone, and a moment has passed."""
        gone_ns = max(
            [pod.deleted_ns for pod in self.targets if pod.deleted_ns is not None], default=0
        )
        gone_ns = max(gone_ns, *(change.at_ns for change in self.changes), 0)
        if not self.udp:
            return gone_ns + LINGER_NS
        uids = {pod.uid for pod in self.targets}
        moved = [self.plane.dropped_ns(uid, self.begins_ns) for uid in uids]
        if any(ns is None for ns in moved):
            exits = [pod.end.exit_ns for pod in self.targets if pod.end is not None]
            return max([gone_ns, *(ns + QUIET_NS for ns in exits)]) + LINGER_UNANSWERED_NS
        # At its next request a flow shows that it has moved.
        shown_ns = NS_PER_S // self.scenario.flows.sparse_rates_hz[1] + self.took.rtt_ns
        return max([gone_ns, *(ns + shown_ns for ns in moved if ns is not None)]) + LINGER_NS

    def _recovered_ns(self, tried: Sequence[Sequence[Attempt]]) -> int:
        """So long nobody failed any more, where somebody comes in the place of who ended."""
        if len(self.targets) == len(self.pods):
            return 0
        failed = [
            each.over_ns for found in tried for each in found if each.result is not Result.ANSWERED
        ]
        return max(failed, default=-RECOVERED_NS) + RECOVERED_NS

    def _log(self, pod: Pod) -> Iterator[Observation]:
        app, end = self.scenario.app, pod.end
        mine = [flow for flow in self.tcp if flow.pod is pod]
        waiting: list[int] = []
        if end is not None and app.response_delay_ns:
            since_ns = end.sigterm_ns - app.response_delay_ns
            waiting = [
                sent_ns
                for flow in mine
                for _, sent_ns in flow.sends.between(since_ns, end.sigterm_ns)
            ]
        return probe_log.log(pod, app, len(mine), waiting)

    def _agent(self, end_ns: int) -> Iterator[Observation]:
        """What the flow agent says of itself: it was on time, for nothing kept it."""
        exact = {"missed_slots": 0, "late_p50_ns": 0, "late_p99_ns": 0, "late_max_ns": 0}
        whole = record.at(self.begins_ns, end_ns)
        sends = 0
        for proto, held in ((Proto.TCP, self.tcp), (Proto.UDP, self.udp)):
            for one in self.over:
                hi_ns = min(one.hi_ns, end_ns)
                if one.lo_ns >= hi_ns or not held:
                    continue
                made = [_sent(flow, one, hi_ns) for flow in held]
                sends += sum(made)
                yield Observation(
                    source=Source.CLIENT,
                    event=Event.AGENT_SENDING,
                    at=record.at(one.lo_ns, hi_ns),
                    data={
                        "proto": str(proto),
                        "rate_hz": self._rate(proto, one),
                        "flows": sum(count > 0 for count in made),
                        "sends": sum(made),
                        **exact,
                    },
                )
        yield Observation(
            source=Source.CLIENT,
            event=Event.AGENT_SUMMARY,
            at=whole,
            data={"sends": sends, **exact},
        )

    def _rate(self, proto: Proto, one: Stretch) -> int:
        asked = self.scenario.flows
        dense = asked.tcp_rate_hz if proto is Proto.TCP else asked.udp_rate_hz
        return dense if one.dense else asked.sparse_rates_hz[proto is Proto.UDP]


def _sent(flow: Held, one: Stretch, hi_ns: int) -> int:
    """How many requests a flow sent in a stretch; a connection that ended sends none."""
    end = flow.pod.end
    if flow.proto is Proto.TCP and end is not None:
        hi_ns = max(one.lo_ns, min(hi_ns, end.deadline_ns or end.ended_ns))
    return flow.sends.number_before(hi_ns) - flow.sends.number_before(one.lo_ns)


def _until(seen: Iterator[Observation], end_ns: int) -> Iterator[Observation]:
    """What was there to see by the end of the observation."""
    return (each for each in seen if each.at.hi <= record.T0_NS + end_ns)
