"""``drainwatch attach``: one trial of a workload that is there already."""

from __future__ import annotations

import argparse
from typing import Any

from pytest_drainwatch import option_values
from pytest_drainwatch.core.scenario import (
    Access,
    Http,
    Scenario,
    ScenarioError,
    Service,
    Tcp,
    Trigger,
    Udp,
    Workload,
)
from pytest_drainwatch.core.scenario.workload import PROTOCOLS, Protocol
from pytest_drainwatch.flags import OF_ONE_TRIAL, add_flags, told_by
from pytest_drainwatch.options import OPTIONS, Option, OptionError
from pytest_drainwatch.output import USAGE, fail
from pytest_drainwatch.settings import from_environment, resolve

# What is about the probe, its namespace, or whom to attach to: said by arguments of this command.
NOT_HERE = frozenset(
    {
        *("grace-period", "drain", "readiness-on-drain", "namespace", "pull-secret", "path"),
        *(option.name for option in OPTIONS if option.name.startswith("attach")),
    }
)
# Numbers of Http, by their argument.
NUMBERS = {
    "keepalive": "clients that pool a connection and ask all the time (10)",
    "idle": "clients that ask once before the trigger and once after it (10)",
    "in-flight": "requests under way when the trigger is sent; asks for --in-flight-path (0)",
    "new": "clients that ask over a new connection each time (0)",
    "rate-hz": "requests a second of each client that asks all the time (10)",
    "expect-status": "any other status is a failure (200)",
}


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "attach",
        help="one trial of your own workload",
        description="Hold traffic on a workload that is there already, terminate pods of it, and "
        "report what happened to every connection or request. Nothing in its namespace is "
        "created or changed but by the trigger.",
    )
    parser.add_argument(
        "workload", help="deployment/NAME, statefulset/NAME, daemonset/NAME, app=web"
    )
    parser.add_argument("--namespace", "-n", default="default", metavar="NAME", help="where it is")
    parser.add_argument("--port", metavar="PORT", help="of the Service, by number or name")
    parser.add_argument("--service", metavar="NAME", help="where several select the pods")
    parser.add_argument(
        "--protocol", type=_protocol_name, default="tcp", metavar="{tcp,udp,http}",
        help="what is spoken there",
    )  # fmt: skip
    parser.add_argument(
        "--trigger",
        choices=[str(t) for t in Trigger],
        default="rollout",
        help="how pods are terminated",
    )
    parser.add_argument("--targets", type=int, default=1, metavar="N", help="pods deleted at once")
    parser.add_argument(
        "--access", choices=[str(a) for a in Access], default="nodeport",
        help="clusterip: from a pod of the cluster (embedded); else as its Service offers",
    )  # fmt: skip
    said = parser.add_argument_group("tcp and udp")
    said.add_argument("--send", metavar="TEXT", help=r"a request; \r, \n, \x00; {seq}: its number")
    said.add_argument("--expect", metavar="REGEX", help="what an answer matches")
    http = parser.add_argument_group("http")
    http.add_argument("--path", default="/", metavar="PATH", help="what is asked for")
    http.add_argument("--host", metavar="NAME", help="Host header")
    http.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME:VALUE",
        help="sent with each request, never recorded; may be repeated",
    )
    http.add_argument("--in-flight-path", metavar="PATH", help="one whose answer takes long")
    http.add_argument("--in-flight-lasts", metavar="DURATION", help="about how long: 10s")
    http.add_argument("--identity-header", metavar="NAME", help="of answers: which pod gave them")
    for name, about in NUMBERS.items():
        http.add_argument(f"--{name}", type=int, metavar="N", help=about)
    add_flags(parser, (option for option in OF_ONE_TRIAL if option.name not in NOT_HERE))
    parser.set_defaults(run=_attach)


def _attach(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch.once import measure

    port = arguments.port
    try:
        settings = resolve({"command line": told_by(arguments), "environment": _here})
        asked = settings.apply(
            Scenario(
                workload=Workload.attach(
                    arguments.workload,
                    namespace=arguments.namespace,
                    port=int(port) if port and port.isdecimal() else port,
                    protocol=_protocol(arguments),
                    service=arguments.service,
                ),
                service=Service(access=Access(arguments.access)),
                trigger=Trigger(arguments.trigger),
                targets=arguments.targets,
            )
        )
    except (OptionError, ScenarioError, ValueError) as error:
        return fail(USAGE, str(error).replace("--dw-attach-", "--").replace("--dw-", "--"))
    return measure(settings, asked)


def _here(option: Option) -> object:
    """The environment, but for what this command says itself."""
    return None if option.name in NOT_HERE else from_environment(option)


def _protocol_name(text: str) -> str:
    """One of the protocols. argparse's own error would show a URL that was typed instead."""
    if text not in PROTOCOLS:
        raise argparse.ArgumentTypeError(
            f"expected one of: {', '.join(PROTOCOLS)} (what is asked for over http: --path)"
        )
    return text


def _protocol(arguments: argparse.Namespace) -> Protocol:
    """What is said to the workload. Raises ValueError for what cannot be read."""
    if arguments.protocol == "http":
        return _http(arguments)
    said = {
        "send": None if arguments.send is None else option_values.escaped(arguments.send),
        "expect": arguments.expect,
    }
    return Udp(**said) if arguments.protocol == "udp" else Tcp(**said)


def _http(arguments: argparse.Namespace) -> Http:
    given: dict[str, Any] = {
        name.replace("-", "_"): value
        for name in (*NUMBERS, "host", "in-flight-path", "identity-header")
        if (value := getattr(arguments, name.replace("-", "_"))) is not None
    }
    if arguments.in_flight_lasts is not None:
        given["in_flight_ns"] = option_values.parse_duration_ns(arguments.in_flight_lasts)
    pairs = []
    for header in arguments.header:
        name, colon, value = header.partition(":")
        if not colon:
            raise ValueError("a header has no colon; expected --header 'NAME: VALUE'")
        pairs.append((name.strip(), value.strip()))
    return Http(path=arguments.path, headers=tuple(pairs), **given)
