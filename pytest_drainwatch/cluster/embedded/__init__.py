"""A real Kubernetes of one to five nodes in namespaces of their own, without Docker.

Three kinds of processes share the work. The owner (pytest) prepares certificates and
configuration. The reaper, outside of everything, starts the nodes and, when the owner
ends by whatever signal, removes all that would outlive them. Each node's PID 1 starts its
components and takes them all with it; where one node ends the cluster does.

Start reading in `cluster.py`, which is the owner's side; then `reaper.py`, `links.py` and
`node.py`. What they share is a `plan`; what it says comes from `configuration`, `runtime` and
`pki`. `binary`, `rootfs`, `image`, `archive` and `store` make, once, what clusters are made of.
"""
