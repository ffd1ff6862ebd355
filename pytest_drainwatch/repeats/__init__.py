"""Trials of many repeats on disk: found, read, pooled, compared, pruned."""
