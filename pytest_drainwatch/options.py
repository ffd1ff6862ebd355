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
        help="auto (default), embedded, kind or existing",
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
        name="probe-image",
        parse=str,
        metavar="REF",
        help="the probe's image on an existing cluster",
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
