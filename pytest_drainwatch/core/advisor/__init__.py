"""Whether a pod's shutdown fits into what Kubernetes gives it: said before anybody measures it."""
