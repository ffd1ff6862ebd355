"""What is said of a run: by its tests, in its table, and at its end."""
