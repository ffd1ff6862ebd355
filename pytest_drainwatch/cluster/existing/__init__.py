"""Any cluster that a kubeconfig leads to. Nothing of it is started or changed here."""

from pytest_drainwatch.cluster.existing.cluster import ExistingCluster
from pytest_drainwatch.cluster.existing.proxy import proxy_configuration
from pytest_drainwatch.cluster.existing.reach import default_kubeconfig, reach_existing

__all__ = ["ExistingCluster", "default_kubeconfig", "proxy_configuration", "reach_existing"]
