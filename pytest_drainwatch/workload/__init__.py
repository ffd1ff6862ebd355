"""WHAT is terminated: the probe and what Kubernetes needs to run it."""
