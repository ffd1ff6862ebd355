"""What a run will measure, how often, and in which order."""
