"""``drainwatch probe`` and ``drainwatch client``: both ends by hand, without Kubernetes."""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.recording import Header, Recording, dumps, parse_observation
from pytest_drainwatch.flows.clockid import clock_id
from pytest_drainwatch.flows.http import byhand
from pytest_drainwatch.flows.shown import show_flows, show_probers
from pytest_drainwatch.option_values import parse_duration_ns
from pytest_drainwatch.output import CANNOT, DONE, USAGE


def register(subparsers: Any) -> None:
    """Add both commands to the CLI."""
    probe = subparsers.add_parser(
        "probe", help="run the probe here; settings by its environment variables or these options"
    )
    for flag, (variable, help_text) in _PROBE_FLAGS.items():
        probe.add_argument(flag, dest=variable, metavar=variable, help=help_text)
    probe.set_defaults(run=run_probe)
    client = subparsers.add_parser(
        "client", help="hold flows to a probe at HOST until Ctrl-C and show what becomes of them"
    )
    client.add_argument(
        "host", help="a name or an address of a probe; or http://HOST:PORT/path of any server"
    )
    client.add_argument("--tcp-port", type=int, default=7001)
    client.add_argument("--udp-port", type=int, default=7002)
    client.add_argument("--tcp-flows", type=int, default=10)
    client.add_argument("--udp-flows", type=int, default=10)
    client.add_argument("--tcp-rate", type=float, default=20, metavar="HZ")
    client.add_argument("--udp-rate", type=float, default=60, metavar="HZ")
    client.add_argument("--source", help="the address to connect from")
    for proto, flag in _PROBE_INTERVALS.items():
        client.add_argument(
            flag,
            type=_interval,
            metavar="TIME",
            help=f"also try a new {proto.upper()} connection each such time: 5ms, 1s",
        )
    client.add_argument(
        "--probe-source", metavar="SOURCE", help="the address to try new connections from"
    )
    client.add_argument("--target", help="a pod UID: dial until all flows are on that pod")
    client.add_argument("--seconds", type=float, help="stop after holding so long")
    byhand.add_options(client)
    client.add_argument("--recording", type=Path, default=Path("client-recording.jsonl"))
    client.set_defaults(run=run_client)


_PROBE_INTERVALS = {"tcp": "--probe-interval", "udp": "--udp-probe-interval"}
_PROBE_FLAGS = {
    "--behavior": ("DRAIN_BEHAVIOR", "drain | exit-now | ignore"),
    "--readiness-on-drain": ("READINESS_ON_DRAIN", "fail | keep"),
    "--drain": ("DRAIN_SECONDS", "25, 2.5, 500ms, 25s"),
    "--exit-now-reset": ("EXIT_NOW_RESET", "true | false"),
    "--tcp-port": ("TCP_PORT", "7001; 0 for any free one"),
    "--udp-port": ("UDP_PORT", "7002; 0 for any free one"),
    "--http-port": ("HTTP_PORT", "7003; 0 for any free one"),
    "--bind": ("BIND", "an address; default all"),
    "--uid": ("POD_UID", "its identity; default local"),
}


def run_probe(arguments: argparse.Namespace) -> int:
    """Become the probe: same process, so signals reach it directly."""
    program = probe_program()
    if program is None:
        print(
            "probe.py was not found; expected probe_image/probe.py in the repository or in the "
            "installed package. Reinstall pytest-drainwatch",
            file=sys.stderr,
        )
        return CANNOT
    env = {**os.environ}
    env.setdefault("POD_UID", "local")
    for variable, _ in _PROBE_FLAGS.values():
        value = getattr(arguments, variable)
        if value is not None:
            env[variable] = value
    os.execve(sys.executable, [sys.executable, str(program)], env)


def probe_program() -> Path | None:
    """probe.py of the repository, or of the wheel."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package.parent, package):
        program = folder / "probe_image" / "probe.py"
        if program.is_file():
            return program
    return None


def run_client(arguments: argparse.Namespace) -> int:
    """Hold flows, show them live, and write a recording."""
    over_http = byhand.is_url(arguments.host)
    try:
        host = byhand.host_of(arguments.host) if over_http else arguments.host
        address = str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except byhand.BadUrl as error:
        print(error, file=sys.stderr)
        return USAGE
    except (OSError, UnicodeError) as error:
        print(
            f"host {host!r}: {error}; expected an address or a name that resolves. "
            "Look at: getent hosts",
            file=sys.stderr,
        )
        return USAGE
    recording: Path = arguments.recording
    part = recording.with_name(f".{recording.name}.part")
    part.unlink(missing_ok=True)
    begun = datetime.now(UTC).isoformat()
    config: dict[str, object] = {
        "record": str(part.absolute()),
        "target": arguments.target,
        "source_address": arguments.source,
        "tcp_rate_hz": arguments.tcp_rate,
        "udp_rate_hz": arguments.udp_rate,
    }
    if over_http:
        config["http"] = byhand.config(arguments, address)
    else:
        for proto in ("tcp", "udp"):
            port, flows = getattr(arguments, f"{proto}_port"), getattr(arguments, f"{proto}_flows")
            config[proto] = {"address": address, "port": port, "flows": flows}
        config["probers"] = _probers(arguments, address)
    last = _hold(config, arguments.seconds)
    failed = last.get("error")
    if failed:
        print(f"{failed['what']}; expected {failed['expected']}. {failed['next']}", file=sys.stderr)
    if last.get("phase") != "stopped":
        part.unlink(missing_ok=True)
        return CANNOT
    seen = _read(part)
    header = Header(
        drainwatch_version=_version(),
        git_commit="unknown",
        trial_id="client",
        wall_clock_start=begun,
        clock=clock_id(),
        scenario={"id": "client", "config": _recorded(config)},
    )
    recording.write_text(dumps(Recording(header, seen)), encoding="utf-8")
    part.unlink()
    show_flows(seen)
    show_probers(seen)
    byhand.show_requests(seen)
    for proto in ("tcp", "udp"):
        counts = last.get(proto) or {}
        if counts.get("dialled", 0) < counts.get("wanted", 0):
            print(f"{proto}: {counts['dialled']} of {counts['wanted']} flows connected")
    print(f"recording: {recording}")
    return DONE


def _recorded(config: dict[str, object]) -> dict[str, object]:
    """The configuration as a recording may hold it: a query may be a token."""
    http = config.get("http")
    if not isinstance(http, dict):
        return config
    return {**config, "http": {**http, "path": str(http["path"]).partition("?")[0]}}


def _interval(text: str) -> int:
    try:
        return parse_duration_ns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def _probers(arguments: argparse.Namespace, address: str) -> list[dict[str, object]]:
    """The probers asked for: none unless there is an interval."""
    found: list[dict[str, object]] = []
    for proto, flag in _PROBE_INTERVALS.items():
        interval_ns = getattr(arguments, flag.removeprefix("--").replace("-", "_"))
        if interval_ns is not None:
            found.append(
                {
                    "proto": proto,
                    "address": address,
                    "port": getattr(arguments, f"{proto}_port"),
                    "interval_ns": interval_ns,
                    "source_address": arguments.probe_source,
                }
            )
    return found


def _hold(config: dict[str, object], seconds: float | None) -> dict[str, Any]:
    """Run the agent until Ctrl-C, ``seconds``, or its own end; returns its last status."""
    agent = subprocess.Popen(
        [sys.executable, "-m", "pytest_drainwatch.flows"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # select sees every line that has not been read
    )
    assert agent.stdin is not None
    assert agent.stdout is not None
    agent.stdin.write(json.dumps(config).encode() + b"\n")
    agent.stdin.flush()
    last: dict[str, Any] = {}
    until: float | None = None  # counted from when all flows are open
    # The agent ignores Ctrl-C; here it means "stop, and show what was seen".
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        while until is None or time.monotonic() < until:
            line = _next_line(agent.stdout, 0.5 if until is None else until - time.monotonic())
            if line == b"":
                break
            if line is not None:
                last = json.loads(line)
                _show_live(last)
                if until is None and seconds is not None and last["phase"] == "holding":
                    until = time.monotonic() + seconds
    except KeyboardInterrupt:
        pass
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    agent.stdin.close()
    for line in agent.stdout:
        last = json.loads(line)
    agent.wait()
    agent.stdout.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.stdout.isatty():
        print()
    return last


def _next_line(stream: IO[bytes], timeout_s: float) -> bytes | None:
    """A line, b"" at the end, None if there was none in time."""
    if not select.select([stream], [], [], max(0, timeout_s))[0]:
        return None
    return stream.readline()


def _show_live(status: dict[str, Any]) -> None:
    parts = [str(status["phase"])]
    for proto in ("tcp", "udp"):
        counts = status.get(proto)
        if counts:
            parts.append(
                f"{proto} {counts['alive']}/{counts['wanted']} alive"
                f" ({counts['refused']} refused, {counts['quiet']} quiet,"
                f" {counts['moved']} moved, {counts['ended']} ended)"
            )
    for subject, told in (status.get("probers") or {}).items():
        parts.append(f"{subject} {told['answered']}/{told['finished']} answered")
    if http := status.get("http"):
        parts.append(
            f"http {http['served']}/{http['requests']} served"
            f" ({http['failing']} of {http['lanes']} lanes failing"
            f"{': ' + http['problem'] if http['problem'] else ''})"
        )
    text = " · ".join(parts)
    if sys.stdout.isatty():
        print(f"\r\x1b[2K{text}", end="", flush=True)
    elif _changed(text):
        print(text, flush=True)


_shown = ""


def _changed(text: str) -> bool:
    global _shown
    before, _shown = _shown, text
    return text != before


def _read(part: Path) -> tuple[Observation, ...]:
    lines = part.read_text(encoding="utf-8").splitlines()
    return tuple(parse_observation(line, number) for number, line in enumerate(lines, 1))


def _version() -> str:
    from pytest_drainwatch import __version__

    return __version__
