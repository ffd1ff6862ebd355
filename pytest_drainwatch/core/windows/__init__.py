"""How long a target pod was advertised, ready, a last resort, and dead but listed."""
