"""One flow: its table of states, the signals that drive it, the verdict, the report."""
