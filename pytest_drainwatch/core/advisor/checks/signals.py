"""Which signal arrives where: shells that swallow it, images that change it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.hook import SHELLS, cut, shell_script
from pytest_drainwatch.core.advisor.subject import Container, Subject
from pytest_drainwatch.core.advisor.told import Told

_SOURCE = "kubernetes/kubernetes#57707, relizaio/rearm#269"
# What ends a script without being the server.
_IDLE = re.compile(r"(?:true|:|wait|exit|echo|sleep|cat|tail|date|printf)(?:\s|$)")
_LISTS = re.compile(r"&&|\|\||;|\n|&")
_REDIRECTED = re.compile(r"\d*[<>]&[-\d]+|&>>?")
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
# Official images on Docker Hub whose STOPSIGNAL is another one.
_STOP_SIGNALS = {
    "nginx": "SIGQUIT",
    "httpd": "SIGWINCH",
    "postgres": "SIGINT",
    "haproxy": "SIGUSR1",
}
_OFFICIAL = re.compile(r"(?:(?:docker\.io/)?(?:library/)?)([a-z0-9]+)(?:$|[:@])")


def shell_swallows_it(subject: Subject, told: Told) -> Iterator[Finding]:
    """A shell as PID 1: SIGTERM ends there, unless the shell became the server."""
    for container in subject.containers:
        command = (*(container.command or ()), *(container.args or ()))
        if container.command is None or not command:
            continue  # the image's entry point: no manifest shows it
        if command[0].rsplit("/", 1)[-1] not in SHELLS:
            continue
        script = shell_script(command)
        if script is None:
            yield _finding(
                subject,
                container,
                Level.NOTE,
                "shell-script-unseen",
                f"{command[0]} runs a script that no manifest shows",
            )
            continue
        verdict = _swallowed(script)
        if verdict is None:
            continue
        level, why = verdict
        yield _finding(
            subject,
            container,
            level,
            "shell-swallows-signal",
            f'{command[0]} -c "{cut(script)}" is PID 1, and {why}',
        )


def _swallowed(script: str) -> tuple[Level, str] | None:
    """Whether the server gets no SIGTERM, and why; None where it does or a trap cares."""
    bare = _COMMENT.sub("", _REDIRECTED.sub("", _QUOTED.sub("''", script))).strip()
    if re.search(r"(?:^|[\s;&|(])trap\s", bare):
        return None
    pieces = [piece.strip() for piece in _LISTS.split(bare) if piece.strip()]
    if not pieces:
        return Level.BROKEN, "does nothing"
    last = pieces[-1]
    if "|" in last:
        return Level.BROKEN, "the server is a child in a pipeline"
    in_background = re.search(r"(?<!&)&(?!&)", bare)
    if bare.endswith("&") or (in_background and _IDLE.match(re.sub(r"^exec\s+", "", last))):
        return Level.BROKEN, "the server is a child in the background"
    if any(re.match(r"exec\s+[^\s\d<>]", piece) for piece in pieces):
        return None
    if re.search(r"(?:^|\s)exec\s+[^\s\d<>;&|]", bare):
        return Level.NOTE, "whether it reaches its exec cannot be seen"
    if last == "done":
        return Level.BROKEN, "the server is a child in a loop"
    if len(pieces) > 1 and _IDLE.match(last):
        return Level.BROKEN, "the server is a child of it"
    return Level.WARNING, "whether the last command takes its place depends on the shell"


def _finding(subject: Subject, container: Container, level: Level, code: str, says: str) -> Finding:
    return Finding(
        level=level,
        code=code,
        where=subject.where(container, container.command_at),
        says=says,
        expected="the server itself as PID 1, or an init that passes signals on",
        because="PID 1 gets only signals that it handles, and a shell handles no SIGTERM and "
        f"passes none on: the server never hears of the end and is killed {subject.grace_s} s "
        "later, exit code 137",
        fix="exec before the server (… && exec server), the server as command, or tini / dumb-init",
        breaks="the script runs exec, or traps TERM and passes it on"
        if level is Level.NOTE
        else "the signal reaches the server in a way that is not seen here"
        if level is Level.BROKEN
        else "bash since 5.1 and dash since 0.5.11 replace themselves by the last command",
        source=_SOURCE,
    )


def stop_signal(subject: Subject, told: Told) -> Iterator[Finding]:
    """Another signal than SIGTERM, from the manifest or from the image."""
    for container in subject.containers:
        said = container.stop_signal
        official = _OFFICIAL.match(container.image)
        by_image = _STOP_SIGNALS.get(official[1]) if official else None
        if said is None and by_image is None:
            continue
        kills = said in ("SIGKILL", "KILL", "9")
        yield Finding(
            level=Level.BROKEN if kills else Level.NOTE,
            code="stop-signal-kills" if kills else "stop-signal",
            where=subject.where(container, container.stop_signal_at),
            says=f"lifecycle.stopSignal is {said}"
            if said is not None
            else f"the image {container.image} is known to ask for {by_image}",
            expected="a signal that the server drains on",
            because="SIGKILL cannot be handled, so nothing drains"
            if kills
            else "the container gets this signal instead of SIGTERM: a handler of SIGTERM never "
            "runs, and measured times since SIGTERM are null"
            + (
                "; lifecycle.stopSignal is alpha (ContainerStopSignals) and ignored without that "
                "feature"
                if said is not None
                else ""
            ),
            fix="stopSignal: SIGTERM, or none" if kills else "",
            breaks="" if said is not None else "your image of that name is built otherwise",
            source="kubernetes/website#24311",
        )
