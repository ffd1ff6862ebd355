"""What a trial may have to do in a cluster: as data, as a preflight check, and as RBAC objects."""
