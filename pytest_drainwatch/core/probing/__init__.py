"""New connections: what became of each attempt, and the windows in which they failed."""
