"""What the node's network held, look by look, and where it led the flows, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_drainwatch.core.document import FlowReport, TrialReport
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.mechanism.evidence import CLOSING, CONCLUDES, FlowEvidence
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.mechanism.rules import Effect
from pytest_drainwatch.core.mechanism.snapshot import Snapshot
from pytest_drainwatch.render.text import duration, table

NOT_READ = "not read"
LED = "conntrack led it to "
REFUSED_IT = "the pod's own kernel refused it"
EVIDENCE_LINES = 10
LONG_NAME = 20

_OCCASIONS = list(Occasion)
_PROTOS = list(Proto)

Names = Mapping[str, str]


def network(trial: TrialReport) -> list[str]:
    """The part NETWORK, with its empty last line; nothing if nobody looked."""
    looks = trial.mechanism
    if not looks:
        return []
    if all(look.conntrack_entries is None and look.rules is None for look in looks):
        problems = dict.fromkeys(look.problem or NOT_READ for look in looks)
        return ["NETWORK", f"  not looked into: {'; '.join(problems)}", ""]
    names = _names(trial)
    rows = [("LOOK", "AT", "CONNTRACK ENTRIES", "KUBE-PROXY LEADS NEW CONNECTIONS TO")]
    rows += [
        (
            str(look.occasion),
            duration(look.at_ns),
            NOT_READ if look.conntrack_entries is None else f"{look.conntrack_entries:,}",
            led_new(look, names),
        )
        for look in looks
    ]
    return ["NETWORK", *table(rows, right=(2,)), *_problems(looks), *_flows(trial, names), ""]


def stale(flows: Iterable[FlowReport]) -> str | None:
    """How many flows conntrack still led to a pod that had ended, when that was last seen."""
    found: dict[Occasion, dict[Proto, int]] = {}
    for flow in flows:
        for piece in flow.evidence:
            if piece.stale:
                counts = found.setdefault(piece.occasion, {})
                counts[flow.proto] = counts.get(flow.proto, 0) + 1
    if not found:
        return None
    last = max(found, key=_OCCASIONS.index)
    counted = " and ".join(f"{found[last][p]:,} {p}" for p in _PROTOS if p in found[last])
    return f"at {last} conntrack led {counted} flow(s) to a pod that had ended (stale DNAT)"


def _names(trial: TrialReport) -> Names:
    """How pods are called here, by UID and, where that is one pod's, by address.

    Long names are cut to their ends, which the parts above show whole. A name that two
    pods had, as in a StatefulSet, tells neither from the other: they keep their UIDs.
    """
    whole = {gone.pod_uid: gone.pod for gone in trial.container_exits}
    whole |= {end.pod_uid: end.pod for end in trial.pod_ends}
    for prober in trial.new_connections:
        whole |= {one.pod_uid: one.pod for one in prober.answered_by if one.pod}
    whole |= {one.pod_uid: one.pod for one in trial.windows if one.pod}
    had = Counter(whole.values())
    cut = Counter(map(_short, had))
    names = {
        uid: _short(name) if cut[_short(name)] == 1 else name
        for uid, name in whole.items()
        if had[name] == 1
    }
    addresses = {
        piece.to: names[piece.to_pod]
        for flow in trial.flows
        for piece in flow.evidence
        if piece.to is not None and piece.to_pod in names
    }
    return names | addresses


def _short(name: str) -> str:
    return name if len(name) <= LONG_NAME else f"…{name.rpartition('-')[2]}"


def led_new(look: Snapshot, names: Names) -> str:
    """Where new connections are led at that look; both transports at once if alike."""
    if look.rules is None:
        return NOT_READ
    led = {
        proto: _by_port([rule for rule in look.rules if rule.proto == proto], names)
        for proto in _PROTOS
    }
    texts = set(led.values())
    return texts.pop() if len(texts) == 1 else "; ".join(f"{p}: {to}" for p, to in led.items())


def _by_port(rules: Sequence[Effect], names: Names) -> str:
    led = {rule.port: _leads(rule, names) for rule in rules}
    if len(set(led.values())) > 1:
        return ", ".join(f"port {port} to {to}" for port, to in led.items())
    return next(iter(led.values()), "no rule")


def _leads(rule: Effect, names: Names) -> str:
    parts = [", ".join(names.get(each, each) for each in rule.endpoints)] if rule.endpoints else []
    parts += ["rejected"] * rule.rejects + ["dropped"] * rule.drops
    return " or ".join(parts) or "nowhere"


def _problems(looks: Sequence[Snapshot]) -> Iterator[str]:
    """Each problem once, with the looks that had it."""
    found: dict[str, list[str]] = {}
    for look in looks:
        if look.problem:
            found.setdefault(look.problem, []).append(look.occasion)
    yield from (f"  {', '.join(had)}: {problem}" for problem, had in found.items())


@dataclass(slots=True)
class _Said:
    """One sentence about some flows of a transport, and at which occasions it holds."""

    flows: tuple[str, ...]
    text: str
    piece: FlowEvidence
    occasions: list[Occasion] = field(default_factory=list)

    @property
    def dull(self) -> int:
        """How little it tells: what stale entries do is told first, what is usual last."""
        if self.piece.stale:
            return 0
        usual = self.piece.stale is False and Occasion.TRIGGER in self.occasions
        return 2 if usual or self.piece.state in CLOSING else 1


def _flows(trial: TrialReport, names: Names) -> list[str]:
    """What is said of the flows' entries: the most telling lines, in order."""
    said = _folded(trial.flows, names)
    if not said:
        return []
    by_worth = sorted(range(len(said)), key=lambda n: said[n].dull)
    shown = [said[n] for n in sorted(by_worth[:EVIDENCE_LINES])]
    places = {flow.id: n for n, flow in enumerate(trial.flows)}
    rows = [("FLOWS", "LOOK", "CONNTRACK LED THEM TO")]
    rows += [(_group(one.flows, places), ", ".join(one.occasions), one.text) for one in shown]
    lines = ["", *table(rows)]
    if len(said) > len(shown):
        more = len(said) - len(shown)
        lines.append(f"  … {more} more: see each flow's `evidence` in report.json")
    return lines


def _folded(flows: Sequence[FlowReport], names: Names) -> list[_Said]:
    """By transport, then by time: flows of which the same is said at the same looks."""
    at_once: dict[tuple[Proto, Occasion, str], tuple[FlowEvidence, list[str]]] = {}
    words: dict[tuple[str, str | None], str] = {}  # of 10,000 flows most are told the same
    for flow in flows:
        for piece in flow.evidence:
            said = (piece.says, piece.to_pod)
            if said not in words:
                words[said] = _words(piece, names)
            key = (flow.proto, piece.occasion, words[said])
            at_once.setdefault(key, (piece, []))[1].append(flow.id)
    found: dict[tuple[str, tuple[str, ...]], _Said] = {}
    for key in sorted(at_once, key=lambda k: (_PROTOS.index(k[0]), _OCCASIONS.index(k[1]))):
        (_, occasion, text), (piece, ids) = key, at_once[key]
        one = found.setdefault((text, tuple(ids)), _Said(tuple(ids), text, piece))
        one.occasions.append(occasion)
    return list(found.values())


def _words(piece: FlowEvidence, names: Names) -> str:
    """The sentence, shorter: pods by name, and without what the heading says."""
    text = piece.says.replace(CONCLUDES, REFUSED_IT)
    if piece.to_pod in names:
        text = text.replace(f" (uid {piece.to_pod})", "")
    return " ".join(_named(word, names) for word in text.split(" ")).removeprefix(LED)


def _named(word: str, names: Names) -> str:
    """An address, with a comma after it or not, as the name of its pod."""
    address = word.rstrip(",;")
    return names.get(address, address) + word[len(address) :]


def _group(ids: Sequence[str], places: Mapping[str, int]) -> str:
    """Flows in few words: ``udp-0001 … udp-0010 (10)`` if no other flow is between them."""
    if len(ids) <= 2:
        return ", ".join(ids)
    if places[ids[-1]] - places[ids[0]] == len(ids) - 1:
        return f"{ids[0]} … {ids[-1]} ({len(ids):,})"
    return f"{ids[0]} and {len(ids) - 1:,} more"
