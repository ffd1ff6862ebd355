"""Looking into a node's network namespace: conntrack and kube-proxy's rules.

Each look runs two or three small programs in it. They are bounded in time and in what
they may say, and change nothing.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pytest_drainwatch.cluster.network import Answer, NodeNetwork

TIMEOUT_S = 2.0
# Of the programs: flows and pods must not wait for them.
NICENESS = 10
# Some 40,000 conntrack entries, or the rules of thousands of Services.
MAX_BYTES = 8_000_000

# The last thing that a listing of conntrack says, and not among its lines: on stderr.
SHOWN = re.compile(r"(\d+) flow entries have been shown")

RULES = {
    "iptables": ("iptables-save",),
    "nftables": ("nft", "list", "table", "ip", "kube-proxy"),
}


def look(into: Sequence[str], proxy_mode: str | None, sources: Collection[str]) -> NodeNetwork:
    """Look once. What could not be read is told in the answer's ``problem``.

    Args:
        into: the words before a command that make it run in the node's network namespace.
        proxy_mode: kube-proxy's mode; None: not known.
        sources: list only connections that these addresses opened.
    """
    rules = RULES.get(proxy_mode or "")
    unread = f"rules in {proxy_mode} mode are not read yet" if proxy_mode else "mode is not known"
    return NodeNetwork(
        conntrack=_joined([_connections(into, source) for source in sources]),
        mode=proxy_mode,
        rules=_ask(into, rules).answer if rules else _nothing(f"kube-proxy's {unread}"),
    )


def enter(node_pid: Path) -> list[str]:
    """The words that lead into the node whose PID 1 has its process id in that file."""
    try:
        pid = node_pid.read_text().strip()
    except OSError:
        pid = "0"  # it has died: nsenter will say so, and the cluster's own check why
    return ["nsenter", f"--net=/proc/{pid}/ns/net", "--"]


class _Said(NamedTuple):
    answer: Answer
    beside: str  # on stderr


def _connections(into: Sequence[str], source: str) -> Answer:
    """What ``source`` opened. A listing that lacks entries tells of none that one is absent."""
    answer, beside = _ask(into, ["conntrack", "-L", "-s", source, "-o", "id"])
    if answer.problem is not None:
        return answer
    lines = sum(bool(line.strip()) for line in answer.text.splitlines())
    shown = SHOWN.search(beside)
    if shown is not None and int(shown[1]) == lines:
        return answer
    whole = "an unknown number" if shown is None else shown[1]
    return replace(answer, problem=f"listing incomplete: {lines} entries read of {whole}")


def _ask(into: Sequence[str], program: Sequence[str]) -> _Said:
    command = ["nice", "-n", str(NICENESS), *into, *program]
    asked_ns = time.monotonic_ns()
    try:
        with (
            tempfile.TemporaryFile() as beside,
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=beside
            ) as process,
        ):
            assert process.stdout is not None
            deadline = threading.Timer(TIMEOUT_S, process.kill)
            deadline.start()
            try:
                said = process.stdout.read(MAX_BYTES)
                if len(said) == MAX_BYTES:
                    process.kill()
                status = process.wait()
            finally:
                deadline.cancel()
            beside.seek(0)
            errors = beside.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return _Said(_nothing(f"{command[0]} cannot be run: {error}", asked_ns), "")
    answered_ns = time.monotonic_ns()
    problem = None
    if status != 0:
        how = (
            f"more than {MAX_BYTES} bytes"
            if len(said) == MAX_BYTES
            else f"no end within {TIMEOUT_S:g} s"
            if status < 0
            else errors[-200:].strip()
        )
        problem = f"`{' '.join(program)}` failed (status {status}): {how}"
    answer = Answer(
        asked_ns=asked_ns,
        answered_ns=answered_ns,
        text=said.decode("utf-8", "replace"),
        problem=problem,
    )
    return _Said(answer, errors)


def _nothing(problem: str, asked_ns: int | None = None) -> Answer:
    now = time.monotonic_ns()
    return Answer(asked_ns=asked_ns or now, answered_ns=now, text="", problem=problem)


def _joined(answers: Sequence[Answer]) -> Answer:
    """Several answers as one."""
    if not answers:
        return _nothing("no address was given whose connections could be listed")
    return Answer(
        asked_ns=answers[0].asked_ns,
        answered_ns=answers[-1].answered_ns,
        text="".join(answer.text for answer in answers),
        problem="; ".join(answer.problem for answer in answers if answer.problem) or None,
    )
