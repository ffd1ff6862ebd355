"""Several trials of one scenario together."""
