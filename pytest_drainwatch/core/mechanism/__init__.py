"""What the node's kernel and kube-proxy did with a flow: evidence beside the verdict."""
