"""`drainwatch setup` and `cluster up|down|list`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_drainwatch.cluster import PROXY_MODES, ClusterError, ClusterSettings
from pytest_drainwatch.option_values import count_from_one, milliseconds
from pytest_drainwatch.output import CANNOT, DONE, fail, write, write_json

DEFAULT_NAME = "drainwatch"
_DEFAULTS = ClusterSettings()

Command = Callable[[argparse.Namespace], int]


def register(subparsers: Any) -> None:
    """Add the commands to an argparse subparsers object; each sets `run`."""
    setup = subparsers.add_parser(
        "setup", help="install and build what the embedded cluster needs, ahead of time"
    )
    setup.add_argument("--yes", action="store_true", help="agree to installing packages")
    setup.add_argument(
        "--for-tests",
        action="store_true",
        help="also what this project's own tests need: tcpdump, haproxy and a browser, chromium",
    )
    _add_versions(setup)
    setup.set_defaults(run=_or_cannot(_setup))

    cluster = subparsers.add_parser("cluster", help="clusters that outlive a pytest run")
    verbs = cluster.add_subparsers(dest="verb", required=True, metavar="up|down|list")
    up = verbs.add_parser("up", help="start an embedded cluster and leave it running")
    _add_name(up)
    up.add_argument(
        "--kube-version", "--dw-kube-version", default=_DEFAULTS.kube_version, metavar="V"
    )
    up.add_argument(
        "--kube-bin", "--dw-kube-bin", type=Path, metavar="FILE", help="a ready kubenode binary"
    )
    up.add_argument(
        "--proxy-mode", "--dw-proxy-mode", choices=PROXY_MODES, default=_DEFAULTS.proxy_mode
    )
    up.add_argument(
        "--min-sync-period",
        "--dw-min-sync-period",
        type=_milliseconds,
        metavar="DURATION",
        help="kube-proxy's minSyncPeriod, such as 10s (Kubernetes' own default of the mode)",
    )
    up.add_argument(
        "--nodes",
        "--dw-nodes",
        type=_nodes,
        default=_DEFAULTS.nodes,
        metavar="N",
        help="how many nodes (%(default)s)",
    )
    _add_json(up)
    up.set_defaults(run=_or_cannot(_up))
    down = verbs.add_parser("down", help="end a cluster that `up` started")
    _add_name(down)
    _add_json(down)
    down.set_defaults(run=_or_cannot(_down))
    listing = verbs.add_parser("list", help="say which embedded clusters run")
    listing.add_argument("--name", metavar="N", help="only this one")
    _add_json(listing)
    listing.set_defaults(run=_or_cannot(_list))


def _add_versions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kube-version",
        "--dw-kube-version",
        action="append",
        metavar="V",
        help=f"Kubernetes minor version ({_DEFAULTS.kube_version}); may be repeated",
    )


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=DEFAULT_NAME, type=_name, metavar="N")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _name(text: str) -> str:
    # It becomes the name of folders and of a cgroup.
    if not text or len(text) > 40 or not text.replace("-", "").isalnum() or text[0] == "-":
        raise argparse.ArgumentTypeError(
            f"{text!r} is no cluster name: expected letters, digits and dashes, 40 at most"
        )
    return text


def _milliseconds(text: str) -> int:
    try:
        return milliseconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def _nodes(text: str) -> int:
    try:
        return count_from_one(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def _or_cannot(command: Command) -> Command:
    def run(arguments: argparse.Namespace) -> int:
        try:
            return command(arguments)
        except ClusterError as error:
            return fail(CANNOT, str(error))
        except KeyboardInterrupt:
            return fail(CANNOT, "interrupted; nothing is left running")

    return run


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _versions(arguments: argparse.Namespace) -> list[str]:
    return arguments.kube_version or [_DEFAULTS.kube_version]


def _setup(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch.cluster.embedded import provision

    agree = (lambda question: True) if arguments.yes else provision.ask
    provision.set_up(_versions(arguments), log=_say, agree=agree, for_tests=arguments.for_tests)
    _say("ready: pytest scenarios/ -k drain")
    return DONE


def _up(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch.cluster.embedded.cluster import start_embedded

    period_ms = arguments.min_sync_period
    settings = ClusterSettings(
        kube_version=arguments.kube_version,
        kube_bin=arguments.kube_bin,
        proxy_mode=arguments.proxy_mode,
        min_sync_period_ms=PROXY_MODES[arguments.proxy_mode] if period_ms is None else period_ms,
        nodes=arguments.nodes,
    )
    cluster = start_embedded(settings, why="drainwatch cluster up", log=_say, name=arguments.name)
    cluster.detach()
    if arguments.json:
        write_json(json.dumps(_find(arguments.name)[0], indent=1) + "\n")
    else:
        end = f"drainwatch cluster down --name {cluster.name}"
        write(f"# cluster {cluster.name} runs until: {end}\n")
        write(f"export KUBECONFIG={cluster.kubeconfig}\n")
    return DONE


def _down(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch.cluster.embedded import records

    records.stop(arguments.name)
    if arguments.json:
        write_json(json.dumps({"name": arguments.name, "running": False}) + "\n")
    else:
        write(f"cluster {arguments.name} is gone\n")
    return DONE


def _list(arguments: argparse.Namespace) -> int:
    found = _find(arguments.name)
    if arguments.json:
        write_json(json.dumps(found, indent=1) + "\n")
    elif not found:
        write("no embedded cluster runs. Start one: drainwatch cluster up\n")
    else:
        for entry in found:
            write(_line(entry) + "\n")
    return DONE


def _find(name: str | None) -> list[dict[str, Any]]:
    from pytest_drainwatch.cluster.embedded import records

    return [asdict(record) for record in records.running() if name in (None, record.name)]


def _line(entry: dict[str, Any]) -> str:
    age = time.time() - entry["created"]
    owner = f"process {entry['owner']}" if entry["owner"] else "nobody (cluster down ends it)"
    nodes = f", {entry['nodes']} nodes" if entry["nodes"] > 1 else ""
    return (
        f"{entry['name']}  Kubernetes {entry['kube_version']} ({entry['proxy_mode']}{nodes})"
        f"  {entry['node_address']}  {age:.0f} s old  owned by {owner}  {entry['kubeconfig']}"
    )
