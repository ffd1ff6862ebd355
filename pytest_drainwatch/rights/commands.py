"""``drainwatch rbac``: the rights that trials need, to be given to whoever runs them."""

from __future__ import annotations

import argparse
from typing import Any

from pytest_drainwatch.core.scenario import Access, Controller, Trigger
from pytest_drainwatch.output import DONE, USAGE, fail, write

NAME = "drainwatch"
# Those that are not meant for one namespace have to be asked for.
BEYOND = frozenset({Trigger.EVACUATE_NODE})
BEYOND_A_GIVEN_ONE = BEYOND | {Trigger.NAMESPACE_DELETE}
# A client inside of a cluster that is not ours cannot be had.
ACCESSES = (Access.NODE_PORT, Access.LOAD_BALANCER)


def register(subparsers: Any) -> None:
    """Add the command to an argparse subparsers object."""
    rbac = subparsers.add_parser(
        "rbac",
        help="print the roles and bindings that trials need on an existing cluster",
        description="Print YAML for: drainwatch rbac | kubectl apply -f -",
    )
    rbac.add_argument(
        "--namespace",
        "--dw-namespace",
        metavar="NAME",
        help="only a Role in this namespace, for trials with --dw-namespace=NAME (default: a "
        "ClusterRole, for trials that make namespaces of their own)",
    )
    who = rbac.add_mutually_exclusive_group()
    who.add_argument(
        "--service-account",
        metavar="NAMESPACE:NAME",
        help="who gets them (default: a ServiceAccount drainwatch, which is printed too)",
    )
    who.add_argument("--user", metavar="NAME", help="a user gets them")
    who.add_argument("--group", metavar="NAME", help="a group gets them")
    for flag, values, default in (
        ("--trigger", Trigger, "all but evacuate-node, which takes rights on nodes"),
        ("--controller", Controller, "all"),
        ("--access", Access, "nodeport and loadbalancer"),
    ):
        rbac.add_argument(
            flag,
            action="append",
            choices=[str(value) for value in values],
            help=f"trials with this one; may be repeated (default: {default})",
        )
    rbac.add_argument(
        "--attach",
        action="store_true",
        help="trials that attach to workloads which are there, and deploy nothing",
    )
    rbac.add_argument(
        "--no-optional", action="store_true", help="leave out what reports can do without"
    )
    rbac.add_argument("--name", default=NAME, metavar="NAME", help=f"of the roles ({NAME})")
    rbac.set_defaults(run=_rbac)


def _rbac(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch.rights.needed import together
    from pytest_drainwatch.rights.objects import yaml_of

    namespace: str | None = arguments.namespace
    beyond = BEYOND if namespace is None else BEYOND_A_GIVEN_ONE
    asked = arguments.trigger or [each for each in Trigger if each not in beyond]
    if namespace is not None and Trigger.NAMESPACE_DELETE in asked:
        return fail(
            USAGE,
            "--trigger namespace-delete deletes the namespace of --namespace, which a trial "
            "leaves; expected another trigger, or no --namespace",
        )
    try:
        grantee = _grantee(arguments)
    except ValueError as error:
        return fail(USAGE, str(error))
    controllers: list[Controller | None] = [Controller(each) for each in arguments.controller or ()]
    if not controllers:
        # A workload may be named by labels; then its controller is looked for.
        controllers = [*Controller, *([None] if arguments.attach else [])]
    rights = together(
        [Trigger(each) for each in asked],
        controllers,
        [Access(each) for each in arguments.access or ACCESSES],
        own=namespace is None,
        attach=arguments.attach,
    )
    wanted = [right for right in rights if not (right.optional and arguments.no_optional)]
    write(yaml_of(wanted, grantee, name=arguments.name, namespace=namespace))
    return DONE


def _grantee(arguments: argparse.Namespace) -> Any:
    from pytest_drainwatch.rights.objects import Grantee

    if arguments.user:
        return Grantee(kind="User", name=arguments.user)
    if arguments.group:
        return Grantee(kind="Group", name=arguments.group)
    home = arguments.namespace or "default"
    if not arguments.service_account:
        return Grantee(kind="ServiceAccount", name=NAME, namespace=home, made=True)
    namespace, colon, name = arguments.service_account.partition(":")
    if not (namespace and colon and name):
        raise ValueError(
            f"--service-account={arguments.service_account}: expected NAMESPACE:NAME, such as "
            "default:drainwatch"
        )
    return Grantee(kind="ServiceAccount", name=name, namespace=namespace)
