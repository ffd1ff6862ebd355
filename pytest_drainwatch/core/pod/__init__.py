"""Who ended a container, measured against what the kubelet promises."""
