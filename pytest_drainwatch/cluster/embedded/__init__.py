"""A real one-node Kubernetes in namespaces of its own, without Docker.

Three processes share the work. The owner (pytest) prepares certificates and
configuration. The reaper, outside of everything, starts the node and, when the owner
ends by whatever signal, removes all that would outlive it. The node's PID 1 starts the
components and takes them all with it.

Start reading in `cluster.py`, which is the owner's side; then `reaper.py` and `node.py`.
What they share is a `plan`; what it says comes from `configuration`, `runtime` and `pki`.
`binary`, `rootfs`, `image`, `archive` and `store` make, once, what clusters are made of.
"""
