"""Every option, declared once: pytest's ``--dw-*``, its ini twin ``dw_*`` and the CLI's flag.

A value that nobody gave stays None, so that a scenario's own value holds; one
that was given overrides every scenario of the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from pytest_drainwatch import option_values

PROVIDERS = ("auto", "embedded", "kind", "existing")
KEEP = ("never", "on-failure", "always")
PATHS = ("direct", "haproxy")
FRESH = ("session", "scenario", "trial")
KUBE_VERSIONS = ("1.37", "1.34")


class OptionError(ValueError):
    """A value that an option does not accept; the text names the option."""


class Option(NamedTuple):
    """One option: ``--dw-NAME`` and ini ``dw_name``."""

    name: str
    parse: Callable[[str], Any]
    metavar: str
    help: str
    pytest_only: bool = False  # it is about several trials: no flag of `drainwatch run`
    secret: bool = False  # what it says may be a password: no error shows it
    switch: bool = False  # on the command line it stands alone, and says yes

    @property
    def dest(self) -> str:
        """The name of the attribute and of the ini value."""
        return "dw_" + self.name.replace("-", "_")


def from_environment(option: Option) -> object:
    """The source ``DW_NAME`` of an option."""
    return os.environ.get(option.dest.upper())


OPTIONS = (
    Option(
        name="cluster",
        parse=option_values.one_of(*PROVIDERS),
        metavar="PROVIDER",
        help="where trials run: auto (default), embedded, kind or existing",
    ),
    Option(
        name="kubeconfig",
        parse=option_values.path,
        metavar="FILE",
        help="kubeconfig of an existing cluster (implies --dw-cluster=existing)",
    ),
    Option(
        name="context",
        parse=str,
        metavar="NAME",
        help="context of that kubeconfig (implies --dw-cluster=existing)",
    ),
    Option(
        name="kind-image",
        parse=str,
        metavar="IMAGE",
        help="node image of a kind cluster that is made, which decides its Kubernetes (default: "
        "kind's own)",
    ),
    Option(
        name="kube-bin",
        parse=option_values.path,
        metavar="FILE",
        help="a ready embedded Kubernetes binary, instead of the cached or built one",
    ),
    Option(
        name="kube-version",
        parse=option_values.one_of(*KUBE_VERSIONS),
        metavar="VERSION",
        help="Kubernetes of the cluster: 1.37 or 1.34 (scenario's own, or 1.37)",
    ),
    Option(
        name="proxy-mode",
        parse=option_values.proxy_mode,
        metavar="MODE",
        help="kube-proxy's mode: iptables, nftables or ipvs (scenario's own, or iptables)",
    ),
    Option(
        name="min-sync-period",
        parse=option_values.milliseconds,
        metavar="DURATION",
        help="kube-proxy's minSyncPeriod (scenario's own, or Kubernetes' default of 1s)",
    ),
    Option(
        name="nodes",
        parse=option_values.count_from_one,
        metavar="N",
        help="nodes of the cluster that take pods (scenario's own, or 1 where one is made)",
    ),
    Option(
        name="probe-image",
        parse=str,
        metavar="REF",
        help="the probe's image on an existing cluster",
    ),
    Option(
        name="allow-context",
        parse=str,
        metavar="NAME",
        help="use this context although its name, or that of its cluster, its server or a "
        "namespace that is not the trial's own, has the word prod, production or live in it",
    ),
    Option(
        name="namespace",
        parse=option_values.object_name,
        metavar="NAME",
        help="use this namespace and leave it: only what a trial made in it is removed (default: "
        "a namespace is made for each trial)",
    ),
    Option(
        name="pull-secret",
        parse=option_values.object_names,
        metavar="NAME[,NAME]",
        help="Secrets of --dw-namespace by which the probe's image is pulled",
    ),
    Option(
        name="address",
        parse=option_values.address,
        metavar="HOST[:PORT]",
        help="where the Service answers: a node, load balancer or ingress as it is reached from "
        "here (default: what the cluster says); with a port, that one is used for TCP and UDP",
    ),
    Option(
        name="path",
        parse=option_values.one_of(*PATHS),
        metavar="PATH",
        help="direct: connect to a node's NodePort; haproxy: through a HAProxy in front of all "
        "nodes, with health checks and a deregistration delay, for TCP alone (scenario's own, or "
        "direct)",
    ),
    Option(
        name="grace-period",
        parse=option_values.seconds,
        metavar="SECONDS",
        help="terminationGracePeriodSeconds (scenario's own, or 30)",
    ),
    Option(
        name="drain",
        parse=option_values.parse_duration_ns,
        metavar="DURATION",
        help="the probe's drain window (scenario's own, or 25s)",
    ),
    Option(
        name="readiness-on-drain",
        parse=option_values.one_of("fail", "keep"),
        metavar="fail|keep",
        help="whether a draining probe fails its readiness probe (scenario's own, or fail)",
    ),
    Option(
        name="tcp-flows",
        parse=option_values.count,
        metavar="N",
        help="TCP flows held on the target (scenario's own, or 10)",
    ),
    Option(
        name="udp-flows",
        parse=option_values.count,
        metavar="N",
        help="UDP flows held on the target (scenario's own, or 10)",
    ),
    Option(
        name="tcp-rate",
        parse=option_values.count,
        metavar="HZ",
        help="sends a second of each TCP flow while it matters, 5 else (scenario's own, or 20)",
    ),
    Option(
        name="udp-rate",
        parse=option_values.count,
        metavar="HZ",
        help="sends a second of each UDP flow while it matters, 10 else (scenario's own, or 60)",
    ),
    Option(
        name="probe-interval",
        parse=option_values.parse_duration_ns,
        metavar="DURATION",
        help="a new TCP connection is tried this often while it matters, more seldom else (see "
        "--dw-probe-sparse-every), 0: none (scenario's own, or 5ms)",
    ),
    Option(
        name="udp-probe-interval",
        parse=option_values.parse_duration_ns,
        metavar="DURATION",
        help="a new UDP port is tried this often while it matters, more seldom else, 0: none "
        "(scenario's own, or 0)",
    ),
    Option(
        name="probe-sparse-every",
        parse=option_values.count_from_one,
        metavar="N",
        help="where nothing is known to happen only each N-th new connection is tried, 1: all "
        "(scenario's own, or 10, but no more than 100ms apart)",
    ),
    Option(
        name="attach",
        parse=str,
        metavar="WORKLOAD",
        help="try this workload instead of the probe: deployment/NAME, statefulset/NAME, "
        "daemonset/NAME, or labels such as app=web. Nothing of it is changed but by the trigger",
    ),
    Option(
        name="attach-namespace",
        parse=option_values.object_name,
        metavar="NAME",
        help="the namespace of --dw-attach (default: default)",
    ),
    Option(
        name="attach-port",
        parse=option_values.port,
        metavar="PORT",
        help="port of the Service of --dw-attach, by number or name (default: its only one)",
    ),
    Option(
        name="attach-service",
        parse=option_values.object_name,
        metavar="NAME",
        help="Service of --dw-attach, where several select its pods",
    ),
    Option(
        name="attach-protocol",
        parse=str,
        metavar="PROTOCOL",
        help="what is spoken there: tcp (default), udp, http or http:/PATH",
    ),
    Option(
        name="attach-send",
        parse=option_values.escaped,
        secret=True,
        metavar="TEXT",
        help="request of tcp or udp, with escapes such as \\r\\n; {seq} becomes its number",
    ),
    Option(
        name="attach-expect",
        parse=str,
        metavar="REGEX",
        help="what an answer matches; of udp (?P<seq>[0-9]+) is the number of its request",
    ),
    Option(
        name="settle",
        parse=option_values.parse_duration_ns,
        metavar="DURATION",
        help="undisturbed time before the trigger (scenario's own, or 10s)",
    ),
    Option(
        name="observe-timeout",
        parse=option_values.parse_duration_ns,
        metavar="DURATION",
        help="longest observation after the trigger (default: 30s beyond the latest kill)",
    ),
    Option(
        name="out",
        parse=option_values.path,
        metavar="DIR",
        help="results folder (default: results)",
    ),
    Option(
        name="keep",
        parse=option_values.one_of(*KEEP),
        metavar="WHEN",
        help="keep a trial's namespace, and the cluster(s) open at the end: never (default), "
        "on-failure or always. Of a test that measures in its body or compares arms "
        "(drainwatch, trials) on-failure keeps the namespace of a void trial only: a measured "
        "one's is gone before the test judges. A trial of namespace-delete leaves none",
    ),
    Option(
        name="repeat",
        parse=option_values.count_from_one,
        metavar="N",
        help="measure every trial N times, as tests r00, r01, ... (test's own, or 1)",
        pytest_only=True,
    ),
    Option(
        name="fresh-cluster",
        parse=option_values.one_of(*FRESH),
        metavar="WHEN",
        help="start another cluster for each trial or scenario: session (default: share one), "
        "scenario or trial; of those --dw-keep keeps the last one only",
        pytest_only=True,
    ),
    Option(
        name="trace",
        parse=option_values.yes_or_no,
        metavar="yes|no",
        help="write trace.json beside each report.json, for ui.perfetto.dev or chrome://tracing "
        "(default: no); `drainwatch show --trace` makes one later",
        pytest_only=True,
        switch=True,
    ),
    Option(
        name="markdown",
        parse=option_values.path,
        metavar="FILE",
        help="write the run as Markdown there, such as a GitHub job summary: "
        '--dw-markdown="$GITHUB_STEP_SUMMARY" (added to; any other file is replaced)',
        pytest_only=True,
    ),
    Option(
        name="baseline",
        parse=option_values.path,
        metavar="DIR",
        help="compare this run with an earlier one, and fail it on a regression",
        pytest_only=True,
    ),
    Option(
        name="fail-on",
        parse=option_values.verdicts,
        metavar="VERDICTS",
        help="which verdicts of --dw-baseline fail the run: regression (default), "
        "insufficient-evidence, or both with a comma between them; never: none",
        pytest_only=True,
    ),
    Option(
        name="across",
        parse=option_values.fields,
        metavar="FIELD[,FIELD]",
        help="compare with --dw-baseline although these conditions differ, such as "
        "environment.kubernetes_version",
        pytest_only=True,
    ),
    Option(
        name="keep-runs",
        parse=option_values.count_from_one,
        metavar="N",
        help="when a run ends keep only the N newest runs in the results folder (default: all)",
        pytest_only=True,
    ),
)
