"""The clusters of a run: started when a trial first needs one, shared, and closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch import cordon
from pytest_drainwatch.api import Api, ApiUnavailable, connect, failures
from pytest_drainwatch.cluster import Cluster, ClusterError, ClusterSettings
from pytest_drainwatch.cluster.embedded import starts
from pytest_drainwatch.cluster.kind import Bring
from pytest_drainwatch.cluster.opening import open_cluster
from pytest_drainwatch.cluster.possible import check_settings
from pytest_drainwatch.core.scenario import ClusterNeeds
from pytest_drainwatch.core.scenario.needs import in_words
from pytest_drainwatch.settings import Settings
from pytest_drainwatch.suiting import cluster_settings, refuse
from pytest_drainwatch.workload import given as given_namespace
from pytest_drainwatch.workload.namespace import is_dead, sweep

# An embedded cluster takes about 0.5 GB, used or not. Two are enough for a question with
# two arms; another one of these is started in 4 s.
MOST_ALIVE = 2


@contextmanager
def opened_cluster(
    settings: Settings,
    logs: Path,
    log: Callable[[str], None],
    *,
    keep: Callable[[], bool],
    needs: ClusterNeeds | None = None,
    bring: Bring | None = None,
) -> Iterator[Cluster]:
    """A cluster for as long as the context lasts, longer if ``keep()``. Raises ClusterError."""
    wanted, why = cluster_settings(settings, needs or ClusterNeeds())
    cluster = open_cluster(
        wanted,
        why=why,
        log=log,
        logs_dir=logs,
        bring=bring,
        tidy=lambda api: _uncordon(api, log),
    )
    try:
        if wanted.provider != "embedded":  # which starts empty
            _sweep(cluster, settings.namespace, log)
        yield cluster
    finally:
        if keep() and _lives(cluster):
            cluster.detach()
            log(f"kept cluster {_in_words(cluster)}: export KUBECONFIG={cluster.kubeconfig}")
        else:
            cluster.close()


def _sweep(cluster: Cluster, given: str | None, log: Callable[[str], None]) -> None:
    """Remove what dead runs left, as far as that may be done."""
    with suppress(ApiUnavailable, *failures()):
        api = connect(cluster.kubeconfig, cluster.context)
        if given is None:
            for name in sweep(api):
                log(f"removed namespace {name}, left by a run that is gone")
            return
        for trial in given_namespace.sweep(api, given):
            log(f"removed trial {trial} from namespace {given}, left by a run that is gone")


def _uncordon(api: Api, log: Callable[[str], None]) -> bool:
    """Have nodes take pods again that a dead run had evacuated; returns whether there were any.

    Who may not list them did not evacuate them.
    """
    found = False
    with suppress(*failures()):
        for node, who in cordon.left(api):
            if is_dead(who):
                cordon.uncordon(api, node)
                log(f"uncordoned node {node}, left cordoned by a run that is gone")
                found = True
    return found


def _in_words(cluster: Cluster) -> str:
    """A cluster's name and what tells it from the others of a run."""
    facts = cluster.facts()
    told = in_words(facts.kube_version, facts.proxy_mode, facts.min_sync_period_ms, facts.nodes)
    return f"{cluster.name} ({told})" if told else cluster.name


def _lives(cluster: Cluster) -> bool:
    try:
        cluster.check()
    except ClusterError:
        return False
    return True


@dataclass(slots=True, eq=False)
class _Member:
    """An open cluster, how many leases use it, and what ends it.

    ``spent_on`` is the scenario that was measured on it last. None: none was yet.
    """

    settings: ClusterSettings
    cluster: Cluster
    end: ExitStack
    users: int = 0
    spent_on: str | None = None


class ClusterPool:
    """Clusters by their settings, for as long as the context lasts.

    ``Settings.fresh_cluster`` says what may share one: all trials of the session, repeats of
    one scenario in a row, or none. ``keep`` is asked when the pool closes, about each cluster
    that is open then. One that makes room for another is always closed: kept ones must not
    pile up beyond MOST_ALIVE. ``bring`` gives the cluster of pytest-kind's fixture, which ends
    by itself.
    """

    def __init__(
        self,
        settings: Settings,
        logs: Path,
        log: Callable[[str], None],
        *,
        keep: Callable[[], bool],
        bring: Bring | None = None,
    ) -> None:
        self._bring = bring
        self._settings = settings
        self._logs = logs
        self._log = log
        self._keep = keep
        self._closing = False
        # The least recently used one first.
        self._members: list[_Member] = []

    def __enter__(self) -> ClusterPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self, needs: ClusterNeeds) -> None:
        """Raise ClusterError if no cluster of this run can be that; starts none.

        What an existing cluster is can be told once it was leased.
        """
        wanted = self._wanted(needs)
        check_settings(wanted)
        for member in self._members:
            if member.settings == wanted:
                refuse(member.cluster, needs)

    @contextmanager
    def lease(self, needs: ClusterNeeds, scenario: str = "") -> Iterator[Cluster]:
        """The cluster that ``needs`` ask for; it stays at least as long as the context.

        ``scenario`` is the id of what will be measured on it. Without one it is only held:
        a lease within this one, with a scenario, may still measure on it as on a fresh one.
        Begins when no cluster starts on this machine. One may start later: a start waits for no
        trial, and one that begins while a trial measures is recorded by that trial.

        Raises ClusterError if it cannot be had or is not what is needed.
        """
        wanted = self._wanted(needs)
        self._drop_dead(wanted)
        member = next((m for m in self._members if self._suits(m, wanted, scenario)), None)
        if member is None:
            self._close_spent()
            self._close_idle(MOST_ALIVE - 1)
            end = ExitStack()
            cluster = end.enter_context(
                opened_cluster(
                    self._settings,
                    self._logs,
                    self._log,
                    keep=lambda: self._closing and self._keep(),
                    needs=needs,
                    bring=self._bring,
                )
            )
            member = _Member(wanted, cluster, end)
        else:
            self._members.remove(member)
        self._members.append(member)
        refuse(member.cluster, needs)
        starts.wait_quiet(self._log)
        if scenario:
            member.spent_on = scenario
        member.users += 1
        try:
            yield member.cluster
        finally:
            member.users -= 1
            if member.spent_on is None:
                member.spent_on = ""  # whoever held it may have done anything to it
            self._close_idle(MOST_ALIVE)

    def holds(self, cluster: Cluster) -> bool:
        """Whether this is one of the pool's, and not one that somebody brought."""
        return any(member.cluster is cluster for member in self._members)

    def close(self) -> None:
        """End or keep every cluster, whatever happens to the others."""
        self._closing = True
        with ExitStack() as all_of_them:
            for member in self._members:
                all_of_them.push(member.end)
            self._members.clear()

    def _wanted(self, needs: ClusterNeeds) -> ClusterSettings:
        wanted, _ = cluster_settings(self._settings, needs)
        fresh = self._settings.fresh_cluster
        if fresh != "session" and wanted.provider != "embedded":
            raise ClusterError(
                f"--dw-fresh-cluster={fresh} asks for new clusters, and the {wanted.provider} one"
                " is not ours to start anew: expected clusters that are made for the run"
                " (--dw-cluster=embedded), or --dw-fresh-cluster=session"
            )
        return wanted

    def _suits(self, member: _Member, wanted: ClusterSettings, scenario: str) -> bool:
        """Whether a trial of ``scenario`` may have a cluster that is open already."""
        if member.settings != wanted:
            return False
        match self._settings.fresh_cluster:
            case "trial":
                return member.spent_on is None
            case "scenario":
                return member.spent_on is None or member.spent_on == scenario != ""
        return True

    def _drop_dead(self, wanted: ClusterSettings) -> None:
        """One cluster's death must not be that of every later trial."""
        for member in list(self._members):
            if member.settings != wanted or member.users or _lives(member.cluster):
                continue
            self._log(f"cluster {member.cluster.name} has died; starting another one")
            self._members.remove(member)
            member.end.close()

    def _close_spent(self) -> None:
        """Close what no trial uses and none may use: a fresh one is about to be started."""
        if self._settings.fresh_cluster != "session":
            self._close_idle(0)

    def _close_idle(self, most: int) -> None:
        """Close what no trial uses, the least recently used first, until ``most`` are left."""
        idle = [member for member in self._members if not member.users]
        for member in idle[: max(0, len(self._members) - most)]:
            self._members.remove(member)
            if self._settings.keep != "never":
                self._log(
                    f"cluster {_in_words(member.cluster)} makes room for another one: what was "
                    f"kept in it goes too (at most {MOST_ALIVE} live at once)"
                )
            member.end.close()
