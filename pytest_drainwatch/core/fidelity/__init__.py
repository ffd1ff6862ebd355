"""Whether the simulator is true: fitted to some measured trials, held against the others."""
